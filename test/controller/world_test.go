package controller

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/controller"
	"barnabas/internal/jute"
	"barnabas/internal/keeper"
	"barnabas/internal/metadata"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

// patience bounds every wait.
const patience = 30 * time.Second

// world is a ZooKeeper folder and the brokers on it.
type world struct {
	t       *testing.T
	connect string
	dial    func(context.Context, string) (net.Conn, error)
	zk      *zookeeper.Client // of the test itself

	mu struct {
		sync.Mutex
		brokers map[int32]*broker
	}
}

func newWorld(t *testing.T, connect string, dial func(context.Context, string) (net.Conn, error)) *world {
	w := &world{t: t, connect: connect, dial: dial}
	w.mu.brokers = map[int32]*broker{}
	w.zk = w.client(dial)
	t.Cleanup(w.zk.Close)
	if err := w.zk.EnsurePaths(w.ctx(), append(znode.BootPaths(), znode.DeleteTopics)...); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	w.t.Cleanup(cancel)
	return ctx
}

func (w *world) client(dial func(context.Context, string) (net.Conn, error)) *zookeeper.Client {
	w.t.Helper()
	c, err := zookeeper.New(zookeeper.Options{Connect: w.connect, Dial: dial, SessionTimeout: 20 * time.Second})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := c.Start(w.ctx()); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// broker is one fake broker with its real controller.
type broker struct {
	w        *world
	id       int32
	epoch    int64
	zk       *zookeeper.Client
	ctl      *controller.Controller
	metadata *metadata.Cache
	ended    chan struct{}

	mu struct {
		sync.Mutex
		conns  []net.Conn
		leads  map[string]int32 // partition to leader epoch, as LeaderAndIsr told
		silent bool             // answers no request
		closed bool
	}
}

func (w *world) broker(id int32, change ...func(*controller.Options)) *broker {
	w.t.Helper()
	b := &broker{w: w, id: id, metadata: metadata.New(), ended: make(chan struct{})}
	b.mu.leads = map[string]int32{}
	b.zk = w.client(b.dial)
	o := controller.Options{
		BrokerID: id, IBP: config.LatestIBP, ZooKeeper: b.zk, InterBrokerListener: "PLAINTEXT",
		Targets:           func(id int32, _ []controller.Endpoint) controller.Target { return w.target(id) },
		DeleteTopicEnable: true,
		Logger:            slog.New(slog.NewTextHandler(w.t.Output(), nil)).With("broker", id),
	}
	for _, f := range change {
		f(&o)
	}
	b.ctl = controller.New(o)
	b.register()
	w.mu.Lock()
	w.mu.brokers[id] = b
	w.mu.Unlock()
	go b.events()
	b.ctl.Start()
	w.t.Cleanup(b.stop)
	return b
}

func (b *broker) dial(ctx context.Context, addr string) (net.Conn, error) {
	dial := b.w.dial
	if dial == nil {
		dial = func(ctx context.Context, addr string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}
	}
	c, err := dial(ctx, addr)
	if err == nil {
		b.mu.Lock()
		b.mu.conns = append(b.mu.conns, c)
		b.mu.Unlock()
	}
	return c, err
}

// cut closes the broker's connections to ZooKeeper.
func (b *broker) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.mu.conns {
		c.Close()
	}
	b.mu.conns = nil
}

func (b *broker) register() {
	info := znode.NewBroker(5, []znode.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "localhost", Port: 9000 + b.id}}, nil, 1)
	err := b.zk.Retry(b.w.ctx(), func() error {
		_, err := b.zk.Multi(b.w.ctx(),
			zookeeper.CreateOp(znode.BrokerPath(b.id), nil, zookeeper.Ephemeral),
			zookeeper.SetOp(znode.BrokerPath(b.id), info.Encode(), 0))
		return err
	})
	if err != nil {
		b.w.t.Error(err)
		return
	}
	stat, _, err := b.zk.Exists(b.w.ctx(), znode.BrokerPath(b.id))
	if err != nil {
		b.w.t.Error(err)
	}
	b.epoch = stat.Czxid
}

func (b *broker) events() {
	defer close(b.ended)
	for e := range b.zk.Events() {
		if e.State == jute.StateExpired {
			if err := b.ctl.SessionExpired(b.w.ctx()); err != nil {
				b.w.t.Error(err)
			}
			if err := b.zk.Renew(b.w.ctx()); err != nil {
				b.w.t.Error(err)
				continue
			}
			b.register()
			b.ctl.Elect()
			continue
		}
		b.ctl.Event(e)
	}
}

// stop is the end of a broker, with its session.
func (b *broker) stop() {
	b.mu.Lock()
	closed := b.mu.closed
	b.mu.closed = true
	b.mu.Unlock()
	if closed {
		return
	}
	b.ctl.Close()
	b.zk.Close()
	<-b.ended
}

// expire makes ZooKeeper end the broker's session.
func (b *broker) expire() {
	thief, err := zookeeper.New(zookeeper.Options{Connect: b.w.connect, Dial: b.w.dial, SessionID: b.zk.SessionID(), Password: b.zk.Password()})
	if err != nil {
		b.w.t.Fatal(err)
	}
	if err := thief.Start(b.w.ctx()); err != nil {
		b.w.t.Fatal(err)
	}
	thief.Close()
}

// target is the way to the broker that has the id at the time of the call.
type target struct {
	w  *world
	id int32
}

func (w *world) target(id int32) controller.Target { return target{w, id} }

func (t target) broker() (*broker, error) {
	t.w.mu.Lock()
	b := t.w.mu.brokers[t.id]
	t.w.mu.Unlock()
	if b == nil {
		return nil, fmt.Errorf("no broker %d", t.id)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.closed || b.mu.silent {
		return nil, fmt.Errorf("broker %d does not answer", t.id)
	}
	return b, nil
}

func (t target) LeaderAndISR(_ context.Context, r *kmsg.LeaderAndISRRequest) (*kmsg.LeaderAndISRResponse, error) {
	b, err := t.broker()
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	resp := r.ResponseKind().(*kmsg.LeaderAndISRResponse)
	for _, s := range r.TopicStates {
		for _, p := range s.PartitionStates {
			b.mu.leads[fmt.Sprintf("%s-%d", s.Topic, p.Partition)] = p.LeaderEpoch
		}
	}
	return resp, nil
}

func (t target) UpdateMetadata(_ context.Context, r *kmsg.UpdateMetadataRequest) (*kmsg.UpdateMetadataResponse, error) {
	b, err := t.broker()
	if err != nil {
		return nil, err
	}
	b.metadata.Update(r)
	return r.ResponseKind().(*kmsg.UpdateMetadataResponse), nil
}

func (t target) StopReplica(_ context.Context, r *kmsg.StopReplicaRequest) (*kmsg.StopReplicaResponse, error) {
	b, err := t.broker()
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	resp := r.ResponseKind().(*kmsg.StopReplicaResponse)
	for _, s := range r.Topics {
		for _, p := range s.PartitionStates {
			if p.Delete {
				delete(b.mu.leads, fmt.Sprintf("%s-%d", s.Topic, p.Partition))
			}
			resp.Partitions = append(resp.Partitions, kmsg.StopReplicaResponsePartition{Topic: s.Topic, Partition: p.Partition})
		}
	}
	return resp, nil
}

// Waiting.

func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	real.Until(w.t, patience, what, ok)
}

// active waits for one controller of at least an epoch and returns it.
func (w *world) active(epoch int32) *broker {
	w.t.Helper()
	var found *broker
	w.until(fmt.Sprintf("a controller of epoch %d", epoch), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		found = nil
		n := 0
		for _, b := range w.mu.brokers {
			if b.ctl.IsActive() {
				found = b
				n++
			}
		}
		return n == 1 && found.ctl.Epoch() >= epoch && w.controllerID() == found.id
	})
	return found
}

func (w *world) controllerID() int32 {
	data, _, err := w.zk.Get(w.ctx(), znode.ControllerPath)
	if err != nil {
		return -1
	}
	c, err := znode.DecodeController(data)
	if err != nil {
		return -1
	}
	return c.BrokerID
}

// knows waits until brokers know of a topic with leaders for all partitions.
func (w *world) knows(topic string, partitions int, brokers ...*broker) {
	w.t.Helper()
	for _, b := range brokers {
		w.until(fmt.Sprintf("broker %d knows %s", b.id, topic), func() bool {
			t := b.metadata.Topic(topic)
			return t != nil && len(t.Partitions) == partitions &&
				!slices.ContainsFunc(t.Partitions, func(p *metadata.Partition) bool { return p.Leader < 0 })
		})
	}
}

func (w *world) get(path string) string {
	w.t.Helper()
	data, _, err := w.zk.Get(w.ctx(), path)
	if err != nil {
		w.t.Fatalf("%s: %v", path, err)
	}
	return string(data)
}

func (w *world) exists(path string) bool {
	w.t.Helper()
	_, ok, err := w.zk.Exists(w.ctx(), path)
	if err != nil {
		w.t.Fatalf("%s: %v", path, err)
	}
	return ok
}

func (w *world) create(path, data string) {
	w.t.Helper()
	var bytes []byte
	if data != "" {
		bytes = []byte(data)
	}
	if _, _, err := w.zk.Create(w.ctx(), path, bytes, zookeeper.Persistent); err != nil {
		w.t.Fatalf("%s: %v", path, err)
	}
}

func (w *world) set(path, data string) {
	w.t.Helper()
	if _, err := w.zk.Set(w.ctx(), path, []byte(data), -1); err != nil {
		w.t.Fatalf("%s: %v", path, err)
	}
}

// permit sets what everybody may do at a node.
func (w *world) permit(path string, perms int32) {
	w.t.Helper()
	if _, err := w.zk.SetACL(w.ctx(), path, []jute.ACL{{Perms: perms, ID: jute.ID{Scheme: "world", ID: "anyone"}}}, -1); err != nil {
		w.t.Fatal(err)
	}
}

// said is given when a line was logged, see heard.
type said chan struct{}

func (s said) wait(w *world) {
	w.t.Helper()
	select {
	case <-s:
	case <-w.ctx().Done():
		w.t.Fatal("waited in vain for a line of the log")
	}
}

// heard is a slog.Handler that listens for a message.
type heard struct {
	slog.Handler
	message string
	said    said
}

func (h heard) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == h.message {
		select {
		case h.said <- struct{}{}:
		default:
		}
	}
	return h.Handler.Handle(ctx, r)
}

func embedded(t testing.TB, dir string) *keeper.Server {
	t.Helper()
	s, err := keeper.Open(keeper.Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
