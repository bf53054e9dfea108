package storage

import (
	"testing"
	"time"

	"barnabas/internal/vfs"
)

// appendEpochs fills a log up to offset 110 with the epochs 4 (from 0), 5 (from 20)
// and 6 (from 100); the recovery point is at 50.
func appendEpochs(t *testing.T, m *Manager, l *Log) {
	t.Helper()
	for l.EndOffset() < 110 {
		epoch := int32(4)
		if end := l.EndOffset(); end >= 100 {
			epoch = 6
		} else if end >= 20 {
			epoch = 5
		}
		_, err := l.Append(AppendRequest{Records: plain(t, 2, 1000, "v"), LeaderEpoch: epoch, LogAppendTime: -1})
		must(t, err)
		if l.EndOffset() == 50 {
			must(t, l.checkpoint())
			must(t, m.Checkpoint())
		}
	}
}

// A follower that went another way is cut where the leader's epochs begin: a
// recovery that starts in the middle of an epoch must not move them up.
func TestRecoveryInTheMiddleOfAnEpochKeepsItsStart(t *testing.T) {
	mem, c := vfs.NewMem(), newClock()
	m := open(t, options(t, mem, c))
	l := create(t, m, topicConfig(t, "index.interval.bytes", "200"))
	appendEpochs(t, m, l)
	m.Tick(c.advance(time.Second))
	const want = "0\n3\n4 0\n5 20\n6 100\n"
	if got := string(readFile(t, mem, part+"/"+epochFile)); got != want {
		t.Fatalf("%q", got)
	}
	killed := mem.CrashClone(vfs.KillProcess, nil)
	must(t, m.Close())

	m = open(t, options(t, killed, c))
	l, _ = m.Log(tp0)
	if got := entriesOf(&l.epochs); got != "[{4 0} {5 20} {6 100}]" {
		t.Error(got)
	}
	if got := l.EndOffsetForEpoch(4); got != (EpochEnd{4, 20}) {
		t.Error(got)
	}
	must(t, m.Close())
	if got := string(readFile(t, killed, part+"/"+epochFile)); got != want {
		t.Errorf("%q", got)
	}
}
