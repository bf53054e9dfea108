package broker

import (
	"context"
	"errors"
	"sync"
	"time"

	"barnabas/internal/api"
	"barnabas/internal/config"
	"barnabas/internal/coordinator"
	"barnabas/internal/coordinator/markers"
	"barnabas/internal/coordinator/txn"
	"barnabas/internal/peer"
	"barnabas/internal/record"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// markerPause is the pause after a leader refused transaction markers, or while
// a partition has no leader.
const markerPause = 100 * time.Millisecond

// newTransactions makes the coordinator of transactions and what writes their
// markers. It leads partitions when roleChanged says so.
func (b *Broker) newTransactions(c *config.Broker) {
	conf := txn.Config{
		MaxTimeout:   c.Duration("transaction.max.timeout.ms"),
		IDExpiration: c.Duration("transactional.id.expiration.ms"),
		IDCheck:      c.Duration("transaction.remove.expired.transaction.cleanup.interval.ms"),
	}
	b.open = new(api.OpenTransactions)
	b.verifier = newVerifier(b)
	b.markerConns.byBroker = map[int32]*peer.Conn{}
	b.markers = markers.New(markers.Options{
		Leader: b.leaderOf, Write: b.writeMarkers, Done: b.markersWritten, Pause: markerPause, Logger: b.log.With("part", "transactions"),
	})
	b.transactions = coordinator.New(coordinator.Options[*txn.Machine]{
		Topic: api.TransactionsTopic,
		New:   func(_, epoch int32) *txn.Machine { return txn.New(conf, epoch) },
		Perform: func(partition int32, command any) {
			if s, ok := command.(txn.Send); ok {
				b.markers.Send(partition, s)
				return
			}
			b.open.Perform(partition, command)
		},
		Unloaded: func(partition int32) {
			b.open.Unloaded(partition)
			b.markers.Forget(partition)
		},
		CommitTimeout: func() time.Duration { return 10 * time.Second },
		LoadBuffer:    c.Int("transaction.state.log.load.buffer.size"),
		Codec:         record.None,
		Logger:        b.log.With("part", "transactions"),
	})
}

func (b *Broker) closeTransactions() error {
	b.verifier.Close()
	b.markers.Close()
	b.transactions.Close()
	b.markerConns.mu.Lock()
	defer b.markerConns.mu.Unlock()
	for _, conn := range b.markerConns.byBroker {
		conn.Close()
	}
	return nil
}

func (b *Broker) leaderOf(p wire.TopicPartition) (int32, bool) {
	if known := b.metadata.Partition(p.Topic, p.Partition); known != nil {
		return known.Leader, true
	}
	return -1, false
}

// markersWritten tells a transaction's coordinator that it may be completed.
func (b *Broker) markersWritten(partition int32, id string, p coordinator.Producer) {
	c := new(nobody)
	b.transactions.Do(partition, c, func(m *txn.Machine, now time.Time, out *coordinator.Effects) { m.Complete(id, p, c, now, out) })
}

// markerConns are the connections for transaction markers, one a broker.
type markerConns struct {
	mu       sync.Mutex
	byBroker map[int32]*peer.Conn
}

var errNotServing = errors.New("this broker does not serve yet")

// writeMarkers has a broker, perhaps this one, append markers.
func (b *Broker) writeMarkers(ctx context.Context, broker int32, ends []markers.End) ([][]wire.Code, error) {
	if broker != b.info.ID {
		return b.sendMarkers(ctx, broker, ends)
	}
	handlers := b.handlers.Load()
	if handlers == nil {
		return nil, errNotServing
	}
	written := make(chan [][]wire.Code, 1)
	handlers.WriteMarkers(ends, func(codes [][]wire.Code) { written <- codes })
	select {
	case codes := <-written:
		return codes, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (b *Broker) sendMarkers(ctx context.Context, broker int32, ends []markers.End) ([][]wire.Code, error) {
	request := kmsg.NewPtrWriteTxnMarkersRequest()
	request.Version = b.config.Load().IBP().WriteTxnMarkers()
	for _, e := range ends {
		m := kmsg.WriteTxnMarkersRequestMarker{ProducerID: e.ID, ProducerEpoch: e.Epoch, Committed: e.Commit, CoordinatorEpoch: e.CoordinatorEpoch}
		for _, p := range e.Partitions {
			if n := len(m.Topics); n == 0 || m.Topics[n-1].Topic != p.Topic {
				m.Topics = append(m.Topics, kmsg.WriteTxnMarkersRequestMarkerTopic{Topic: p.Topic})
			}
			last := &m.Topics[len(m.Topics)-1]
			last.Partitions = append(last.Partitions, p.Partition)
		}
		request.Markers = append(request.Markers, m)
	}
	response, err := b.markerConn(broker).Request(ctx, request)
	if err != nil {
		return nil, err
	}
	// Kafka answers markers and partitions in any order.
	type place struct {
		producer int64
		wire.TopicPartition
	}
	found := map[place]wire.Code{}
	for _, m := range response.(*kmsg.WriteTxnMarkersResponse).Markers {
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				found[place{m.ProducerID, wire.TopicPartition{Topic: t.Topic, Partition: p.Partition}}] = wire.Code(p.ErrorCode)
			}
		}
	}
	codes := make([][]wire.Code, len(ends))
	for i, e := range ends {
		for _, p := range e.Partitions {
			code, ok := found[place{e.ID, p}]
			if !ok {
				code = wire.UnknownServerError
			}
			codes[i] = append(codes[i], code)
		}
	}
	return codes, nil
}

func (b *Broker) markerConn(broker int32) *peer.Conn {
	b.markerConns.mu.Lock()
	defer b.markerConns.mu.Unlock()
	conn := b.markerConns.byBroker[broker]
	if conn == nil {
		conn = peer.New(peer.Options{
			Address:  func() (string, bool) { return b.address(broker) },
			ClientID: "broker-" + b.clientID() + "-txn-marker-sender", Timeout: b.config.Load().Duration("request.timeout.ms"),
			MaxPause: markerPause, Dialer: b.dialer(),
		})
		b.markerConns.byBroker[broker] = conn
	}
	return conn
}
