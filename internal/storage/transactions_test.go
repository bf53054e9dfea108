package storage

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"barnabas/internal/vfs"
)

// What retention judged is not what there is once a record has come.
func TestRetentionSparesWhatComesWhileItDecides(t *testing.T) {
	const rounds = 200
	for range rounds {
		var gate chan struct{}
		var mu sync.Mutex
		entered := make(chan struct{})
		fsys := vfs.NewFaulty(vfs.NewMem(), func(op vfs.Op, name string, _ int) error {
			mu.Lock()
			wait := gate
			mu.Unlock()
			if op == vfs.OpWrite && wait != nil && strings.HasSuffix(name, logSuffix) {
				close(entered)
				<-wait
			}
			return nil
		})
		c := newClock()
		m := open(t, options(t, fsys, c))
		l := create(t, m, topicConfig(t, "retention.ms", "1000"))
		appendPlain(t, l, 5, c.Now().UnixMilli(), "old")
		l.SetHighWatermark(5)
		c.advance(time.Hour)
		mu.Lock()
		gate = make(chan struct{})
		mu.Unlock()
		var both sync.WaitGroup
		both.Go(func() { appendPlain(t, l, 1, c.Now().UnixMilli(), "new") })
		<-entered
		both.Go(func() {
			if err := l.retain(c.Now().UnixMilli()); err != nil {
				t.Error(err)
			}
		})
		for range 20 {
			runtime.Gosched()
		}
		mu.Lock()
		close(gate)
		gate = nil
		mu.Unlock()
		both.Wait()
		if start := l.StartOffset(); start > 5 {
			t.Fatal("a record that had just come is deleted: the log starts at", start)
		}
		must(t, m.Close())
	}
}

func TestAbortedTransactionsGoWithTheirRecords(t *testing.T) {
	m := open(t, options(t, vfs.NewMem(), newClock()))
	defer m.Close()
	l := create(t, m, nil)
	transactional(t, l, 1, 0, 2)
	mark(t, l, 1, false)
	if got, err := l.AbortedTransactions(0, 3); err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	_, err := l.DeleteRecordsTo(3)
	must(t, err)
	if got, err := l.AbortedTransactions(0, 3); !errors.Is(err, ErrOffsetOutOfRange) {
		t.Error("a reader of records that are gone is told of", got, err)
	}
}

func TestLastStableOffsetIsNotBelowTheStart(t *testing.T) {
	m := open(t, options(t, vfs.NewMem(), newClock()))
	defer m.Close()
	l := create(t, m, nil)
	transactional(t, l, 1, 0, 5) // and never ended
	appendPlain(t, l, 5, 1000, "v")
	l.SetHighWatermark(10)
	_, err := l.DeleteRecordsTo(7)
	must(t, err)
	if got := l.LastStableOffset(); got != 7 {
		t.Error(got)
	}
}

// The name of a new transaction index is on the disk before recovery begins
// behind what it holds.
func TestTheNameOfATransactionIndexIsSynced(t *testing.T) {
	var made, synced bool
	fsys := vfs.NewFaulty(vfs.NewMem(), func(op vfs.Op, name string, _ int) error {
		switch {
		case op == vfs.OpOpen && strings.HasSuffix(name, txnIndexSuffix):
			made, synced = true, false
		case op == vfs.OpSyncDir:
			synced = true
		}
		return nil
	})
	m := open(t, options(t, fsys, newClock()))
	defer m.Close()
	l := create(t, m, nil)
	transactional(t, l, 1, 0, 2)
	must(t, l.checkpoint())
	mark(t, l, 1, false)
	must(t, l.checkpoint())
	if !made || !synced {
		t.Errorf("made %v, its name synced %v", made, synced)
	}
}
