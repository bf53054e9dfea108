package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/record"
	"barnabas/internal/storage"
	"barnabas/internal/vfs"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// judge is the controller of a test: it answers AlterPartition.
type judge struct {
	mu       sync.Mutex
	versions []int16
	asked    []string
	codes    []wire.Code // of the next answers, then None
	down     int         // so many times there is no answer
	most     int16
	heard    chan struct{}
}

func (j *judge) alter(_ context.Context, most int16, build func(int16) *kmsg.AlterPartitionRequest) (*kmsg.AlterPartitionResponse, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	defer func() {
		select {
		case j.heard <- struct{}{}:
		default:
		}
	}()
	if j.down > 0 {
		j.down--
		return nil, errors.New("no controller")
	}
	version := min(most, j.most)
	r := build(version)
	j.versions = append(j.versions, version)
	answer := r.ResponseKind().(*kmsg.AlterPartitionResponse)
	answer.SetVersion(version)
	for _, t := range r.Topics {
		to := kmsg.AlterPartitionResponseTopic{Topic: t.Topic, TopidID: t.TopicID}
		for _, p := range t.Partitions {
			isr := p.NewISR
			for _, e := range p.NewEpochISR {
				isr = append(isr, e.BrokerID)
			}
			code := wire.None
			if len(j.codes) > 0 {
				code, j.codes = j.codes[0], j.codes[1:]
			}
			j.asked = append(j.asked, fmt.Sprintf("%v at %d: %v", isr, p.PartitionEpoch, code))
			to.Partitions = append(to.Partitions, kmsg.AlterPartitionResponseTopicPartition{Partition: p.Partition, ErrorCode: int16(code),
				LeaderID: 1, LeaderEpoch: p.LeaderEpoch, ISR: isr, PartitionEpoch: p.PartitionEpoch + 1})
		}
		answer.Topics = append(answer.Topics, to)
	}
	return answer, nil
}

// leading is broker 1, the leader of t-0 with the followers 2 and 3.
func leading(t *testing.T, j *judge, ibp config.IBP, lag time.Duration, isr ...int32) *Partition {
	t.Helper()
	return leadingOn(t, vfs.OS, j, ibp, lag, isr...)
}

func leadingOn(t *testing.T, fsys vfs.FS, j *judge, ibp config.IBP, lag time.Duration, isr ...int32) *Partition {
	t.Helper()
	j.heard = make(chan struct{}, 1)
	dir := t.TempDir()
	c, err := config.NewBroker(map[string]string{"broker.id": "1", "log.dirs": dir, "zookeeper.connect": "unused:1"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := storage.Open(storage.Options{Dirs: []string{dir}, FS: fsys, Config: c, BrokerID: 1, ClusterID: "c"})
	if err != nil {
		t.Fatal(err)
	}
	m := NewManager(Options{BrokerID: 1, Storage: s, LagTime: func() time.Duration { return lag },
		Cluster: &Cluster{IBP: ibp, Config: config.NewDynamic(c), AlterPartition: j.alter, Address: func(int32) (string, bool) { return "", false }}})
	t.Cleanup(func() {
		m.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	st := state(0, 1, 5, 1, 2, 3)
	st.ISR = isr
	if codes := apply(t, m, 7, 1, wire.NewUUID(), st); codes != "0 0" {
		t.Fatal(codes)
	}
	return m.Partition(wire.TopicPartition{Topic: "t"})
}

func (p *Partition) put(t *testing.T, n int) {
	t.Helper()
	for range n {
		b := record.NewBuilder(record.BatchOptions{})
		b.Append(1, nil, []byte("v"))
		made, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Append(storage.AppendRequest{Records: made, LogAppendTime: -1}, false); err != nil {
			t.Fatal(err)
		}
	}
}

func (p *Partition) fetchedBy(id int32, offset int64) {
	p.Fetched(&FollowerFetch{Replica: id, Offset: offset, LeaderEpoch: 5, BrokerEpoch: -1}, p.log.EndOffset())
}

func untilISR(t *testing.T, p *Partition, want ...int32) {
	t.Helper()
	until(t, func() bool { return slices.Equal(p.View().ISR, want) }, func() string { return fmt.Sprintf("ISR %v, want %v", p.View().ISR, want) })
}

func untilHighWatermark(t *testing.T, p *Partition, want int64) {
	t.Helper()
	until(t, func() bool { return p.HighWatermark() == want }, func() string { return fmt.Sprintf("high watermark %d, want %d", p.HighWatermark(), want) })
}

func until(t *testing.T, ok func() bool, why func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(why())
		}
	}
}

func TestFollowerThatCatchesUpJoinsTheISR(t *testing.T) {
	for _, c := range []struct {
		ibp     config.IBP
		serves  int16
		version int16
	}{{config.LatestIBP, 3, 3}, {config.V2_8IV1, 0, 0}, {config.V2_8IV1, 2, 2}, {config.V2_7IV2, 3, 1}} {
		t.Run(fmt.Sprint(c.ibp, " v", c.version), func(t *testing.T) {
			j := &judge{most: c.serves}
			p := leading(t, j, c.ibp, time.Hour, 1, 2)
			p.put(t, 3)
			p.fetchedBy(3, 1)
			p.fetchedBy(2, 3)
			p.fetchedBy(3, 3)
			untilISR(t, p, 1, 2, 3)
			untilHighWatermark(t, p, 3)
			if v := p.View(); v.PartitionEpoch != 1 {
				t.Errorf("partition epoch %d", v.PartitionEpoch)
			}
			if !slices.Equal(j.versions, []int16{c.version}) {
				t.Errorf("versions %v, want %d: %q", j.versions, c.version, j.asked)
			}
		})
	}
}

func TestFollowerThatFallsBehindLeavesTheISR(t *testing.T) {
	j := &judge{most: 3}
	p := leading(t, j, config.LatestIBP, 50*time.Millisecond, 1, 2, 3)
	p.put(t, 1)
	p.fetchedBy(2, 1)
	untilISR(t, p, 1, 2)
	untilHighWatermark(t, p, 1) // which does not wait for who has left
}

func TestChangeIsAskedForUntilTheControllerAnswers(t *testing.T) {
	j := &judge{most: 3, down: 3, codes: []wire.Code{wire.UnknownServerError}}
	p := leading(t, j, config.LatestIBP, time.Hour, 1, 2)
	p.fetchedBy(3, 0)
	untilISR(t, p, 1, 2, 3)
	if want := []string{"[1 2 3] at 0: UNKNOWN_SERVER_ERROR", "[1 2 3] at 0: NONE"}; !slices.Equal(j.asked, want) {
		t.Errorf("asked %q", j.asked)
	}
}

func TestRefusedFollowerIsProposedAgain(t *testing.T) {
	j := &judge{most: 3, codes: []wire.Code{wire.IneligibleReplica, wire.OperationNotAttempted}}
	p := leading(t, j, config.LatestIBP, time.Hour, 1, 2)
	p.fetchedBy(3, 0)
	untilISR(t, p, 1, 2, 3)
}

func TestLargerISRStaysInForceWhenTheAnswerIsUnclear(t *testing.T) {
	j := &judge{most: 3, codes: []wire.Code{wire.InvalidUpdateVersion}}
	p := leading(t, j, config.LatestIBP, time.Hour, 1, 2)
	p.fetchedBy(3, 0)
	<-j.heard
	p.put(t, 1)
	p.fetchedBy(2, 1)
	if hw := p.HighWatermark(); hw != 0 {
		t.Errorf("high watermark %d: broker 3 may be in the ISR, and has nothing", hw)
	}
	// The controller's next word settles it.
	st := state(0, 1, 6, 1, 2, 3)
	st.ISR, st.ZKVersion = []int32{1, 2}, 4
	if codes := apply(t, p.m, 7, 1, wire.UUID{}, st); codes != "0 0" {
		t.Fatal(codes)
	}
	if hw, v := p.HighWatermark(), p.View(); hw != 1 || v.PartitionEpoch != 4 {
		t.Errorf("high watermark %d, partition epoch %d", hw, v.PartitionEpoch)
	}
}

// A change is in force between a follower's fetch and what it makes the leader
// ask for: that follows the new version, or it would be refused for good.
func TestFetchDuringAChangeAsksWithTheVersionInForce(t *testing.T) {
	j := &judge{most: 3}
	p := leading(t, j, config.LatestIBP, time.Hour, 1, 2)
	now, done := p.m.o.Now, atomic.Bool{}
	p.m.o.Now = func() time.Time {
		if done.CompareAndSwap(false, true) {
			p.mu.Lock()
			change := p.proposeLocked(p.view.Load(), []int32{1})
			p.mu.Unlock()
			change.done(5, 1, change.isr)
		}
		return now()
	}
	p.fetchedBy(3, 0)
	untilISR(t, p, 1, 3)
	if want := []string{"[1 3] at 1: NONE"}; !slices.Equal(j.asked, want) {
		t.Errorf("asked %q", j.asked)
	}
}

func TestIdleFollowerIsNotTakenForALateOne(t *testing.T) {
	j := &judge{most: 3}
	p := leading(t, j, config.LatestIBP, time.Hour, 1, 2, 3)
	began := time.Now()
	long := began.Add(-2 * time.Hour)
	session := asker{time.Now()}
	p.mu.Lock()
	for i := range p.mu.isr.followers {
		f := &p.mu.isr.followers[i]
		f.end, f.caughtUp, f.fetched = 0, long, long
		if f.id == 2 { // its session has polled all the while
			f.asks = session
		}
	}
	p.mu.Unlock()
	p.put(t, 1)
	p.checkISR()
	untilISR(t, p, 1, 2)
}

type asker struct{ at time.Time }

func (a asker) LastAsked() time.Time { return a.at }
