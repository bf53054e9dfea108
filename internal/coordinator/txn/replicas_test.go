package txn_test

import (
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"barnabas/internal/coordinator"
	"barnabas/internal/coordinator/memlog"
	"barnabas/internal/coordinator/txn"
	"barnabas/internal/wire"
)

// While too few replicas are in sync, what the coordinator does of itself, as to
// abort a transaction whose time is up and to write the markers of one that is
// decided, is tried again and again, but not without a pause.
func TestTooFewReplicasAreNotAskedWithoutAPause(t *testing.T) {
	for _, decided := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var p memlog.Partition
			var loads, sends atomic.Int32
			var r *coordinator.Runtime[*txn.Machine]
			c := &cluster{}
			r = coordinator.New(coordinator.Options[*txn.Machine]{
				Topic: "__transaction_state", Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
				New: func(_, epoch int32) *txn.Machine {
					if loads.Add(1) > 1000 {
						p.Fail(nil) // so that the test ends
					}
					return txn.New(txn.Config{IDExpiration: time.Hour, IDCheck: time.Minute}, epoch)
				},
				Perform: func(_ int32, command any) {
					if s, ok := command.(txn.Send); ok {
						if sends.Add(1) == 1 && decided {
							p.Fail(wire.NotEnoughReplicas)
						}
						from := make(waiter, 1)
						r.Do(0, from, func(m *txn.Machine, now time.Time, out *coordinator.Effects) {
							m.Complete(s.TransactionalID, s.Marker.Producer, from, now, out)
						})
					}
				},
			})
			c.r = r
			defer r.Close()
			r.Elected(0, p.Lead())
			synctest.Wait()
			me := coordinator.Producer{ID: 1}
			c.ask(func(m *txn.Machine, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
				m.Init(txn.Init{TransactionalID: "id", Timeout: 5000, Known: coordinator.Producer{ID: -1, Epoch: -1}, Fresh: me.ID}, from, now, out)
			})
			add := func() wire.Code {
				return c.settle(func(m *txn.Machine, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
					m.Add("id", me, []wire.TopicPartition{{Topic: "t"}}, from, now, out)
				})
			}
			if code := add(); code != wire.None {
				t.Fatal(code)
			}
			if decided {
				c.ask(func(m *txn.Machine, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
					m.EndTxn("id", me, true, from, now, out)
				})
			} else {
				p.Fail(wire.NotEnoughReplicas)
			}
			pause(10 * time.Minute)
			if n := loads.Load(); n < 10 || n > 150 {
				t.Errorf("decided %v: loaded %d times in 10 minutes", decided, n)
			}
			if n := sends.Load(); n > 150 {
				t.Errorf("decided %v: the markers were written %d times in 10 minutes", decided, n)
			}
			p.Fail(nil)
			pause(10 * time.Second)
			want := wire.ProducerFenced // its time was up
			if decided {
				want = wire.None
			}
			if code := add(); code != want {
				t.Errorf("decided %v: the next transaction is answered %v", decided, code)
			}
		})
	}
}
