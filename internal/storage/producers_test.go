package storage

import (
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"barnabas/internal/record"
	"barnabas/internal/vfs"
	"barnabas/internal/wire"
)

// produce sends n records of a producer.
func produce(t testing.TB, l *Log, pid int64, epoch int16, seq int32, n int) (AppendInfo, error) {
	t.Helper()
	o := record.BatchOptions{LeaderEpoch: -1, Producer: &record.Producer{ID: pid, Epoch: epoch, Sequence: seq}}
	return l.Append(AppendRequest{Records: batch(t, o, n, 1000, "v"), LogAppendTime: -1})
}

func expectAt(t testing.TB, want int64, duplicate bool) func(AppendInfo, error) {
	return func(info AppendInfo, err error) {
		t.Helper()
		if err != nil || info.FirstOffset != want || info.Duplicate != duplicate {
			t.Fatalf("got %+v %v, expected offset %d, duplicate %v", info, err, want, duplicate)
		}
		if duplicate && info.LogAppendTime < 0 {
			t.Fatal("a duplicate is answered with the time of the batch kept")
		}
	}
}

func expectErr(t testing.TB, want error, code wire.Code) func(AppendInfo, error) {
	return func(_ AppendInfo, err error) {
		t.Helper()
		if !errors.Is(err, want) || Code(err) != code {
			t.Fatalf("got %v (%v), expected %v (%v)", err, Code(err), want, code)
		}
	}
}

// Public bug reports, measured on Apache Kafka 2.8.2 and 3.9.1.
func TestIdempotentRetriesAreAnsweredAsKafkaDoes(t *testing.T) {
	m := open(t, options(t, vfs.NewMem(), newClock()))
	defer m.Close()
	l := create(t, m, nil)
	for seq := range int32(7) {
		expectAt(t, int64(seq), false)(produce(t, l, 1, 0, seq, 1))
	}
	for seq := int32(6); seq >= 2; seq-- {
		expectAt(t, int64(seq), true)(produce(t, l, 1, 0, seq, 1))
	}
	gap := expectErr(t, ErrOutOfOrderSequence, wire.OutOfOrderSequenceNumber)
	gap(produce(t, l, 1, 0, 1, 1))
	gap(produce(t, l, 1, 0, 0, 1))
	gap(produce(t, l, 1, 0, 9, 1))
	gap(produce(t, l, 1, 0, 6, 2))
	expectAt(t, 7, false)(produce(t, l, 2, 0, 5, 1)) // an unknown producer may start anywhere

	expectAt(t, 8, false)(produce(t, l, 3, 0, 1<<31-2, 2))
	expectAt(t, 10, false)(produce(t, l, 3, 0, 0, 1))
	expectAt(t, 11, false)(produce(t, l, 4, 0, 1<<31-1, 3))
	expectAt(t, 14, false)(produce(t, l, 4, 0, 2, 1))
	expectAt(t, 11, true)(produce(t, l, 4, 0, 1<<31-1, 3))

	gap(produce(t, l, 1, 1, 7, 1))
	expectAt(t, 15, false)(produce(t, l, 1, 1, 0, 1))
	expectErr(t, ErrProducerFenced, wire.InvalidProducerEpoch)(produce(t, l, 1, 0, 7, 1))
}

func TestProducersAreRememberedAcrossStops(t *testing.T) {
	for _, how := range []string{"clean", "killed", "killed after a roll"} {
		t.Run(how, func(t *testing.T) {
			mem, c := vfs.NewMem(), newClock()
			m := open(t, options(t, mem, c))
			cfg := topicConfig(t, "segment.bytes", "300")
			l := create(t, m, cfg)
			for seq := range int32(7) { // each in a segment of its own, or nearly
				expectAt(t, int64(seq), false)(produce(t, l, 1, 3, seq, 1))
			}
			if how != "clean" {
				if how == "killed after a roll" {
					m.Tick(c.advance(time.Second)) // the flusher writes the snapshot
				}
				mem = mem.CrashClone(vfs.KillProcess, nil)
			}
			must(t, m.Close())
			m = open(t, options(t, mem, c))
			defer m.Close()
			l, _ = m.Log(tp0)
			l.SetConfig(cfg)
			for seq := int32(6); seq >= 2; seq-- { // Kafka's snapshot has the last one only
				expectAt(t, int64(seq), true)(produce(t, l, 1, 3, seq, 1))
			}
			gap := expectErr(t, ErrOutOfOrderSequence, wire.OutOfOrderSequenceNumber)
			gap(produce(t, l, 1, 3, 1, 1))
			gap(produce(t, l, 1, 3, 8, 1))
			expectErr(t, ErrProducerFenced, wire.InvalidProducerEpoch)(produce(t, l, 1, 2, 7, 1))
			expectAt(t, 7, false)(produce(t, l, 1, 3, 7, 1))
			expectAt(t, 3, true)(produce(t, l, 1, 3, 3, 1))
			gap(produce(t, l, 1, 3, 2, 1))
		})
	}
}

// What a snapshot leaves out is read when a client repeats it, not when the log is
// loaded, and is known also when other batches came first or the records went.
func TestBatchesBeforeASnapshotAreRecalledWhenTheyAreNeeded(t *testing.T) {
	const batches = 8
	for _, first := range []string{"", "a batch of its own", "retention", "compaction"} {
		t.Run(first, func(t *testing.T) {
			mem, c := vfs.NewMem(), newClock()
			m := open(t, options(t, mem, c))
			cfg := topicConfig(t, "segment.bytes", "100", "retention.bytes", "1", "cleanup.policy", "delete")
			if first == "compaction" {
				cfg = topicConfig(t, "segment.bytes", "100", "cleanup.policy", "compact", "min.cleanable.dirty.ratio", "0")
			}
			l := create(t, m, cfg)
			for seq := range int32(batches) {
				expectAt(t, int64(seq), false)(produce(t, l, 1, 0, seq, 1))
			}
			must(t, m.Close())
			m = open(t, options(t, mem, c))
			defer m.Close()
			l, _ = m.Log(tp0)
			l.SetConfig(cfg)
			must(t, l.ready())
			if e := l.mu.producers.byID[1]; e.n != 1 {
				t.Fatalf("%d batches are known of a log that was loaded, the snapshot has one", e.n)
			}
			oldest, size := int32(batches-remembered), l.Size()
			l.SetHighWatermark(batches)
			switch first {
			case "a batch of its own":
				expectAt(t, batches, false)(produce(t, l, 1, 0, batches, 1))
				oldest++
			case "retention":
				must(t, l.retain(c.Now().UnixMilli()))
			case "compaction":
				cleanAll(t, m)
			}
			if (first == "retention" || first == "compaction") && l.Size() == size {
				t.Fatal("no record has gone")
			}
			for seq := int32(batches - 1); seq >= oldest; seq-- {
				expectAt(t, int64(seq), true)(produce(t, l, 1, 0, seq, 1))
			}
			expectErr(t, ErrOutOfOrderSequence, wire.OutOfOrderSequenceNumber)(produce(t, l, 1, 0, oldest-1, 1))
		})
	}
}

func TestIdleProducersExpire(t *testing.T) {
	c := newClock()
	m := open(t, options(t, vfs.NewMem(), c))
	defer m.Close()
	l := create(t, m, nil)
	expectAt(t, 0, false)(produce(t, l, 1, 0, 0, 1))
	m.Tick(c.advance(11 * time.Minute)) // the records' time is long ago
	expectAt(t, 1, false)(produce(t, l, 1, 0, 77, 1))
}

// control builds a transaction's marker.
func control(t testing.TB, pid int64, epoch int16, commit bool, coordinatorEpoch int32) []byte {
	t.Helper()
	kind := uint16(0)
	if commit {
		kind = 1
	}
	key := binary.BigEndian.AppendUint16([]byte{0, 0}, kind)
	value := binary.BigEndian.AppendUint32([]byte{0, 0}, uint32(coordinatorEpoch))
	b := record.NewBuilder(record.BatchOptions{LeaderEpoch: -1, Transactional: true, Control: true,
		Producer: &record.Producer{ID: pid, Epoch: epoch, Sequence: record.NoSequence}})
	b.Append(2000, key, value)
	out, err := b.Build()
	must(t, err)
	return out
}

func transactional(t testing.TB, l *Log, pid int64, seq int32, n int) AppendInfo {
	t.Helper()
	o := record.BatchOptions{LeaderEpoch: -1, Transactional: true, Producer: &record.Producer{ID: pid, Sequence: seq}}
	info, err := l.Append(AppendRequest{Records: batch(t, o, n, 1000, "v"), LogAppendTime: -1})
	must(t, err)
	l.SetHighWatermark(l.EndOffset())
	return info
}

func mark(t testing.TB, l *Log, pid int64, commit bool) {
	t.Helper()
	_, err := l.Append(AppendRequest{Records: control(t, pid, 0, commit, 1), LogAppendTime: -1, Origin: Coordinator})
	must(t, err)
	l.SetHighWatermark(l.EndOffset())
}

func TestTransactionsHoldTheLastStableOffset(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	m := open(t, options(t, mem, c))
	l := create(t, m, topicConfig(t, "segment.bytes", "400"))
	appendPlain(t, l, 1, 1000, "v") // 0
	stable := func(want int64) {
		t.Helper()
		if got := l.LastStableOffset(); got != want {
			t.Fatalf("last stable offset %d, expected %d", got, want)
		}
	}
	transactional(t, l, 1, 0, 2) // 1, 2
	stable(1)
	transactional(t, l, 2, 0, 1) // 3
	mark(t, l, 1, false)         // 4
	stable(3)
	transactional(t, l, 1, 2, 1) // 5
	mark(t, l, 2, true)          // 6
	stable(5)
	mark(t, l, 1, false) // 7
	stable(8)

	aborted := func() {
		t.Helper()
		got, err := l.AbortedTransactions(0, 8)
		if err != nil || len(got) != 2 || got[0] != (AbortedTxn{1, 1}) || got[1] != (AbortedTxn{1, 5}) {
			t.Fatal(got, err)
		}
		if got, err = l.AbortedTransactions(0, 2); err != nil || len(got) != 1 || got[0].FirstOffset != 1 {
			t.Fatal(got, err)
		}
	}
	aborted()
	killed := mem.CrashClone(vfs.KillProcess, nil)
	must(t, m.Close())
	for _, fsys := range []vfs.FS{killed, mem} {
		m = open(t, options(t, fsys, c))
		l, _ = m.Log(tp0)
		l.SetHighWatermark(8)
		stable(8)
		aborted()
		must(t, m.Close())
	}
}

func TestAMarkerIsReplicatedBeforeItCounts(t *testing.T) {
	m := open(t, options(t, vfs.NewMem(), newClock()))
	defer m.Close()
	l := create(t, m, nil)
	transactional(t, l, 1, 0, 2)
	_, err := l.Append(AppendRequest{Records: control(t, 1, 0, true, 1), LogAppendTime: -1, Origin: Coordinator})
	must(t, err)
	if got := l.LastStableOffset(); got != 0 {
		t.Fatal("the marker is above the high watermark, yet the last stable offset is", got)
	}
	l.SetHighWatermark(3)
	if got := l.LastStableOffset(); got != 3 {
		t.Fatal(got)
	}
}

// A leader's high watermark may be moved by others as soon as the end has moved.
func TestATransactionCountsAsOpenBeforeItCanBeRead(t *testing.T) {
	var l *Log
	var fail error
	fsys := vfs.NewFaulty(vfs.NewMem(), func(op vfs.Op, name string, _ int) error {
		if op != vfs.OpWrite || l == nil || !strings.HasSuffix(name, ".log") {
			return nil
		}
		if l.unstable.Load() != 1 {
			t.Error("the first unstable offset while the batch is written is", l.unstable.Load())
		}
		return fail
	})
	m := open(t, options(t, fsys, newClock()))
	defer m.Close()
	log := create(t, m, nil)
	appendPlain(t, log, 1, 1000, "v")
	log.SetHighWatermark(1)
	l, fail = log, syscall.EIO
	o := record.BatchOptions{LeaderEpoch: -1, Transactional: true, Producer: &record.Producer{ID: 1}}
	if _, err := log.Append(AppendRequest{Records: batch(t, o, 1, 1000, "v"), LogAppendTime: -1}); err == nil {
		t.Fatal("the write failed, and the append did not")
	}
	if got := log.unstable.Load(); got != -1 {
		t.Error("a batch that was not written is unstable:", got)
	}
	fail = nil
	transactional(t, log, 1, 0, 1)
	if got := log.LastStableOffset(); got != 1 {
		t.Error("last stable offset", got)
	}
}

func TestALeadersHighWatermarkDoesNotGoBack(t *testing.T) {
	m := open(t, options(t, vfs.NewMem(), newClock()))
	defer m.Close()
	l := create(t, m, nil)
	appendPlain(t, l, 3, 1000, "v")
	var raising sync.WaitGroup
	for hw := range int64(4) {
		raising.Go(func() { l.RaiseHighWatermark(hw) })
	}
	raising.Wait()
	l.RaiseHighWatermark(1) // of an append that was slow
	if hw, stable := l.HighWatermark(), l.LastStableOffset(); hw != 3 || stable != 3 {
		t.Error(hw, stable)
	}
}

func TestMarkersOfOldCoordinatorsAndStrayBatchesAreRefused(t *testing.T) {
	m := open(t, options(t, vfs.NewMem(), newClock()))
	defer m.Close()
	l := create(t, m, nil)
	transactional(t, l, 1, 0, 1)
	expectErr(t, ErrInvalidTxnState, wire.InvalidTxnState)(produce(t, l, 1, 0, 1, 1))
	mark(t, l, 1, true)
	_, err := l.Append(AppendRequest{Records: control(t, 1, 0, true, 0), Origin: Coordinator})
	expectErr(t, ErrCoordinatorFenced, wire.TransactionCoordinatorFenced)(AppendInfo{}, err)
}

// A marker may come between the question whether a transaction has the partition
// and the batch that was asked about: then the batch would hang.
func TestABatchWhoseTransactionEndedWhileItWasVerifiedIsRefused(t *testing.T) {
	m := open(t, options(t, vfs.NewMem(), newClock()))
	defer m.Close()
	l := create(t, m, nil)
	verified := func(seq int32, at int64) (AppendInfo, error) {
		o := record.BatchOptions{LeaderEpoch: -1, Transactional: true, Producer: &record.Producer{ID: 1, Sequence: seq}}
		return l.Append(AppendRequest{Records: batch(t, o, 1, 1000, "v"), LogAppendTime: -1, Verified: at + 1})
	}
	expectAt(t, 0, false)(verified(0, l.EndOffset()))
	before := l.EndOffset()
	mark(t, l, 1, true)
	expectErr(t, ErrInvalidTxnState, wire.InvalidTxnState)(verified(1, before))
	expectAt(t, 2, false)(verified(1, l.EndOffset()))
	expectAt(t, 3, false)(verified(2, before)) // the next transaction has begun: it has the partition
}

func TestSnapshotCodec(t *testing.T) {
	p := newProducers()
	if b := p.encode(); len(b) != 10 {
		t.Fatal("an empty snapshot has 10 bytes, not", len(b))
	}
	p.put(7, &producer{epoch: 2, n: 1, coordinatorEpoch: 5, lastTimestamp: 99, txnFirst: 4, batches: [5]producerBatch{{10, 20, 3, 99}}})
	good := p.encode()
	got, err := decodeProducers(good)
	must(t, err)
	if e := got.byID[7]; e == nil || *e != *p.byID[7] || len(got.ongoing) != 1 {
		t.Fatalf("%+v", e)
	}
	for cut := range good {
		if _, err := decodeProducers(good[:cut]); !errors.Is(err, errSnapshot) {
			t.Fatal(cut, err)
		}
	}
	for i := range good {
		bad := append([]byte(nil), good...)
		bad[i] ^= 1
		if _, err := decodeProducers(bad); !errors.Is(err, errSnapshot) {
			t.Fatal("bit of byte", i, err)
		}
	}
}
