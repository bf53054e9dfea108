package broker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"barnabas/internal/controller"
	"barnabas/internal/jute"
	"barnabas/internal/metadata"
	"barnabas/internal/peer"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// local is this broker as the active controller talks to it: over the network,
// through package api, or without one, when the controller is this broker's.
type local struct{ b *Broker }

func (l local) LeaderAndISR(ctx context.Context, r *kmsg.LeaderAndISRRequest) (*kmsg.LeaderAndISRResponse, error) {
	if fresh := l.unknownTopics(r); len(fresh) > 0 {
		err := l.b.configs.readTopics(ctx, fresh)
		switch {
		case errors.Is(err, jute.ErrNoAuth): // it may last: the controller is to go on with all else
			l.b.log.Error("partitions are refused whose topics' overrides can't be read", "err", err)
		case err != nil:
			return nil, err
		}
	}
	if err := l.setStraysAside(ctx, r); err != nil {
		return nil, err
	}
	return l.b.replicas.ApplyLeaderAndISR(r), nil
}

// unknownTopics returns the topics that this broker has no replica of yet:
// their configuration is read before their logs are made.
func (l local) unknownTopics(r *kmsg.LeaderAndISRRequest) (fresh []string) {
	unknown := func(name string) {
		if l.b.replicas.Topic([]byte(name)) == nil && (len(fresh) == 0 || fresh[len(fresh)-1] != name) {
			fresh = append(fresh, name)
		}
	}
	for i := range r.TopicStates {
		unknown(r.TopicStates[i].Topic)
	}
	for i := range r.PartitionStates { // v0 and v1
		unknown(r.PartitionStates[i].Topic)
	}
	return fresh
}

func (l local) UpdateMetadata(_ context.Context, r *kmsg.UpdateMetadataRequest) (*kmsg.UpdateMetadataResponse, error) {
	resp := r.ResponseKind().(*kmsg.UpdateMetadataResponse)
	resp.SetVersion(r.Version)
	code := l.b.replicas.CheckController(r.ControllerEpoch, r.BrokerEpoch)
	resp.ErrorCode = int16(code)
	if code == wire.None {
		before := l.b.metadata.Cluster()
		removed, ok := l.b.metadata.Update(r)
		if !ok {
			resp.ErrorCode = int16(wire.StaleControllerEpoch)
			return resp, nil
		}
		l.b.partitionsDeleted(removed)
		if !sameBrokers(before, l.b.metadata.Cluster()) {
			l.b.replicas.BrokersChanged()
		}
	}
	return resp, nil
}

func sameBrokers(a, b *metadata.Cluster) bool {
	return slices.EqualFunc(a.Brokers, b.Brokers, func(x, y *metadata.Broker) bool { return x.ID == y.ID })
}

func (l local) StopReplica(_ context.Context, r *kmsg.StopReplicaRequest) (*kmsg.StopReplicaResponse, error) {
	return l.b.replicas.StopReplica(r), nil
}

// controlPause bounds the pauses between tries to reach a broker for the
// controller, who itself waits 100 ms after each.
const controlPause = 100 * time.Millisecond

// remote is another broker. Its calls come from one sender, with one context,
// which ends when the broker's registration goes or the controller's term does.
type remote struct {
	conn *peer.Conn
	once sync.Once
}

// remoteTarget returns the way to a broker by the endpoints of its registration.
func (b *Broker) remoteTarget(endpoints []controller.Endpoint) *remote {
	c := b.config.Load()
	address, found := addressIn(endpoints, controlListener(c))
	return &remote{conn: peer.New(peer.Options{
		Address:  func() (string, bool) { return address, found },
		ClientID: b.clientID(), Timeout: c.Duration("controller.socket.timeout.ms"), MaxPause: controlPause, Dialer: b.dialerTo(controlListener(c)),
	})}
}

func ask[R kmsg.Response](ctx context.Context, r *remote, request kmsg.Request) (answer R, err error) {
	r.once.Do(func() { context.AfterFunc(ctx, r.conn.Close) })
	response, err := r.conn.Request(ctx, request)
	if err != nil {
		return answer, err
	}
	return response.(R), nil
}

func (r *remote) LeaderAndISR(ctx context.Context, q *kmsg.LeaderAndISRRequest) (*kmsg.LeaderAndISRResponse, error) {
	return ask[*kmsg.LeaderAndISRResponse](ctx, r, q)
}

func (r *remote) UpdateMetadata(ctx context.Context, q *kmsg.UpdateMetadataRequest) (*kmsg.UpdateMetadataResponse, error) {
	return ask[*kmsg.UpdateMetadataResponse](ctx, r, q)
}

func (r *remote) StopReplica(ctx context.Context, q *kmsg.StopReplicaRequest) (*kmsg.StopReplicaResponse, error) {
	return ask[*kmsg.StopReplicaResponse](ctx, r, q)
}
