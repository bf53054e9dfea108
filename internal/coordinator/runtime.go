package coordinator

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"barnabas/internal/record"
	"barnabas/internal/wire"
)

// Options are the arguments of [New]. All without "optional" are needed.
type Options[M Machine] struct {
	// Topic is the internal topic, for log lines.
	Topic string
	// New returns the machine of a partition, without any state. epoch is the
	// coordinator's.
	New func(partition, epoch int32) M
	// Perform does what machines command, in order. It must not block. Optional if
	// they never do.
	Perform func(partition int32, command any)
	// Unloaded is told, in order with Perform, that a machine was dropped.
	// Optional.
	Unloaded func(partition int32)
	// CommitTimeout bounds how long a reply waits for the records to be
	// replicated. Optional: 5 s.
	CommitTimeout func() time.Duration
	// LoadBuffer is how many bytes are read at a time when a partition is loaded.
	// Optional: 5 MiB.
	LoadBuffer int
	// Codec compresses the batches.
	Codec  record.Codec
	Now    func() time.Time // optional
	Logger *slog.Logger     // optional
}

// Runtime runs the shards of one internal topic.
type Runtime[M Machine] struct {
	o     Options[M]
	loads chan struct{} // taken while a partition is loaded
	stop  chan struct{} // closed by Close
	// running counts the goroutines of shards.
	running sync.WaitGroup

	mu struct {
		sync.Mutex // guards what follows
		shards     map[int32]*shard[M]
		closed     bool
	}
}

const (
	maxLoads          = 4 // partitions that are loaded at the same time
	defaultLoadBuffer = 5 << 20
)

// New returns a Runtime that leads no partition yet.
func New[M Machine](o Options[M]) *Runtime[M] {
	if o.CommitTimeout == nil {
		o.CommitTimeout = func() time.Duration { return 5 * time.Second }
	}
	if o.LoadBuffer <= 0 {
		o.LoadBuffer = defaultLoadBuffer
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	r := &Runtime[M]{o: o, loads: make(chan struct{}, maxLoads), stop: make(chan struct{})}
	r.mu.shards = make(map[int32]*shard[M])
	return r
}

// Elected tells that this broker leads a partition from now on, or leads it
// still in a later epoch: then nothing is loaded again. It returns at once.
func (r *Runtime[M]) Elected(partition int32, log Log) {
	r.mu.Lock()
	if r.mu.closed {
		r.mu.Unlock()
		return
	}
	s := r.mu.shards[partition]
	if s == nil {
		s = newShard(r, partition)
		r.mu.shards[partition] = s
	}
	r.mu.Unlock()
	s.elected(log)
}

// Resigned tells that this broker leads a partition no more. It returns at
// once; callers that wait are told NOT_COORDINATOR.
func (r *Runtime[M]) Resigned(partition int32) {
	if s := r.shard(partition); s != nil {
		s.resigned()
	}
}

func (r *Runtime[M]) shard(partition int32) *shard[M] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.shards[partition]
}

// Do has f decide on a partition's machine, after what came before. f may
// answer c at once or leave it to a later event; c is failed if this broker
// does not lead the partition, or no more.
func (r *Runtime[M]) Do(partition int32, c Caller, f func(m M, now time.Time, out *Effects)) {
	s := r.shard(partition)
	if s == nil {
		c.Fail(wire.NotCoordinator)
		return
	}
	s.do(c, f)
}

// Forget takes back a request whose answer nobody waits for any more. The
// machine may still hold it.
func (r *Runtime[M]) Forget(partition int32, c Caller) {
	if s := r.shard(partition); s != nil {
		s.enqueue(event[M]{kind: forgotten, caller: c})
	}
}

// Led returns the partitions that are led here and loaded, in order, and
// whether some are being loaded.
func (r *Runtime[M]) Led() (active []int32, busy bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for partition, s := range r.mu.shards {
		switch s.phase() {
		case serving:
			active = append(active, partition)
		case loading, failed:
			busy = true
		}
	}
	slices.Sort(active)
	return active, busy
}

// Leads tells whether this broker leads a partition, and whether it is loaded.
func (r *Runtime[M]) Leads(partition int32) (leads, loaded bool) {
	s := r.shard(partition)
	if s == nil {
		return false, false
	}
	p := s.phase()
	return p != idle, p == serving
}

// Close ends every shard and waits for its goroutine. Callers that wait are
// told NOT_COORDINATOR.
func (r *Runtime[M]) Close() {
	r.mu.Lock()
	if r.mu.closed {
		r.mu.Unlock()
		return
	}
	r.mu.closed = true
	shards := make([]*shard[M], 0, len(r.mu.shards))
	for _, s := range r.mu.shards {
		shards = append(shards, s)
	}
	r.mu.Unlock()
	close(r.stop)
	for _, s := range shards {
		s.close()
	}
	r.running.Wait()
}
