package broker

import (
	"context"
	"sync"

	"barnabas/internal/api"
	"barnabas/internal/peer"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// verifier asks the transaction coordinators on other brokers which partitions
// transactions have (KIP-890, Kafka's AddPartitionsToTxnManager). To each broker
// there is one request at a time, which holds all questions that have come
// meanwhile; a goroutine runs while there are some.
type verifier struct {
	b       *Broker
	running sync.WaitGroup

	mu struct {
		sync.Mutex // guards what follows
		closed     bool
		brokers    map[int32]*verifierQueue
	}
}

type verifierQueue struct {
	conn    *peer.Conn
	waiting []*verification
	working bool
}

// verification is one question. What follows done is set before that is closed.
type verification struct {
	api.Verification
	done  chan struct{}
	codes []wire.Code
	err   error
}

// verificationVersion is the least version of AddPartitionsToTxn that asks only.
const verificationVersion = 4

func newVerifier(b *Broker) *verifier {
	v := &verifier{b: b}
	v.mu.brokers = map[int32]*verifierQueue{}
	return v
}

// ask is api.Broker.VerifyTransaction.
func (v *verifier) ask(ctx context.Context, broker int32, question api.Verification) ([]wire.Code, error) {
	q := &verification{Verification: question, done: make(chan struct{})}
	v.mu.Lock()
	if v.mu.closed {
		v.mu.Unlock()
		return nil, peer.ErrClosed
	}
	to := v.mu.brokers[broker]
	if to == nil {
		to = &verifierQueue{conn: peer.New(peer.Options{
			Address:  func() (string, bool) { return v.b.address(broker) },
			ClientID: "broker-" + v.b.clientID() + "-add-partitions-to-txn-manager", Negotiate: true,
			Timeout: v.b.config.Load().Duration("request.timeout.ms"), Dialer: v.b.dialer(),
		})}
		v.mu.brokers[broker] = to
	}
	to.waiting = append(to.waiting, q)
	if !to.working {
		to.working = true
		v.running.Go(func() { v.work(to) })
	}
	v.mu.Unlock()
	select {
	case <-q.done:
		return q.codes, q.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-v.b.ctx.Done():
		return nil, peer.ErrClosed
	}
}

// work asks what waits for a broker until nothing does.
func (v *verifier) work(to *verifierQueue) {
	for {
		v.mu.Lock()
		// A request names a transactional id once.
		now, later, named := []*verification(nil), []*verification(nil), map[string]struct{}{}
		for _, q := range to.waiting {
			if _, ok := named[q.TransactionalID]; ok {
				later = append(later, q)
				continue
			}
			named[q.TransactionalID] = struct{}{}
			now = append(now, q)
		}
		to.waiting = later
		to.working = len(now) > 0
		v.mu.Unlock()
		if len(now) == 0 {
			return
		}
		v.send(to.conn, now)
	}
}

func (v *verifier) send(conn *peer.Conn, all []*verification) {
	response, err := conn.RequestFor(v.b.ctx, func(versions *peer.Versions) (kmsg.Request, error) {
		version, err := versions.Best(int16(kmsg.AddPartitionsToTxn), 5)
		if err == nil && version < verificationVersion {
			err = api.ErrNotVerified
		}
		return verificationRequest(version, all), err
	})
	found := map[string]map[wire.TopicPartition]wire.Code{}
	failed := wire.None
	if err == nil {
		answer := response.(*kmsg.AddPartitionsToTxnResponse)
		if failed = wire.Code(answer.ErrorCode); failed == wire.ClusterAuthorizationFailed {
			failed = wire.TransactionAbortable // which is not the producer's fault: it was not verified
		}
		for _, t := range answer.Transactions {
			codes := map[wire.TopicPartition]wire.Code{}
			for _, topic := range t.Topics {
				for _, p := range topic.Partitions {
					codes[wire.TopicPartition{Topic: topic.Topic, Partition: p.Partition}] = wire.Code(p.ErrorCode)
				}
			}
			found[t.TransactionalID] = codes
		}
	}
	for _, q := range all {
		q.err = err
		for _, p := range q.Partitions {
			code, ok := found[q.TransactionalID][p]
			switch {
			case failed != wire.None:
				code = failed
			case !ok:
				code = wire.UnknownServerError
			}
			q.codes = append(q.codes, code)
		}
		close(q.done)
	}
}

func verificationRequest(version int16, all []*verification) *kmsg.AddPartitionsToTxnRequest {
	r := kmsg.NewPtrAddPartitionsToTxnRequest()
	r.Version = version
	for _, q := range all {
		t := kmsg.AddPartitionsToTxnRequestTransaction{TransactionalID: q.TransactionalID, ProducerID: q.ID, ProducerEpoch: q.Epoch, VerifyOnly: true}
		topics := map[string]int{}
		for _, p := range q.Partitions {
			at, ok := topics[p.Topic]
			if !ok {
				at = len(t.Topics)
				topics[p.Topic] = at
				t.Topics = append(t.Topics, kmsg.AddPartitionsToTxnRequestTransactionTopic{Topic: p.Topic})
			}
			t.Topics[at].Partitions = append(t.Topics[at].Partitions, p.Partition)
		}
		r.Transactions = append(r.Transactions, t)
	}
	return r
}

// Close ends what is being asked.
func (v *verifier) Close() {
	v.mu.Lock()
	v.mu.closed = true
	for _, to := range v.mu.brokers {
		to.conn.Close()
	}
	v.mu.Unlock()
	v.running.Wait()
}
