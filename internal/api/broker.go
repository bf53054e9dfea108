package api

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/controller"
	"barnabas/internal/jute"
	"barnabas/internal/metadata"
	"barnabas/internal/replica"
	"barnabas/internal/storage"
	"barnabas/internal/wire"
	"barnabas/internal/znode"
)

// ErrClosing is why a connection closes whose request came while the broker stops.
var ErrClosing = errors.New("the broker is stopping")

// ZooKeeper is what the handlers ask of the ZooKeeper client
// (*zookeeper.Client). An error is a jute.Error of the operation, or says why
// no answer came.
type ZooKeeper interface {
	Get(ctx context.Context, path string) ([]byte, jute.Stat, error)
	Exists(ctx context.Context, path string) (jute.Stat, bool, error)
	Children(ctx context.Context, path string) ([]string, error)
	Set(ctx context.Context, path string, data []byte, version int32) (jute.Stat, error)
	Delete(ctx context.Context, path string, version int32) error
	// CreateRecursive makes a persistent node, and its parents with null data
	// where they are missing.
	CreateRecursive(ctx context.Context, path string, data []byte) error
	// CreateSequential makes a persistent sequential node and returns its path.
	CreateSequential(ctx context.Context, prefix string, data []byte) (string, error)
	// SetChecked sets a node's data only if another node has this version, in
	// one transaction.
	SetChecked(ctx context.Context, checked string, version int32, path string, data []byte) error
}

// Controller is what the handlers ask of this broker's controller
// (*controller.Controller).
type Controller interface {
	IsActive() bool
	CreateTopics(ctx context.Context, topics []controller.NewTopic) []error
	CreatePartitions(ctx context.Context, topic string, from int, added [][]int32) error
	DeleteTopics(ctx context.Context, topics []string) []error
}

// Broker is what the handlers work on; internal/broker fills the exported
// fields in before the first connection is served.
type Broker struct {
	ID        int32
	ClusterID string
	Config    *config.Dynamic
	Metadata  *metadata.Cache
	// Replicas are the partitions of this broker.
	Replicas *replica.Manager
	// Storage is the log dirs.
	Storage *storage.Manager
	// Groups coordinates the consumer groups of the partitions of
	// __consumer_offsets that this broker leads.
	Groups *Groups
	// Transactions coordinates the transactional ids of the partitions of
	// __transaction_state that this broker leads.
	Transactions *Transactions
	// OpenTransactions are those that Transactions has open.
	OpenTransactions *OpenTransactions
	// VerifyTransaction asks the coordinator of a transaction, which is another
	// broker, and returns a code for each partition. ErrNotVerified: that broker
	// can't tell.
	VerifyTransaction func(ctx context.Context, broker int32, v Verification) ([]wire.Code, error)
	// Fetches holds the fetch sessions.
	Fetches   *FetchSessions
	ZooKeeper ZooKeeper
	// Controller is this broker's own, active or not.
	Controller Controller
	// Services are the same controller's, for other brokers and administrators.
	Services ControllerServices
	// Controlled does what the active controller says.
	Controlled Controlled
	// AllocateProducerIDs asks the active controller, until ctx ends, for a block
	// of producer ids: the first and how many.
	AllocateProducerIDs func(ctx context.Context) (start int64, count int32, err error)
	// RackAware tells whether consumers are sent to a replica in their rack
	// (replica.selector.class).
	RackAware bool
	// AllOurs tells whether every live broker has said that it is Barnabas. It
	// is false for a moment when a broker has just come.
	AllOurs func() bool
	Log     *slog.Logger
	// LogLevel is the level of Log; nil if it can't change.
	LogLevel *slog.LevelVar
	Now      func() time.Time

	producerIDs producerIDs
	// strangersSince is when another broker was first seen to be something else
	// than Barnabas (ms), 0: none is.
	strangersSince atomic.Int64

	work struct {
		sync.Mutex // guards what follows
		closed     bool
		ctx        context.Context
		cancel     context.CancelFunc
		running    sync.WaitGroup
	}
	advertised sync.Map // listener names whose address has been logged
	creating   sync.Map // topics that are being created automatically
}

// Go runs f on a goroutine of its own, which Close waits for. ctx ends when
// the broker closes. It returns false, and does not run f, after Close.
func (b *Broker) Go(f func(ctx context.Context)) bool {
	b.work.Lock()
	defer b.work.Unlock()
	if b.work.closed {
		return false
	}
	if b.work.ctx == nil {
		b.work.ctx, b.work.cancel = context.WithCancel(context.Background())
	}
	ctx := b.work.ctx
	b.work.running.Go(func() { f(ctx) })
	return true
}

// Close ends the goroutines of the handlers and waits for them. Requests that
// come later close their connections.
func (b *Broker) Close() {
	b.work.Lock()
	b.work.closed = true
	if b.work.cancel != nil {
		b.work.cancel()
	}
	b.work.Unlock()
	b.work.running.Wait()
}

// zooKeeperTimeout bounds what one request waits for ZooKeeper, as a client's
// default.api.timeout.ms does: nobody waits for the answer any longer.
const zooKeeperTimeout = 60 * time.Second

// background runs the rest of a request on a goroutine of its own, with a
// context that ends when the broker closes or after zooKeeperTimeout. f must
// end the request. Such requests of one connection follow one another, so that
// DescribeConfigs sees what the AlterConfigs before it did.
func (b *Broker) background(q *Request, f func(ctx context.Context)) {
	before, done := q.Conn.background, make(chan struct{})
	q.Conn.background = done
	ok := b.Go(func(ctx context.Context) {
		defer close(done)
		if before != nil {
			<-before
		}
		ctx, cancel := context.WithTimeout(ctx, zooKeeperTimeout)
		defer cancel()
		defer b.survive(q)
		f(ctx)
	})
	if !ok {
		close(done)
		q.Fail(ErrClosing)
	}
}

// patience is background for a request whose end is a wait: waiting ends early
// when nobody can read the answer any more, ctx does not, so that what was
// begun is done.
func (b *Broker) patience(q *Request, f func(ctx, waiting context.Context)) {
	gone, leave := context.WithCancel(context.Background())
	q.Cancel = leave
	b.background(q, func(ctx context.Context) {
		waiting, cancel := context.WithCancel(ctx)
		defer cancel()
		defer leave()
		defer context.AfterFunc(gone, cancel)()
		f(ctx, waiting)
	})
}

// whenUntold is the timeout of a request that names none.
const whenUntold = 5 * time.Second

// reach returns ctx once ZooKeeper answers, or, when it does not within a
// request's own timeout, a context that is over: with it all that would be
// asked of ZooKeeper ends at once and nothing is begun, so that the client is
// told REQUEST_TIMED_OUT while it listens, and no topic comes or goes after
// that.
func (b *Broker) reach(ctx context.Context, timeoutMillis int32) context.Context {
	timeout := whenUntold
	if timeoutMillis > 0 {
		timeout = time.Duration(timeoutMillis) * time.Millisecond
	}
	short, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if _, _, err := b.ZooKeeper.Exists(short, znode.Topics); err != nil {
		return short
	}
	return ctx
}

var errPanic = errors.New("the handler panicked")

// survive keeps a panic in one request's background work from ending the broker.
func (b *Broker) survive(q *Request) {
	if p := recover(); p != nil {
		b.Log.Error("a request's background work panicked", "api", Lookup(q.Key).Name, "panic", p, "stack", string(debug.Stack()))
		q.Fail(errPanic)
	}
}

// authorizedOperations of a broker without an authorizer: all that the kind of
// resource has (AclEntry.supportedOperations), a bit for each AclOperation code.
const (
	noOperations      = -1 << 31 // nobody asked
	topicOperations   = 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<10 | 1<<11
	clusterOperations = 1<<5 | 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<11 | 1<<12
)
