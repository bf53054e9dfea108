package broker

import (
	"context"
	"slices"
	"sync"
	"time"

	"barnabas/internal/controller"
	"barnabas/internal/metadata"
	"barnabas/internal/peer"
)

// kinTimeout bounds one question to a broker whether it is Barnabas.
const kinTimeout = 5 * time.Second

// kin knows which of the live brokers are Barnabas: each is asked when
// UpdateMetadata tells of it, and again when it may be another process. One
// goroutine, run, follows the metadata; each question has one of its own.
type kin struct {
	b  *Broker
	mu struct {
		sync.Mutex
		known map[int32]relation // all but this broker
	}
}

// relation is what is known of a broker. Since and the controller's epoch tell
// whether to ask again: a new controller may have missed that a broker went.
type relation struct {
	since uint64
	epoch int32
	stop  context.CancelFunc // of the question
	ours  bool
}

// all tells whether every live broker has said that it is Barnabas.
func (k *kin) all() bool {
	cluster := k.b.metadata.Cluster()
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(cluster.Brokers) > 0 && !slices.ContainsFunc(cluster.Brokers, func(b *metadata.Broker) bool {
		r := k.mu.known[b.ID]
		return b.ID != k.b.info.ID && !(r.ours && r.since == b.Since)
	})
}

// run follows the live brokers until ctx ends.
func (k *kin) run(ctx context.Context) {
	k.mu.Lock()
	k.mu.known = map[int32]relation{}
	k.mu.Unlock()
	var asking sync.WaitGroup
	defer asking.Wait()
	for {
		changed := k.b.metadata.Changed()
		k.follow(ctx, k.b.metadata.Cluster(), &asking)
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// follow forgets who is gone and asks who is new.
func (k *kin) follow(ctx context.Context, cluster *metadata.Cluster, asking *sync.WaitGroup) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, r := range k.mu.known {
		if cluster.Broker(id) == nil {
			r.stop()
			delete(k.mu.known, id)
		}
	}
	for _, broker := range cluster.Brokers {
		r, known := k.mu.known[broker.ID]
		same := known && r.since == broker.Since
		if broker.ID == k.b.info.ID || same && r.epoch == cluster.ControllerEpoch {
			continue
		}
		if known {
			r.stop()
		}
		ctx, cancel := context.WithCancel(ctx)
		k.mu.known[broker.ID] = relation{since: broker.Since, epoch: cluster.ControllerEpoch, stop: cancel, ours: same && r.ours}
		asking.Go(func() {
			defer cancel()
			k.ask(ctx, broker)
		})
	}
}

// ask asks a broker until it answers.
func (k *kin) ask(ctx context.Context, broker *metadata.Broker) {
	conn := k.b.kinConn(func() (string, bool) {
		e := broker.Endpoint(k.b.config.Load().InterBrokerListener())
		if e == nil {
			return "", false
		}
		return hostPort(e.Host, e.Port), true
	})
	defer conn.Close()
	for ctx.Err() == nil {
		versions, err := conn.Versions(ctx)
		if err != nil {
			continue // after a pause, which conn makes
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if r := k.mu.known[broker.ID]; ctx.Err() == nil { // or the question was asked anew
			r.ours = versions.Kin() > 0
			k.mu.known[broker.ID] = r
		}
		return
	}
}

func (b *Broker) kinConn(address func() (string, bool)) *peer.Conn {
	return peer.New(peer.Options{Address: address, ClientID: b.clientID(), Negotiate: true, Timeout: kinTimeout, Dialer: b.dialer()})
}

// identifyPeer asks for the controller whether a broker is Barnabas, by the
// endpoints of its registration.
func (b *Broker) identifyPeer(ctx context.Context, endpoints []controller.Endpoint) (bool, error) {
	conn := b.kinConn(func() (string, bool) { return addressIn(endpoints, controlListener(b.config.Load())) })
	defer conn.Close()
	versions, err := conn.Versions(ctx)
	return err == nil && versions.Kin() > 0, err
}

// addressIn finds a listener's address among the endpoints of a registration.
func addressIn(endpoints []controller.Endpoint, listener string) (string, bool) {
	i := slices.IndexFunc(endpoints, func(e controller.Endpoint) bool { return e.Listener == listener })
	if i < 0 {
		return "", false
	}
	return hostPort(endpoints[i].Host, endpoints[i].Port), true
}
