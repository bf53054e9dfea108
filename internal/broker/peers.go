package broker

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/peer"
	"barnabas/internal/replica"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// errNoController: no UpdateMetadata has named a live controller yet.
var errNoController = errors.New("no controller is known")

func hostPort(host string, port int32) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }

// controlListener is the listener of other brokers that the controller's
// requests, and those to the controller, go to.
func controlListener(c *config.Broker) string {
	if name := c.ControlPlaneListener(); name != "" {
		return name
	}
	return c.InterBrokerListener()
}

// clientID is how this broker's requests to others are signed, as Kafka's are.
func (b *Broker) clientID() string { return strconv.Itoa(int(b.info.ID)) }

// dialer connects to other brokers' inter-broker listener.
func (b *Broker) dialer() peer.Dialer { return b.dialerTo(b.config.Load().InterBrokerListener()) }

// dialerTo connects to a listener of other brokers, which has the security of
// this broker's listener of that name.
func (b *Broker) dialerTo(listener string) peer.Dialer {
	var d peer.Dialer = peer.Plaintext{ReceiveBuffer: b.config.Load().Int("replica.socket.receive.buffer.bytes")}
	if t := b.tls[listener]; t != nil {
		d = peer.TLS{Dialer: d, Config: t.client.Load}
	}
	if m := b.logins[listener]; m != nil {
		d = peer.SASL{Dialer: d, Mechanism: m, ClientID: b.clientID()}
	}
	return loud{d, b}
}

// loud is a Dialer that says why no secure connection comes about, which no
// waiting mends: at most one line in unsafeEvery.
type loud struct {
	peer.Dialer
	b *Broker
}

const unsafeEvery = 10 * time.Second

func (d loud) Dial(ctx context.Context, address string) (net.Conn, error) {
	nc, err := d.Dialer.Dial(ctx, address)
	if errors.Is(err, peer.ErrUnsafe) && ctx.Err() == nil {
		last, now := d.b.unsafeSaid.Load(), time.Now().UnixNano()
		if now-last >= int64(unsafeEvery) && d.b.unsafeSaid.CompareAndSwap(last, now) {
			d.b.log.Warn("another broker can't be asked", "err", err)
		}
	}
	return nc, err
}

// address returns where a live broker's inter-broker listener is.
func (b *Broker) address(id int32) (string, bool) {
	return b.addressOn(id, b.config.Load().InterBrokerListener())
}

func (b *Broker) addressOn(id int32, listener string) (string, bool) {
	if e := b.metadata.Cluster().Endpoint(id, listener); e != nil {
		return hostPort(e.Host, e.Port), true
	}
	return "", false
}

// cluster is the cluster as replication sees it.
func (b *Broker) cluster(c *config.Broker) *replica.Cluster {
	return &replica.Cluster{
		IBP: c.IBP(), Config: b.config, Address: b.address,
		Alive:  func(id int32) bool { return b.metadata.Cluster().Broker(id) != nil },
		Dialer: b.dialer(), ClientID: "broker-" + b.clientID() + "-fetcher",
		AlterPartition: b.link.alterPartition, ZooKeeper: b.zk,
	}
}

// controllerLink asks the active controller, wherever it runs: the one that the
// last UpdateMetadata named, or this broker's own. It follows the controller as
// it moves.
type controllerLink struct {
	b  *Broker
	mu struct {
		sync.Mutex
		id     int32
		conn   *peer.Conn // to the broker id; nil: none
		closed bool
	}
}

// ask sends what build makes for the versions that the controller serves. It is
// for another broker only: see own.
func (l *controllerLink) ask(ctx context.Context, build func(*peer.Versions) (kmsg.Request, error)) (kmsg.Response, error) {
	conn, id, err := l.to()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		l.whileController(ctx, id)
		cancel() // a controller that hangs is not waited for once there is another
	}()
	response, err := conn.RequestFor(ctx, build)
	cancel()
	<-watched
	return response, err
}

// whileController returns when another broker is the controller, or ctx ends.
func (l *controllerLink) whileController(ctx context.Context, id int32) {
	l.b.metadata.WaitFor(func() bool { return l.b.metadata.Cluster().ControllerID != id || l.own() }, ctx.Done())
}

// own tells whether this broker is the active controller.
func (l *controllerLink) own() bool { return l.b.controller.IsActive() }

func (l *controllerLink) to() (conn *peer.Conn, id int32, err error) {
	id = l.b.metadata.Cluster().ControllerID
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.closed {
		return nil, id, peer.ErrClosed
	}
	if l.mu.conn != nil && l.mu.id != id {
		l.mu.conn.Close()
		l.mu.conn = nil
	}
	if id < 0 || id == l.b.info.ID {
		return nil, id, errNoController
	}
	if l.mu.conn == nil {
		c := l.b.config.Load()
		l.mu.id = id
		l.mu.conn = peer.New(peer.Options{
			Address:  func() (string, bool) { return l.b.addressOn(id, controlListener(l.b.config.Load())) },
			ClientID: l.b.clientID(), Negotiate: true, Timeout: c.Duration("controller.socket.timeout.ms"),
			MaxPause: controlPause, Dialer: l.b.dialerTo(controlListener(c)),
		})
	}
	return l.mu.conn, id, nil
}

// Close ends what is being asked.
func (l *controllerLink) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.closed = true
	if l.mu.conn != nil {
		l.mu.conn.Close()
	}
}

// alterPartition asks the controller for other ISRs, in the newest version that
// it serves up to most.
func (l *controllerLink) alterPartition(ctx context.Context, most int16, build func(version int16) *kmsg.AlterPartitionRequest) (*kmsg.AlterPartitionResponse, error) {
	if l.own() {
		return l.b.controller.AlterPartition(ctx, build(most)), nil
	}
	response, err := l.ask(ctx, func(v *peer.Versions) (kmsg.Request, error) {
		version, err := v.Best(int16(kmsg.AlterPartition), most)
		if err != nil {
			return nil, err
		}
		return build(version), nil
	})
	if err != nil {
		return nil, err
	}
	return response.(*kmsg.AlterPartitionResponse), nil
}

// allocationPause is the pause before the controller is asked again for
// producer ids (RPCProducerIdManager).
const allocationPause = 50 * time.Millisecond

// allocateProducerIDs asks the active controller for a block of producer ids,
// again after each refusal, until ctx ends.
func (l *controllerLink) allocateProducerIDs(ctx context.Context) (start int64, count int32, err error) {
	for {
		if start, count, err = l.askForProducerIDs(ctx); err == nil {
			return start, count, nil
		}
		pause := time.NewTimer(allocationPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return 0, 0, err
		}
	}
}

func (l *controllerLink) askForProducerIDs(ctx context.Context) (start int64, count int32, err error) {
	id, epoch := l.b.info.ID, l.b.epoch.Load()
	if l.own() {
		return l.b.controller.AllocateProducerIDs(ctx, id, epoch)
	}
	response, err := l.ask(ctx, func(v *peer.Versions) (kmsg.Request, error) {
		version, err := v.Best(int16(kmsg.AllocateProducerIDs), 0)
		request := kmsg.NewPtrAllocateProducerIDsRequest()
		request.Version, request.BrokerID, request.BrokerEpoch = version, id, epoch
		return request, err
	})
	if err != nil {
		return 0, 0, err
	}
	r := response.(*kmsg.AllocateProducerIDsResponse)
	if code := wire.Code(r.ErrorCode); code != wire.None {
		return 0, 0, code
	}
	return r.ProducerIDStart, r.ProducerIDLen, nil
}
