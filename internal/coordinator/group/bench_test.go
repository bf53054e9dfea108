package group_test

import (
	"fmt"
	"testing"
	"time"

	"barnabas/internal/coordinator"
	"barnabas/internal/coordinator/group"
	"barnabas/internal/coordinator/memlog"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func benchRuntime() *coordinator.Runtime[*group.Machine] {
	return coordinator.New(coordinator.Options[*group.Machine]{
		Topic: "__consumer_offsets",
		New: func(int32, int32) *group.Machine {
			return group.New(group.Config{MinSession: time.Second, MaxSession: time.Hour, MaxSize: 1000, MaxMetadata: 4096, Retention: time.Hour,
				CheckInterval: time.Hour, MaxRecord: 1 << 20, NewID: func() string { return "id" }})
		},
	})
}

func do[R any](r *coordinator.Runtime[*group.Machine], f func(m *group.Machine, from coordinator.Caller, now time.Time, out *coordinator.Effects)) R {
	w := make(waiter, 1)
	r.Do(0, w, func(m *group.Machine, now time.Time, out *coordinator.Effects) { f(m, w, now, out) })
	a := <-w
	if a.response == nil {
		panic(a.code)
	}
	return a.response.(R)
}

func commitOf(id, member string, generation int32, partitions int, offset int64) *group.Commit {
	c := &group.Commit{Group: id, Member: member, Generation: generation}
	for p := range int32(partitions) {
		c.Offsets = append(c.Offsets, group.CommitOffset{Topic: "topic", Partition: p, Offset: offset, LeaderEpoch: -1, Expire: -1})
	}
	return c
}

func commits(r *coordinator.Runtime[*group.Machine], c *group.Commit) {
	do[*group.Commit](r, func(m *group.Machine, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
		m.Commit(c, from, now, out)
	})
}

// BenchmarkLoad100000Offsets loads a partition with that many offsets.
func BenchmarkLoad100000Offsets(b *testing.B) {
	var p memlog.Partition
	r := benchRuntime()
	r.Elected(0, p.Lead())
	led(r)
	for g := range 1000 {
		commits(r, commitOf(fmt.Sprint("group-", g), "", -1, 100, 5))
	}
	r.Resigned(0)
	b.ReportAllocs()
	for b.Loop() {
		p.Die(1 << 40)
		r.Elected(0, p.Lead())
		led(r)
		r.Resigned(0)
	}
	r.Close()
}

func led(r *coordinator.Runtime[*group.Machine]) {
	for {
		if active, _ := r.Led(); len(active) > 0 {
			return
		}
	}
}

// BenchmarkHeartbeat is one member's.
func BenchmarkHeartbeat(b *testing.B) {
	var p memlog.Partition
	r := benchRuntime()
	defer r.Close()
	r.Elected(0, p.Lead())
	led(r)
	j := kmsg.NewPtrJoinGroupRequest()
	j.Version, j.Group, j.ProtocolType, j.SessionTimeoutMillis = 3, "g", "consumer", 10000
	j.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
	joined := do[*kmsg.JoinGroupResponse](r, func(m *group.Machine, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
		m.Join(j, "c", "/h", from, now, out)
	})
	h := kmsg.NewPtrHeartbeatRequest()
	h.Group, h.MemberID, h.Generation = "g", joined.MemberID, 1
	b.ReportAllocs()
	for b.Loop() {
		do[*kmsg.HeartbeatResponse](r, func(m *group.Machine, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
			m.Heartbeat(h, from, now, out)
		})
	}
}

// BenchmarkCommit is of one offset.
func BenchmarkCommit(b *testing.B) {
	var p memlog.Partition
	r := benchRuntime()
	defer r.Close()
	r.Elected(0, p.Lead())
	led(r)
	b.ReportAllocs()
	for b.Loop() {
		commits(r, commitOf("g", "", -1, 1, 7))
	}
}
