package group_test

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sort"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"barnabas/internal/coordinator"
	"barnabas/internal/coordinator/group"
	"barnabas/internal/coordinator/memlog"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	randomPartitions = 6
	randomMembers    = 4
)

// cluster is one partition of __consumer_offsets whose leader dies again and
// again, and what the members of a group were told.
type cluster struct {
	t    *testing.T
	p    memlog.Partition
	r    *coordinator.Runtime[*group.Machine]
	ids  int
	stop chan struct{}

	mu     sync.Mutex
	owners map[string]string // "generation partition" to the member that was told it owns it
	sent   [randomPartitions]int64
	acked  [randomPartitions]int64
	fatal  []string
}

type answer struct {
	response any
	code     wire.Code
}

type waiter chan answer

func (w waiter) Answer(r any)        { w <- answer{response: r} }
func (w waiter) Fail(code wire.Code) { w <- answer{code: code} }

// ask waits as long as a client does.
func (c *cluster) ask(f func(m *group.Machine, from coordinator.Caller, now time.Time, out *coordinator.Effects)) (any, wire.Code) {
	w := make(waiter, 2) // room for a second answer, which must not come
	c.r.Do(0, w, func(m *group.Machine, now time.Time, out *coordinator.Effects) { f(m, w, now, out) })
	select {
	case a := <-w:
		return a.response, a.code
	case <-time.After(30 * time.Second):
		c.r.Forget(0, w)
		return nil, wire.RequestTimedOut
	}
}

func (c *cluster) fail(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fatal = append(c.fatal, fmt.Sprintf(format, args...))
}

// member is a consumer. It ends with stop, after the generation it is in.
type member struct {
	c          *cluster
	random     *rand.Rand
	id         string
	generation int32
	owned      []int32
	rest       time.Duration
}

func pause(d time.Duration) { <-time.After(d) }

func (m *member) run() {
	for !closed(m.c.stop) {
		if !m.join() {
			pause(m.rest)
			continue
		}
		for m.work() {
			pause(time.Duration(50+m.random.IntN(300)) * time.Millisecond)
			if m.random.IntN(40) == 0 { // dies; another one comes in its place
				m.id = ""
				pause(time.Duration(m.random.IntN(3000)) * time.Millisecond)
				break
			}
			if m.random.IntN(40) == 0 {
				m.leave()
				break
			}
		}
	}
}

func (m *member) join() bool {
	r := kmsg.NewPtrJoinGroupRequest()
	r.Version, r.Group, r.MemberID, r.ProtocolType = 6, "g", m.id, "consumer"
	r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = 6000, 3000
	metadata := kmsg.NewConsumerMemberMetadata()
	metadata.Topics = []string{"t"}
	r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: metadata.AppendTo(nil)}}
	response, code := m.c.ask(func(g *group.Machine, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
		g.Join(r, "c", "/h", from, now, out)
	})
	if code != wire.None {
		return false
	}
	joined := response.(*kmsg.JoinGroupResponse)
	switch wire.Code(joined.ErrorCode) {
	case wire.None:
	case wire.MemberIDRequired:
		m.id = joined.MemberID
		return m.join()
	case wire.UnknownMemberID:
		m.id = ""
		return false
	default:
		return false
	}
	m.id, m.generation = joined.MemberID, joined.Generation
	return m.sync(joined)
}

func (m *member) sync(joined *kmsg.JoinGroupResponse) bool {
	r := kmsg.NewPtrSyncGroupRequest()
	r.Version, r.Group, r.MemberID, r.Generation = 5, "g", m.id, m.generation
	if joined.LeaderID == m.id {
		r.GroupAssignment = assign(joined.Members)
	}
	response, code := m.c.ask(func(g *group.Machine, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
		g.Sync(r, from, now, out)
	})
	if code != wire.None || response.(*kmsg.SyncGroupResponse).ErrorCode != 0 {
		return false
	}
	m.owned = m.owned[:0]
	for _, b := range response.(*kmsg.SyncGroupResponse).MemberAssignment {
		p := int32(b)
		m.owned = append(m.owned, p)
		key := fmt.Sprint(m.generation, " ", p)
		m.c.mu.Lock()
		other, ok := m.c.owners[key]
		m.c.owners[key] = m.id
		m.c.mu.Unlock()
		if ok && other != m.id {
			m.c.fail("in generation %d partition %d belongs to %s and to %s", m.generation, p, other, m.id)
		}
	}
	return true
}

func assign(members []kmsg.JoinGroupResponseMember) []kmsg.SyncGroupRequestGroupAssignment {
	sort.Slice(members, func(i, j int) bool { return members[i].MemberID < members[j].MemberID })
	all := make([]kmsg.SyncGroupRequestGroupAssignment, len(members))
	for i := range members {
		all[i].MemberID = members[i].MemberID
	}
	for p := range randomPartitions {
		a := &all[p%len(all)]
		a.MemberAssignment = append(a.MemberAssignment, byte(p))
	}
	return all
}

// work commits the owned partitions' offsets and heartbeats. It returns false
// when the member has to join again.
func (m *member) work() bool {
	c := &group.Commit{Group: "g", Member: m.id, Generation: m.generation}
	m.c.mu.Lock()
	for _, p := range m.owned {
		m.c.sent[p]++
		c.Offsets = append(c.Offsets, group.CommitOffset{Topic: "t", Partition: p, Offset: m.c.sent[p], Expire: -1})
	}
	m.c.mu.Unlock()
	_, code := m.c.ask(func(g *group.Machine, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
		g.Commit(c, from, now, out)
	})
	if code == wire.None {
		m.c.mu.Lock()
		for _, o := range c.Offsets {
			if o.Code == wire.None {
				m.c.acked[o.Partition] = max(m.c.acked[o.Partition], o.Offset)
			}
		}
		m.c.mu.Unlock()
	}
	r := kmsg.NewPtrHeartbeatRequest()
	r.Version, r.Group, r.MemberID, r.Generation = 3, "g", m.id, m.generation
	response, code := m.c.ask(func(g *group.Machine, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
		g.Heartbeat(r, from, now, out)
	})
	if code != wire.None {
		return code == wire.CoordinatorLoadInProgress
	}
	switch wire.Code(response.(*kmsg.HeartbeatResponse).ErrorCode) {
	case wire.None:
		return true
	case wire.UnknownMemberID:
		m.id = ""
	}
	return false
}

func (m *member) leave() {
	r := kmsg.NewPtrLeaveGroupRequest()
	r.Version, r.Group, r.Members = 4, "g", []kmsg.LeaveGroupRequestMember{{MemberID: m.id}}
	m.c.ask(func(g *group.Machine, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
		g.Leave(r, from, now, out)
	})
	m.id = ""
}

// fetch checks that what was answered as committed is there.
func (c *cluster) fetch() {
	c.mu.Lock()
	acked := c.acked
	c.mu.Unlock()
	topics := []kmsg.OffsetFetchRequestGroupTopic{{Topic: "t"}}
	for p := range int32(randomPartitions) {
		topics[0].Partitions = append(topics[0].Partitions, p)
	}
	response, code := c.ask(func(g *group.Machine, from coordinator.Caller, _ time.Time, out *coordinator.Effects) {
		g.Fetch(&kmsg.OffsetFetchRequestGroup{Group: "g", Topics: topics, MemberEpoch: -1}, true, from, out)
	})
	if code != wire.None {
		return
	}
	c.mu.Lock()
	sent := c.sent
	c.mu.Unlock()
	for _, p := range response.(*kmsg.OffsetFetchResponseGroup).Topics[0].Partitions {
		if got := max(p.Offset, 0); got < acked[p.Partition] || got > sent[p.Partition] {
			c.fail("partition %d is at %d; answered were %d, sent %d", p.Partition, got, acked[p.Partition], sent[p.Partition])
		}
	}
}

// chaos has the leader die, fall behind and fail to append.
func (c *cluster) chaos(random *rand.Rand, rounds int) (deaths int) {
	for range rounds {
		pause(time.Duration(random.IntN(1500)) * time.Millisecond)
		switch random.IntN(4) {
		case 0:
			c.p.Fail([]error{wire.NotEnoughReplicas, wire.KafkaStorageError}[random.IntN(2)])
			pause(time.Duration(random.IntN(500)) * time.Millisecond)
			c.p.Fail(nil)
		default:
			c.p.Hold(true)
			pause(time.Duration(random.IntN(700)) * time.Millisecond)
			hw, end := c.p.Bounds()
			if random.IntN(3) > 0 {
				c.p.Die(hw + random.Int64N(end-hw+1))
				if end > hw { // between append and commit
					deaths++
				}
				c.r.Resigned(0)
				if random.IntN(2) == 0 {
					pause(time.Duration(random.IntN(1000)) * time.Millisecond)
				}
				c.p.Hold(random.IntN(4) == 0) // held: what it loads is not committed yet
				c.r.Elected(0, c.p.Lead())
				c.fetch()
			}
			c.p.Hold(false)
		}
		c.fetch()
	}
	return deaths
}

// TestNothingAnsweredIsLostWhenTheCoordinatorDies kills it between append and
// commit, hundreds of times in all.
func TestNothingAnsweredIsLostWhenTheCoordinatorDies(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 5
	}
	base := rand.Uint64N(1 << 32)
	deaths := 0
	for seed := base; (seed < base+seeds || deaths < int(5*seeds)) && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) { deaths += dying(t, seed) })
	}
	t.Logf("seeds from %d on; the coordinator died %d times between append and commit", base, deaths)
}

func dying(t *testing.T, seed uint64) (deaths int) {
	c := &cluster{t: t, stop: make(chan struct{}), owners: map[string]string{}}
	c.r = coordinator.New(coordinator.Options[*group.Machine]{
		Topic: "__consumer_offsets", Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), LoadBuffer: 1 << 10,
		New: func(int32, int32) *group.Machine {
			return group.New(group.Config{
				MinSession: time.Second, MaxSession: time.Minute, MaxSize: 100, MaxMetadata: 100, Retention: time.Hour, CheckInterval: time.Minute,
				MaxRecord: 1 << 20, NewID: c.newID,
			})
		},
	})
	c.r.Elected(0, c.p.Lead())
	var members sync.WaitGroup
	for i := range uint64(randomMembers) {
		m := &member{c: c, random: rand.New(rand.NewPCG(seed, i)), rest: 100 * time.Millisecond}
		members.Go(m.run)
	}
	deaths = c.chaos(rand.New(rand.NewPCG(seed, 1000)), 20)
	close(c.stop)
	members.Wait()
	c.fetch()
	c.r.Close()
	if len(c.owners) == 0 || c.acked == [randomPartitions]int64{} {
		c.fail("nothing was done: %d owners, acked %v", len(c.owners), c.acked)
	}
	if len(c.fatal) > 0 {
		t.Errorf("seed %d: %s", seed, strings.Join(c.fatal, "\n"))
	}
	return deaths
}

func (c *cluster) newID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids++
	return fmt.Sprint(c.ids)
}
