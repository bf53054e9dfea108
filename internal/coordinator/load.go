package coordinator

import (
	"errors"
	"time"

	"barnabas/internal/record"
)

const (
	// A shard that could not read its partition, or append to it, loads it again
	// after firstPause, and after longer and longer ones up to longestPause while
	// no append succeeds.
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
	// maxLoadBatch bounds a batch, packed and unpacked: no coordinator writes
	// such large ones.
	maxLoadBatch = 256 << 20
	// maxComplaints is how many foreign records of a load are logged one by one.
	maxComplaints = 10
)

var errLoadEnded = errors.New("no longer wanted")

type loadResult[M Machine] struct {
	machine  M
	position int64
	records  int
	err      error
	began    time.Time
}

// load reads the partition into a new machine on a goroutine of its own.
func (s *shard[M]) load(run uint64) {
	log := s.log
	s.r.running.Go(func() {
		select {
		case s.r.loads <- struct{}{}:
		case <-s.r.stop:
			return
		}
		l := loader[M]{s: s, log: log, wanted: func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.mu.run == run
		}}
		l.result.began = s.r.o.Now()
		l.result.machine = s.r.o.New(s.partition, log.Epoch())
		l.result.err = l.all()
		<-s.r.loads
		s.enqueue(event[M]{kind: loaded, run: run, result: l.result})
	})
}

// loadLater has the partition loaded again after a pause.
func (s *shard[M]) loadLater() {
	s.pause = min(max(2*s.pause, firstPause), longestPause)
	s.reload = s.r.o.Now().Add(s.pause)
}

// loadAgain starts another try after a load or an append that failed.
func (s *shard[M]) loadAgain() {
	s.mu.Lock()
	if s.mu.phase != failed {
		s.mu.Unlock()
		return
	}
	s.mu.run++
	s.mu.phase = loading
	run := s.mu.run
	s.mu.Unlock()
	s.load(run)
}

// install begins to serve with a machine that was loaded.
func (s *shard[M]) install(e *event[M], now time.Time) {
	s.mu.Lock()
	wanted := s.mu.run == e.run
	if wanted {
		s.mu.phase = serving
		if e.result.err != nil {
			s.mu.phase = failed
		}
	}
	s.mu.Unlock()
	if !wanted {
		return
	}
	log := s.r.o.Logger.With("topic", s.r.o.Topic, "partition", s.partition)
	if e.result.err != nil {
		log.Error("a coordinator's partition cannot be loaded; trying again", "err", e.result.err)
		s.loadLater()
		return
	}
	s.machine, s.run, s.position = e.result.machine, e.run, e.result.position
	log.Debug("a coordinator's partition is loaded", "records", e.result.records, "took", now.Sub(e.result.began))
	s.await(s.position, nil) // reads wait until all that was loaded is committed
	s.machine.Loaded(now, &s.effects)
	s.absorb(now)
}

// loader reads one partition.
type loader[M Machine] struct {
	s          *shard[M]
	log        Log
	wanted     func() bool
	result     loadResult[M]
	complaints int
}

func (l *loader[M]) all() error {
	at, end := l.log.Bounds()
	buf := make([]byte, min(l.s.r.o.LoadBuffer, int(min(end-at, 1<<20)*1024+64<<10)))
	for at < end {
		if !l.wanted() {
			return errLoadEnded
		}
		read, err := l.log.Read(at, end, buf)
		if err != nil {
			return err
		}
		next := at
		split := record.Split(read)
		for split.Next() {
			b := split.Batch()
			l.batch(b, at)
			next = max(next, b.NextOffset())
		}
		if err := split.Err(); err != nil && !errors.Is(err, record.ErrTorn) {
			return err
		}
		if next == at {
			break // a gap up to the end
		}
		at = next
	}
	l.result.position = end
	if l.complaints > maxComplaints {
		l.s.r.o.Logger.Warn("foreign records of a coordinator's partition were skipped",
			"topic", l.s.r.o.Topic, "partition", l.s.partition, "count", l.complaints)
	}
	return nil
}

// batch replays the records of a batch that lie at or above offset from.
func (l *loader[M]) batch(b record.Batch, from int64) {
	if b.LastOffset() < from {
		return
	}
	if err := b.Check(); err != nil {
		l.complain(b.BaseOffset(), err)
		return
	}
	err := b.Each(maxLoadBatch, func(r *record.Record) error {
		if r.Offset < from {
			return nil
		}
		l.result.records++
		if b.Control() {
			if m, ok := markerOf(b, r); ok {
				l.result.machine.End(m, r.Offset)
			}
			return nil
		}
		e := Entry{Position: r.Offset, Time: r.Timestamp, Record: Record{r.Key, r.Value}}
		if b.Transactional() {
			e.Transactional, e.Producer = true, Producer{b.ProducerID(), b.ProducerEpoch()}
		}
		if err := l.result.machine.Replay(e); err != nil {
			l.complain(r.Offset, err)
		}
		return nil
	})
	if err != nil {
		l.complain(b.BaseOffset(), err)
	}
}

func (l *loader[M]) complain(offset int64, err error) {
	if l.complaints++; l.complaints <= maxComplaints {
		l.s.r.o.Logger.Warn("skipped a foreign record of a coordinator's partition",
			"topic", l.s.r.o.Topic, "partition", l.s.partition, "offset", offset, "err", err)
	}
}
