package txn_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"barnabas/internal/coordinator"
	"barnabas/internal/coordinator/markers"
	"barnabas/internal/coordinator/memlog"
	"barnabas/internal/coordinator/txn"
	"barnabas/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	partitions = 3
	producers  = 3
	brokers    = 2
)

// write is a record of a user's partition: data, or a marker.
type write struct {
	producer coordinator.Producer
	value    int
	end      bool
	commit   bool
}

// cluster is a coordinator whose leader dies again and again, and the user's
// partitions, whose leaders refuse now and then.
type cluster struct {
	p       memlog.Partition
	r       *coordinator.Runtime[*txn.Machine]
	markers *markers.Writer

	mu        sync.Mutex
	random    *rand.Rand
	logs      [partitions][]write
	epochs    [partitions]map[int64]int32 // the last coordinator epoch of a producer's marker
	committed map[int]bool                // values whose EndTxn(commit) was answered with success
	aborted   map[int]bool
	prepared  map[string]bool // ids whose markers are being written
	fresh     int64
	values    int
	stop      chan struct{}
}

type answer struct {
	response any
	code     wire.Code
}

type waiter chan answer

func (w waiter) Answer(r any)        { w <- answer{response: r} }
func (w waiter) Fail(code wire.Code) { w <- answer{code: code} }

func (c *cluster) ask(f func(m *txn.Machine, from coordinator.Caller, now time.Time, out *coordinator.Effects)) (any, wire.Code) {
	w := make(waiter, 2)
	c.r.Do(0, w, func(m *txn.Machine, now time.Time, out *coordinator.Effects) { f(m, w, now, out) })
	a := <-w
	return a.response, a.code
}

// settle asks until the answer is one that a client does not retry.
func (c *cluster) settle(f func(m *txn.Machine, from coordinator.Caller, now time.Time, out *coordinator.Effects)) wire.Code {
	for {
		response, code := c.ask(f)
		if code == wire.None {
			code = response.(wire.Code)
		}
		switch code {
		case wire.CoordinatorLoadInProgress, wire.CoordinatorNotAvailable, wire.NotCoordinator, wire.ConcurrentTransactions, wire.RequestTimedOut:
			pause(20 * time.Millisecond)
		default:
			return code
		}
	}
}

func pause(d time.Duration) { <-time.After(d) }

// writeMarkers is what the leaders of the user's partitions do.
func (c *cluster) writeMarkers(_ context.Context, broker int32, ends []markers.End) ([][]wire.Code, error) {
	pause(time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.random.IntN(6) == 0 {
		return nil, errors.New("connection lost")
	}
	lost := c.random.IntN(6) == 0
	codes := make([][]wire.Code, len(ends))
	for i, e := range ends {
		for _, p := range e.Partitions {
			if c.random.IntN(4) == 0 {
				codes[i] = append(codes[i], wire.NotLeaderOrFollower)
				continue
			}
			if last, ok := c.epochs[p.Partition][e.ID]; ok && e.CoordinatorEpoch < last {
				codes[i] = append(codes[i], wire.TransactionCoordinatorFenced)
				continue
			}
			c.epochs[p.Partition][e.ID] = e.CoordinatorEpoch
			c.logs[p.Partition] = append(c.logs[p.Partition], write{producer: e.Producer, end: true, commit: e.Commit})
			codes[i] = append(codes[i], wire.None)
		}
	}
	if lost {
		return nil, errors.New("answer lost")
	}
	return codes, nil
}

// produce writes one value to all partitions in a transaction, again and again.
func (c *cluster) produce(id string, random *rand.Rand) {
	var me coordinator.Producer
	renew := func() bool {
		for {
			select {
			case <-c.stop:
				return false
			default:
			}
			c.mu.Lock()
			c.fresh++
			fresh := c.fresh
			c.mu.Unlock()
			response, code := c.ask(func(m *txn.Machine, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
				m.Init(txn.Init{TransactionalID: id, Timeout: 5000, Known: coordinator.Producer{ID: -1, Epoch: -1}, Fresh: fresh}, from, now, out)
			})
			if a, ok := response.(txn.Initialized); code == wire.None && ok && a.Code == wire.None {
				me = a.Producer
				return true
			}
			pause(20 * time.Millisecond)
		}
	}
	var all []wire.TopicPartition
	for p := range int32(partitions) {
		all = append(all, wire.TopicPartition{Topic: "t", Partition: p})
	}
	for renew() {
		for range 1 + random.IntN(5) {
			code := c.settle(func(m *txn.Machine, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
				m.Add(id, me, all, from, now, out)
			})
			if code != wire.None {
				break
			}
			c.mu.Lock()
			c.values++
			value := c.values
			for p := range c.logs {
				c.logs[p] = append(c.logs[p], write{producer: me, value: value})
			}
			c.mu.Unlock()
			if random.IntN(10) == 0 { // dies: the next one aborts what it began
				break
			}
			commit := random.IntN(4) > 0
			code = c.settle(func(m *txn.Machine, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
				m.EndTxn(id, me, commit, from, now, out)
			})
			if code == wire.None {
				c.mu.Lock()
				if commit {
					c.committed[value] = true
				} else {
					c.aborted[value] = true
				}
				c.mu.Unlock()
			}
			pause(time.Duration(random.IntN(30)) * time.Millisecond)
		}
	}
}

// visible returns the values that read_committed shows of a partition, and
// whether a transaction is still open.
func visible(log []write) (values map[int]bool, open bool) {
	values = map[int]bool{}
	pending := map[int64][]int{}
	for _, w := range log {
		switch {
		case !w.end:
			pending[w.producer.ID] = append(pending[w.producer.ID], w.value)
		case w.commit:
			for _, v := range pending[w.producer.ID] {
				values[v] = true
			}
			fallthrough
		default:
			delete(pending, w.producer.ID)
		}
	}
	return values, len(pending) > 0
}

// deaths counts when the coordinator died.
type deaths struct{ uncommitted, prepared int }

// TestTransactionsAreAtomicWhenTheCoordinatorDies kills it between append and
// commit and between Prepare and markers, 200 times each.
func TestTransactionsAreAtomicWhenTheCoordinatorDies(t *testing.T) {
	seeds, times := uint64(30), 200
	if testing.Short() {
		seeds, times = 5, 0
	}
	base := rand.Uint64N(1 << 32)
	var died deaths
	committed := 0
	for seed := base; (seed < base+seeds || died.uncommitted < times || died.prepared < times) && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) {
			committed += dying(t, seed, &died)
		})
	}
	t.Logf("seeds from %d on: %d deaths between append and commit, %d between Prepare and markers, %d transactions committed", base, died.uncommitted, died.prepared, committed)
}

func dying(t *testing.T, seed uint64, died *deaths) (committed int) {
	c := &cluster{random: rand.New(rand.NewPCG(seed, 1)), prepared: map[string]bool{}, committed: map[int]bool{}, aborted: map[int]bool{}, stop: make(chan struct{})}
	for p := range c.epochs {
		c.epochs[p] = map[int64]int32{}
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	c.markers = markers.New(markers.Options{
		Leader: func(p wire.TopicPartition) (int32, bool) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.random.IntN(10) == 0 {
				return -1, true
			}
			return p.Partition % brokers, true
		},
		Write: c.writeMarkers,
		Done: func(state int32, id string, p coordinator.Producer) {
			c.setPrepared(id, false)
			c.r.Do(state, make(waiter, 2), func(m *txn.Machine, now time.Time, out *coordinator.Effects) {
				m.Complete(id, p, make(waiter, 2), now, out)
			})
		},
		Pause: 10 * time.Millisecond, Logger: log,
	})
	c.r = coordinator.New(coordinator.Options[*txn.Machine]{
		Topic: "__transaction_state", Logger: log,
		New: func(_, epoch int32) *txn.Machine {
			return txn.New(txn.Config{IDExpiration: time.Hour, IDCheck: time.Minute}, epoch)
		},
		Perform: func(p int32, command any) {
			if s, ok := command.(txn.Send); ok {
				c.setPrepared(s.TransactionalID, true)
				c.markers.Send(p, s)
			}
		},
		Unloaded: c.markers.Forget,
	})
	c.r.Elected(0, c.p.Lead())
	var clients sync.WaitGroup
	for i := range producers {
		random := rand.New(rand.NewPCG(seed, uint64(100+i)))
		clients.Go(func() { c.produce(fmt.Sprint("id-", i), random) })
	}
	random := rand.New(rand.NewPCG(seed, 2))
	for range 15 {
		pause(time.Duration(random.IntN(200)) * time.Millisecond)
		if random.IntN(4) == 0 {
			c.p.Fail([]error{wire.NotEnoughReplicas, wire.KafkaStorageError}[random.IntN(2)])
			pause(time.Duration(random.IntN(50)) * time.Millisecond)
			c.p.Fail(nil)
			continue
		}
		c.p.Hold(random.IntN(3) > 0)
		pause(time.Duration(random.IntN(50)) * time.Millisecond)
		hw, end := c.p.Bounds()
		c.p.Die(hw + random.Int64N(end-hw+1))
		c.count(died, end > hw)
		c.r.Resigned(0)
		pause(time.Duration(random.IntN(50)) * time.Millisecond)
		c.p.Hold(false)
		c.r.Elected(0, c.p.Lead())
	}
	close(c.stop)
	clients.Wait()
	pause(time.Minute) // time-outs abort what was left open
	c.r.Close()
	c.markers.Close()
	c.check(t, seed)
	return len(c.committed)
}

func (c *cluster) setPrepared(id string, prepared bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if prepared {
		c.prepared[id] = true
	} else {
		delete(c.prepared, id)
	}
}

// count notes a death of the coordinator.
func (c *cluster) count(died *deaths, uncommitted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if uncommitted {
		died.uncommitted++
	}
	if len(c.prepared) > 0 {
		died.prepared++
	}
	clear(c.prepared) // whoever loads it sends the markers again
}

func (c *cluster) check(t *testing.T, seed uint64) {
	first, _ := visible(c.logs[0])
	for p, log := range c.logs {
		values, open := visible(log)
		if open {
			t.Errorf("seed %d: a transaction hangs in partition %d", seed, p)
		}
		if len(values) != len(first) {
			t.Errorf("seed %d: partition %d shows %d values, partition 0 shows %d", seed, p, len(values), len(first))
		}
		for v := range c.committed {
			if !values[v] {
				t.Errorf("seed %d: value %d was committed and is not in partition %d", seed, v, p)
			}
		}
		for v := range c.aborted {
			if values[v] {
				t.Errorf("seed %d: value %d was aborted and is in partition %d", seed, v, p)
			}
		}
	}
	if len(c.committed) == 0 {
		t.Errorf("seed %d: nothing was committed", seed)
	}
}
