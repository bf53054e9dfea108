package coordinator_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"barnabas/internal/coordinator"
	"barnabas/internal/coordinator/memlog"
	"barnabas/internal/record"
	"barnabas/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// register is a machine of keys and values. Values of transactions count when
// they are committed. The key "alarm" sets a timer.
type register struct {
	values  map[string]string
	open    map[int64]map[string]string
	waiting []coordinator.Caller
}

func (r *register) Replay(e coordinator.Entry) error {
	key := string(e.Key)
	switch {
	case strings.HasPrefix(key, "foreign"):
		return errors.New("foreign")
	case e.Transactional:
		if r.open[e.Producer.ID] == nil {
			r.open[e.Producer.ID] = map[string]string{}
		}
		r.open[e.Producer.ID][key] = string(e.Value)
	case e.Value == nil:
		delete(r.values, key)
	default:
		r.values[key] = string(e.Value)
	}
	return nil
}

func (r *register) End(m coordinator.Marker, _ int64) {
	if m.Commit {
		maps.Copy(r.values, r.open[m.ID])
	}
	delete(r.open, m.ID)
}

func (r *register) Loaded(time.Time, *coordinator.Effects) {}

func (r *register) Expired(t coordinator.Timer, _ time.Time, out *coordinator.Effects) {
	out.Append([]byte(t.A), []byte("rang"))
	for _, c := range r.waiting {
		out.Reply(c, "rang")
	}
	r.waiting = nil
}

// asked is a Caller that keeps its answer.
type asked struct {
	mu     sync.Mutex
	answer string
}

func (a *asked) set(s string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answer != "" {
		s = a.answer + " and " + s // twice: the test will see
	}
	a.answer = s
}
func (a *asked) Answer(response any) { a.set(fmt.Sprint(response)) }
func (a *asked) Fail(code wire.Code) { a.set(code.String()) }
func (a *asked) String() string {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answer
}

// pass lets the bubble's time pass.
func pass(d time.Duration) { <-time.After(d) }

type world struct {
	t *testing.T
	p memlog.Partition
	r *coordinator.Runtime[*register]

	performed []any // by the shard; read it when all is at rest
}

func newWorld(t *testing.T) *world {
	w := &world{t: t}
	w.r = coordinator.New(coordinator.Options[*register]{
		Topic: "t", Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), LoadBuffer: 200,
		Perform: func(_ int32, command any) { w.performed = append(w.performed, command) },
		New: func(int32, int32) *register {
			return &register{values: map[string]string{}, open: map[int64]map[string]string{}}
		},
	})
	return w
}

func (w *world) lead() {
	w.r.Elected(7, w.p.Lead())
	synctest.Wait()
}

func (w *world) do(f func(r *register, c coordinator.Caller, now time.Time, out *coordinator.Effects)) *asked {
	a := new(asked)
	w.r.Do(7, a, func(r *register, now time.Time, out *coordinator.Effects) { f(r, a, now, out) })
	return a
}

func (w *world) put(key, value string) *asked {
	return w.do(func(_ *register, c coordinator.Caller, _ time.Time, out *coordinator.Effects) {
		out.Append([]byte(key), []byte(value))
		out.Reply(c, "ok")
	})
}

func (w *world) get(key string) *asked {
	return w.do(func(r *register, c coordinator.Caller, _ time.Time, out *coordinator.Effects) {
		out.Reply(c, "="+r.values[key])
	})
}

func (w *world) want(a *asked, want string) {
	w.t.Helper()
	if got := a.String(); got != want {
		w.t.Errorf("answer %q, want %q", got, want)
	}
}

func inWorld(t *testing.T, f func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.r.Close()
		f(w)
	})
}

func TestAnswersLeaveWhenCommitted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.want(w.put("a", "1"), "NOT_COORDINATOR")
		w.lead()
		w.want(w.put("a", "1"), "ok")
		w.p.Hold(true)
		write := w.put("a", "2")
		read := w.get("a")
		now := w.do(func(_ *register, c coordinator.Caller, _ time.Time, out *coordinator.Effects) { out.ReplyNow(c, "now") })
		w.want(write, "")
		w.want(read, "")
		w.want(now, "now")
		w.p.Hold(false)
		w.want(write, "ok")
		w.want(read, "=2")
	})
}

func TestWhatIsNotReplicatedInTimeIsSaid(t *testing.T) {
	inWorld(t, func(w *world) {
		w.lead()
		w.p.Hold(true)
		write := w.put("a", "1")
		pass(4999 * time.Millisecond)
		w.want(write, "")
		pass(2 * time.Millisecond)
		w.want(write, "REQUEST_TIMED_OUT")
		read := w.get("a")
		w.want(read, "")
		w.p.Hold(false)
		w.want(read, "=1")
	})
}

// Once an answer was given up, later ones that wait for the same records are
// given up in time, too; what the machine commands waits on.
func TestWhoComesAfterATimeoutIsToldInTime(t *testing.T) {
	inWorld(t, func(w *world) {
		w.lead()
		w.p.Hold(true)
		write := w.do(func(_ *register, c coordinator.Caller, _ time.Time, out *coordinator.Effects) {
			out.Append([]byte("a"), []byte("1"))
			out.Perform("command")
			out.Reply(c, "ok")
		})
		pass(5001 * time.Millisecond)
		w.want(write, "REQUEST_TIMED_OUT")
		pass(time.Second)
		read := w.get("a")
		pass(time.Second)
		later := w.get("a")
		pass(3999 * time.Millisecond)
		w.want(read, "")
		pass(2 * time.Millisecond)
		w.want(read, "REQUEST_TIMED_OUT")
		w.want(later, "REQUEST_TIMED_OUT")
		if len(w.performed) > 0 {
			t.Errorf("performed before it was committed: %v", w.performed)
		}
		w.p.Hold(false)
		synctest.Wait()
		if len(w.performed) != 1 {
			t.Errorf("performed %v", w.performed)
		}
	})
}

func TestAFailedAppendLoadsThePartitionAgain(t *testing.T) {
	for failure, want := range map[error]string{
		wire.NotEnoughReplicas: "COORDINATOR_NOT_AVAILABLE", wire.NotLeaderOrFollower: "NOT_COORDINATOR", wire.KafkaStorageError: "NOT_COORDINATOR",
	} {
		inWorld(t, func(w *world) {
			w.lead()
			w.want(w.put("a", "1"), "ok")
			parked := w.do(func(r *register, c coordinator.Caller, _ time.Time, _ *coordinator.Effects) {
				r.waiting = append(r.waiting, c)
			})
			w.p.Hold(true)
			before := w.put("b", "1")
			synctest.Wait()
			w.p.Fail(failure)
			w.want(w.put("a", "2"), want)
			w.want(parked, want)
			w.want(before, "")
			w.p.Fail(nil)
			w.p.Hold(false)
			w.want(before, "ok")
			if failure == wire.NotLeaderOrFollower {
				pass(time.Minute)
				w.want(w.get("a"), want)
				return
			}
			w.want(w.get("a"), "COORDINATOR_NOT_AVAILABLE")
			pass(time.Second)
			w.want(w.get("a"), "=1")
			w.want(w.get("b"), "=1")
		})
	}
}

// A transaction's records that the disk does not take change nothing: the
// machine stays.
func TestAFailedAppendOfATransactionFailsOnlyItself(t *testing.T) {
	inWorld(t, func(w *world) {
		w.lead()
		w.want(w.put("a", "1"), "ok")
		write := func() *asked {
			return w.do(func(_ *register, c coordinator.Caller, _ time.Time, out *coordinator.Effects) {
				out.Append([]byte("a"), []byte("2"))
				out.Producer = &coordinator.Producer{ID: 1, Epoch: 3}
				out.Reply(c, "ok")
			})
		}
		w.p.Fail(wire.KafkaStorageError)
		w.want(write(), "NOT_COORDINATOR")
		w.want(w.get("a"), "=1")
		w.p.Fail(nil)
		w.want(write(), "ok")
	})
}

func TestALaterLeaderHasWhatWasAnswered(t *testing.T) {
	inWorld(t, func(w *world) {
		w.lead()
		w.want(w.put("a", "1"), "ok")
		w.p.Hold(true)
		lost := w.put("a", "2")
		parked := w.do(func(r *register, c coordinator.Caller, _ time.Time, _ *coordinator.Effects) {
			r.waiting = append(r.waiting, c)
		})
		w.want(lost, "")
		w.p.Die(0)
		w.r.Resigned(7)
		w.want(lost, "NOT_COORDINATOR")
		w.want(parked, "NOT_COORDINATOR")
		w.p.Hold(false)
		w.lead()
		w.want(w.get("a"), "=1")
	})
}

func TestWhatIsLoadedIsReadWhenCommitted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.lead()
		w.p.Hold(true)
		w.put("a", "1")
		synctest.Wait()
		w.p.Die(100) // all is kept, nothing is committed
		w.r.Resigned(7)
		w.lead()
		read := w.get("a")
		w.want(read, "")
		w.p.Hold(false)
		w.want(read, "=1")
	})
}

func TestTimersRunOutInOrderAndAreReset(t *testing.T) {
	inWorld(t, func(w *world) {
		w.lead()
		set := func(name string, d time.Duration) {
			w.do(func(r *register, c coordinator.Caller, now time.Time, out *coordinator.Effects) {
				if d == 0 {
					out.Stop(coordinator.Timer{A: name})
				} else {
					out.Set(coordinator.Timer{A: name}, now.Add(d))
				}
				r.waiting = append(r.waiting, c)
			})
			synctest.Wait()
		}
		set("first", 2*time.Second)
		set("second", time.Second)
		set("second", 3*time.Second) // later
		set("first", time.Second)    // earlier
		set("never", time.Second)
		set("never", 0)
		pass(1500 * time.Millisecond)
		w.want(w.get("first"), "=rang")
		w.want(w.get("second"), "=")
		w.want(w.get("never"), "=")
		pass(1600 * time.Millisecond)
		w.want(w.get("second"), "=rang")
		w.want(w.get("never"), "=")
	})
}

func TestTransactionsCountWhenTheirMarkerIsThere(t *testing.T) {
	inWorld(t, func(w *world) {
		w.lead()
		txn := func(id int64, value string) {
			w.want(w.do(func(_ *register, c coordinator.Caller, _ time.Time, out *coordinator.Effects) {
				out.Append([]byte("a"), []byte(value))
				out.Producer = &coordinator.Producer{ID: id, Epoch: 3}
				out.Reply(c, "ok")
			}), "ok")
		}
		end := func(id int64, commit bool) {
			w.want(w.do(func(_ *register, c coordinator.Caller, _ time.Time, out *coordinator.Effects) {
				out.Marker = &coordinator.Marker{Producer: coordinator.Producer{ID: id, Epoch: 3}, Commit: commit, CoordinatorEpoch: 5}
				out.Reply(c, "ended")
			}), "ended")
		}
		txn(1, "one")
		w.put("b", "between")
		txn(2, "two")
		w.want(w.get("a"), "=")
		end(2, false)
		w.want(w.get("a"), "=")
		end(1, true)
		w.want(w.get("a"), "=one")
		w.p.Die(0)
		w.r.Resigned(7)
		w.lead()
		w.want(w.get("a"), "=one")
		w.want(w.get("b"), "=between")
		var kinds []string
		for s := record.Split(w.p.Set()); s.Next(); {
			b := s.Batch()
			kinds = append(kinds, fmt.Sprint(b.ProducerID(), b.Transactional(), b.Control()))
		}
		if want := []string{"1 true false", "-1 false false", "2 true false", "2 true true", "1 true true"}; !slices.Equal(kinds, want) {
			t.Errorf("batches %v, want %v", kinds, want)
		}
	})
}

func TestForeignBytesAreSkipped(t *testing.T) {
	batch := func(key string) record.Batch {
		b := record.NewBuilder(record.BatchOptions{LeaderEpoch: -1})
		b.Append(1, []byte(key), []byte("v"))
		set, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		return append(record.Batch(nil), set...)
	}
	inWorld(t, func(w *world) {
		for i, key := range []string{"a", "foreign", "b", "c"} {
			b := batch(key)
			b.SetBaseOffset(int64(i))
			if key == "b" {
				b[len(b)-1] ^= 1 // its checksum is wrong
			}
			w.p.Put(b, 1)
		}
		w.lead()
		w.want(w.get("a"), "=v")
		w.want(w.get("b"), "=")
		w.want(w.get("c"), "=v")
		w.want(w.put("d", "w"), "ok")
	})
}

func TestManyRecordsOfOneEventAreSplit(t *testing.T) {
	inWorld(t, func(w *world) {
		w.lead()
		w.want(w.do(func(_ *register, c coordinator.Caller, _ time.Time, out *coordinator.Effects) {
			for i := range 100 {
				out.Append(fmt.Append(nil, i), []byte(strings.Repeat("x", 1000)))
			}
			out.Reply(c, "ok")
		}), "ok")
		n, batches := 0, 0
		for s := record.Split(w.p.Set()); s.Next(); {
			if s.Batch().Size() > 16<<10 {
				t.Errorf("a batch of %d bytes", s.Batch().Size())
			}
			n += int(s.Batch().Count())
			batches++
		}
		if n != 100 || batches < 7 {
			t.Errorf("%d records in %d batches", n, batches)
		}
	})
}

func TestForgottenCallersAreNotAnswered(t *testing.T) {
	inWorld(t, func(w *world) {
		w.lead()
		a := w.do(func(r *register, c coordinator.Caller, now time.Time, out *coordinator.Effects) {
			r.waiting = append(r.waiting, c)
			out.Set(coordinator.Timer{A: "x"}, now.Add(time.Second))
		})
		w.want(a, "")
		w.r.Forget(7, a)
		pass(2 * time.Second)
		w.want(w.get("x"), "=rang")
		w.want(a, "")
	})
}

func TestPartitionOf(t *testing.T) {
	for id, want := range map[string]int32{"": 0, "a": 97 % 50, "gr5": 102570 % 50, "polygenelubricants": 0, "my-group": 1906497762 % 50, "é😀": 1996812 % 50} {
		if got := coordinator.PartitionOf(id, 50); got != want {
			t.Errorf("%q: %d, want %d", id, got, want)
		}
	}
}
