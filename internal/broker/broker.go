package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"barnabas/internal/api"
	"barnabas/internal/config"
	"barnabas/internal/controller"
	"barnabas/internal/coordinator/markers"
	"barnabas/internal/keeper"
	"barnabas/internal/metadata"
	"barnabas/internal/replica"
	"barnabas/internal/security"
	"barnabas/internal/server"
	"barnabas/internal/storage"
	"barnabas/internal/zookeeper"

	"github.com/twmb/franz-go/pkg/sasl"
)

// ErrStopped is what Start returns when its context ends before the broker
// serves.
var ErrStopped = errors.New("stopped while starting")

// Options are the arguments of Start.
type Options struct {
	Config *config.Broker
	Logger *slog.Logger
	Level  *slog.LevelVar // optional: the logger's, which AlterConfigs of BROKER_LOGGER changes
}

// Info is what a started broker tells of itself.
type Info struct {
	ID         int32
	ClusterID  string
	Listeners  []config.Listener // where it is bound
	Advertised []config.Listener // what clients are told
	Keeper     string            // host:port of the embedded ZooKeeper; "" if it serves nobody else or there is none
	LogDirs    []string          // those that are online
}

// Broker is a running broker. Stop must be called.
type Broker struct {
	log     *slog.Logger
	level   *slog.LevelVar
	config  *config.Dynamic
	info    Info
	started time.Time

	descriptors descriptors

	keeper   *keeper.Server // nil with an ensemble
	zk       *zookeeper.Client
	storage  *storage.Manager
	metadata *metadata.Cache
	replicas *replica.Manager
	groups   *api.Groups

	transactions *api.Transactions
	open         *api.OpenTransactions
	markers      *markers.Writer
	sasl         map[string]*security.Listener // by the name of a listener that has SASL
	users        *security.Credentials
	tls          map[string]*transport     // the same for TLS
	logins       map[string]sasl.Mechanism // how this broker authenticates to others, by the listener's name
	markerConns  markerConns
	verifier     *verifier
	handlers     atomic.Pointer[api.Broker] // api, once it is there

	controller *controller.Controller
	link       *controllerLink
	kin        kin
	api        *api.Broker
	server     *server.Server
	configs    *configWatcher

	unsafeSaid atomic.Int64 // see loud

	again <-chan time.Time // of watch: the registration is looked at once more; nil: it was not refused

	// epoch is the broker epoch: the czxid of the registration in force.
	epoch atomic.Int64

	built   chan struct{}   // closed when the parts are there, see build
	ctx     context.Context // ends when the broker stops
	cancel  context.CancelFunc
	running sync.WaitGroup // the goroutines of this package

	sockets []net.Listener // bound, in the order of the listeners; the server's from serve on

	// closers undo the start, last first. Start owns them, then Stop.
	closers []closer

	failed chan error // the first failure that ends the broker
}

type closer struct {
	name  string
	close func() error
}

// Start starts a broker and returns when it serves. With an error nothing of it
// is left running. ctx ends the start early, not the broker.
func Start(ctx context.Context, o Options) (*Broker, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	b := &Broker{log: o.Logger, level: o.Level, config: config.NewDynamic(o.Config), started: time.Now(),
		built: make(chan struct{}), failed: make(chan error, 1)}
	b.descriptors = ownDescriptors(o.Config.EmbeddedKeeper())
	b.ctx, b.cancel = context.WithCancel(context.Background())
	steps := []func(context.Context) error{
		b.bind, b.openKeeper, b.connect, b.identify, b.readDynamicConfig, b.openStorage, b.build, b.register, b.startController, b.serve,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			if ctx.Err() != nil {
				err = ErrStopped
			}
			if closing := b.closeAll(false); closing != nil {
				err = errors.Join(err, closing)
			}
			return nil, err
		}
	}
	return b, nil
}

// Info returns what the broker tells of itself.
func (b *Broker) Info() Info { return b.info }

// Failed returns a channel with the reason if the broker can't go on.
func (b *Broker) Failed() <-chan error { return b.failed }

func (b *Broker) fail(err error) {
	select {
	case b.failed <- err:
	default: // there is an earlier reason
	}
}

// Stop stops the broker cleanly: the controller moves leadership away, clients are let go, logs synced, checkpoints
// and the clean mark written, the session closed.
func (b *Broker) Stop() error {
	b.replicas.Leave()
	b.controlledShutdown()
	err := b.closeAll(true)
	b.log.Info("stopped", "uptime", time.Since(b.started).Round(time.Millisecond))
	return err
}

// closeAll undoes the start in reverse order.
func (b *Broker) closeAll(clean bool) error {
	b.cancel()
	var errs []error
	for i := len(b.closers) - 1; i >= 0; i-- {
		c := b.closers[i]
		began := time.Now()
		if err := c.close(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.name, err))
		}
		if clean {
			b.log.Debug("closed", "part", c.name, "took", time.Since(began))
		}
	}
	b.closers = nil
	return errors.Join(errs...)
}

func (b *Broker) onClose(name string, f func() error) {
	b.closers = append(b.closers, closer{name, f})
}

// bind opens the listening sockets first: a port in use is known at once, and
// clients that come early wait in the kernel's queue.
func (b *Broker) bind(context.Context) error {
	c := b.config.Load()
	if err := b.secure(c); err != nil {
		return err
	}
	bound := map[string]int{}
	for _, l := range c.Listeners() {
		socket, err := net.Listen("tcp", l.Address())
		if err != nil {
			return fmt.Errorf("listeners: %s: %w", l, err)
		}
		b.sockets = append(b.sockets, socket)
		b.onClose("listener "+l.Name, closeOnce(socket))
		l.Port = socket.Addr().(*net.TCPAddr).Port
		bound[l.Name] = l.Port
		b.info.Listeners = append(b.info.Listeners, l)
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("this machine's name: %w; set advertised.listeners", err)
	}
	b.info.Advertised = c.Advertise(bound, host)
	return nil
}

// closeOnce closes a socket that the server may have closed already.
func closeOnce(l net.Listener) func() error {
	return func() error {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}
