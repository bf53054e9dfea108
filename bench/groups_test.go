package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// groupMember is a member of a group on a connection of its own.
type groupMember struct {
	conn       *rawConn
	group, id  string
	generation int32
	leads      bool
	topic      string
	partitions int32 // of the topic
	members    []kmsg.JoinGroupResponseMember
}

func newGroupMember(addr, group, topic string, partitions int32) (*groupMember, error) {
	nc, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return nil, err
	}
	return &groupMember{conn: &rawConn{nc: nc, limit: time.Minute}, group: group, topic: topic, partitions: partitions}, nil
}

var errRefused = errors.New("refused")

func refusedWith(code int16) error {
	if code != 0 {
		return fmt.Errorf("%w: %d", errRefused, code)
	}
	return nil
}

// join waits for the end of the join phase.
func (m *groupMember) join() error {
	r := kmsg.NewPtrJoinGroupRequest()
	r.Version, r.Group, r.MemberID, r.ProtocolType = 5, m.group, m.id, "consumer"
	r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = 60000, 60000
	metadata := kmsg.NewConsumerMemberMetadata()
	metadata.Topics = []string{m.topic}
	r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: metadata.AppendTo(nil)}}
	for {
		response, err := m.conn.do(r)
		if err != nil {
			return err
		}
		joined := response.(*kmsg.JoinGroupResponse)
		switch joined.ErrorCode {
		case 0:
			m.id, m.generation, m.leads, m.members = joined.MemberID, joined.Generation, joined.LeaderID == joined.MemberID, joined.Members
			return nil
		case 79: // MEMBER_ID_REQUIRED
			r.MemberID = joined.MemberID
		case 14, 15, 16:
		default:
			return refusedWith(joined.ErrorCode)
		}
	}
}

// sync gets the assignment; the leader gives it.
func (m *groupMember) sync() error {
	r := kmsg.NewPtrSyncGroupRequest()
	r.Version, r.Group, r.MemberID, r.Generation = 3, m.group, m.id, m.generation
	if m.leads {
		for i, other := range m.members {
			a := kmsg.NewConsumerMemberAssignment()
			t := kmsg.ConsumerMemberAssignmentTopic{Topic: m.topic}
			for p := int32(i); p < m.partitions; p += int32(len(m.members)) {
				t.Partitions = append(t.Partitions, p)
			}
			a.Topics = append(a.Topics, t)
			r.GroupAssignment = append(r.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: other.MemberID, MemberAssignment: a.AppendTo(nil)})
		}
	}
	response, err := m.conn.do(r)
	if err != nil {
		return err
	}
	return refusedWith(response.(*kmsg.SyncGroupResponse).ErrorCode)
}

func (m *groupMember) heartbeat() error {
	r := kmsg.NewPtrHeartbeatRequest()
	r.Version, r.Group, r.MemberID, r.Generation = 3, m.group, m.id, m.generation
	response, err := m.conn.do(r)
	if err != nil {
		return err
	}
	return refusedWith(response.(*kmsg.HeartbeatResponse).ErrorCode)
}

func (m *groupMember) commit(partition int32, offset int64) error {
	r := kmsg.NewPtrOffsetCommitRequest()
	r.Version, r.Group, r.MemberID, r.Generation = 6, m.group, m.id, m.generation
	r.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: m.topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Partition: partition, Offset: offset, LeaderEpoch: -1}}}}
	response, err := m.conn.do(r)
	if err != nil {
		return err
	}
	return refusedWith(response.(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode)
}

// every runs f for each member at the same time and returns the first error.
func every(members []*groupMember, f func(i int, m *groupMember) error) error {
	var all sync.WaitGroup
	failed := make(chan error, len(members))
	for i, m := range members {
		all.Go(func() {
			if err := f(i, m); err != nil {
				failed <- err
			}
		})
	}
	all.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// coordinates waits until the group has a coordinator.
func coordinates(t *testing.T, addr, group string) {
	t.Helper()
	m, err := newGroupMember(addr, group, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.conn.close()
	real.Until(t, time.Minute, "a coordinator", func() bool {
		r := kmsg.NewPtrFindCoordinatorRequest()
		r.Version, r.CoordinatorKey = 2, group
		if _, err := m.conn.do(r); err != nil {
			return false
		}
		err := m.heartbeat() // nil while the group is being loaded
		return err != nil && err.Error() == fmt.Sprintf("%v: 25", errRefused)
	})
}

func bothWith(t *testing.T, properties ...string) []side {
	b := real.Barnabas(t, 1, properties...)
	k := real.KafkaFullSize(t, "3.9.1", 1, real.ZooKeeper(t), append([]string{"inter.broker.protocol.version=3.9"}, properties...)...)
	return []side{{"barnabas", b.Addr, b.PID(), b.Dir}, {"kafka 3.9.1", k.Addr, k.PID(), k.Dir}}
}

func reportBoth(t *testing.T, what, unit string, got map[string]series, goal string) {
	t.Helper()
	report(t, what, unit, got["barnabas"], got["kafka 3.9.1"], goal)
}

// TestManyGroups has 1,000 groups of 3 members, each of which sends a heartbeat
// and commits an offset once a second. Beside it is what answering them alone
// costs.
func TestManyGroups(t *testing.T) {
	const groups, size = 1000, 3
	got := map[string]series{}
	for _, s := range bothWith(t, "group.initial.rebalance.delay.ms=3000") {
		createTopic(t, s.addr, "topic", size)
		coordinates(t, s.addr, "group-0")
		members := membersOf(t, s.addr, groups, size)
		if err := every(members, func(_ int, m *groupMember) error { return errors.Join(m.join(), m.sync()) }); err != nil {
			t.Fatal(err)
		}
		got[s.name] = stay(t, members, size, s.pid)
		for _, m := range members {
			m.conn.close()
		}
	}
	floor := startFloor(t, "answer", "")
	members := membersOf(t, floor.addr, groups, size)
	for _, m := range members {
		m.id, m.generation = "member-00000000-0000-0000-0000-000000000000", 1
	}
	bare := stay(t, members, size, floor.pid)
	reportBoth(t, "1,000 groups of 3, heartbeat and commit a second", "% of a core", got, "under 15 %")
	fmt.Printf("%-44s %s %% of a core   what answering the same requests without a coordinator costs\n", "the same, answers alone", bare)
}

// membersOf connects the members of groups of size, who have not joined yet.
func membersOf(t *testing.T, addr string, groups, size int) (members []*groupMember) {
	for i := range groups * size {
		m, err := newGroupMember(addr, fmt.Sprint("group-", i/size), "topic", int32(size))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.conn.close)
		members = append(members, m)
	}
	return members
}

// stay has members, who have joined in groups of size, send a heartbeat and a
// commit a second each, and returns what part of a core a process uses meanwhile.
func stay(t *testing.T, members []*groupMember, size, pid int) (used series) {
	stop := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- every(members, func(i int, m *groupMember) error {
			pause(time.Duration(i) * time.Second / time.Duration(len(members)))
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for n := int64(0); ; n++ {
				if err := errors.Join(m.heartbeat(), m.commit(int32(i%size), n)); err != nil {
					return err
				}
				select {
				case <-tick.C:
				case <-stop:
					return nil
				}
			}
		})
	}()
	pause(5 * time.Second)
	for range rounds {
		before, start := cpuSeconds(pid), time.Now()
		pause(5 * time.Second)
		used = append(used, 100*(cpuSeconds(pid)-before)/time.Since(start).Seconds())
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return used
}

// TestRebalance has the 100 members of a group on 1,000 partitions join again:
// it takes from the last JoinGroup until the last answer to SyncGroup.
func TestRebalance(t *testing.T) {
	const size, partitions = 100, 1000
	got := map[string]series{}
	for _, s := range bothWith(t, "group.initial.rebalance.delay.ms=3000") {
		coordinates(t, s.addr, "group") // which needs no topic
		var members []*groupMember
		for range size {
			m, err := newGroupMember(s.addr, "group", "topic", partitions)
			if err != nil {
				t.Fatal(err)
			}
			defer m.conn.close()
			members = append(members, m)
		}
		if err := every(members, func(_ int, m *groupMember) error { return errors.Join(m.join(), m.sync()) }); err != nil {
			t.Fatal(err)
		}
		for range rounds {
			got[s.name] = append(got[s.name], rebalance(t, members))
		}
	}
	reportBoth(t, "rebalance of 100 members on 1,000 partitions", "ms", got, "300 ms")
}

// rebalance has the leader join again, and then the others, who learn of it by
// their heartbeats. It returns the milliseconds from the last JoinGroup to the
// last answer to SyncGroup.
func rebalance(t *testing.T, members []*groupMember) float64 {
	t.Helper()
	leader := slices.IndexFunc(members, func(m *groupMember) bool { return m.leads })
	other := members[(leader+1)%len(members)]
	var mu sync.Mutex
	var last time.Time
	again := func(_ int, m *groupMember) error {
		mu.Lock()
		last = time.Now()
		mu.Unlock()
		return errors.Join(m.join(), m.sync())
	}
	led := make(chan error, 1)
	go func() { led <- again(leader, members[leader]) }()
	real.Until(t, time.Minute, "the rebalance to begin", func() bool { return other.heartbeat() != nil })
	err := every(slices.Concat(members[:leader], members[leader+1:]), again)
	if err := errors.Join(err, <-led); err != nil {
		t.Fatal(err)
	}
	return float64(time.Since(last).Microseconds()) / 1000
}

// TestLoadOffsets starts a broker with 100,000 committed offsets in one
// partition: it takes from the first answer to Metadata until the offsets are
// answered.
func TestLoadOffsets(t *testing.T) {
	const groups, partitions = 100, 1000
	properties := []string{"offsets.topic.num.partitions=1"}
	b := real.Barnabas(t, 1, properties...)
	k := real.KafkaFullSize(t, "3.9.1", 1, real.ZooKeeper(t), append([]string{"inter.broker.protocol.version=3.9", "zookeeper.session.timeout.ms=6000"}, properties...)...)
	got := map[string]series{}
	for _, s := range []struct {
		side
		restart func()
	}{
		{side{"barnabas", b.Addr, 0, b.Dir}, func() { b.Stop(); b.Restart(t) }},
		{side{"kafka 3.9.1", k.Addr, 0, k.Dir}, func() { k.Stop(); k.Restart(t) }},
	} {
		createTopic(t, s.addr, "topic", partitions)
		coordinates(t, s.addr, "group-0")
		for g := range groups {
			commitAll(t, s.addr, fmt.Sprint("group-", g), partitions)
		}
		for range rounds {
			s.restart()
			start := time.Now()
			real.Until(t, time.Minute, "the offsets", func() bool { return fetched(s.addr, "group-99", partitions) })
			got[s.name] = append(got[s.name], time.Since(start).Seconds())
		}
	}
	reportBoth(t, "100,000 committed offsets are there after a start", "s", got, "0.3 s")
}

// commitAll commits an offset of every partition from outside of the group.
func commitAll(t *testing.T, addr, group string, partitions int32) {
	t.Helper()
	m, err := newGroupMember(addr, group, "topic", partitions)
	if err != nil {
		t.Fatal(err)
	}
	defer m.conn.close()
	r := kmsg.NewPtrOffsetCommitRequest()
	r.Version, r.Group, r.Generation = 6, group, -1
	topic := kmsg.OffsetCommitRequestTopic{Topic: "topic"}
	for p := range partitions {
		topic.Partitions = append(topic.Partitions, kmsg.OffsetCommitRequestTopicPartition{Partition: p, Offset: 7, LeaderEpoch: -1})
	}
	r.Topics = append(r.Topics, topic)
	response, err := m.conn.do(r)
	if err != nil {
		t.Fatal(err)
	}
	if code := response.(*kmsg.OffsetCommitResponse).Topics[0].Partitions[partitions-1].ErrorCode; code != 0 {
		t.Fatalf("commit: %d", code)
	}
}

// fetched tells whether a group's offsets are answered.
func fetched(addr, group string, partitions int) bool {
	m, err := newGroupMember(addr, group, "", 0)
	if err != nil {
		return false
	}
	defer m.conn.close()
	r := kmsg.NewPtrOffsetFetchRequest()
	r.Version, r.Group = 5, group
	response, err := m.conn.do(r)
	if err != nil {
		return false
	}
	answer := response.(*kmsg.OffsetFetchResponse)
	return answer.ErrorCode == 0 && len(answer.Topics) == 1 && len(answer.Topics[0].Partitions) == partitions
}

// TestSmallTransactions compares the rate of transactions of one record each:
// of one producer, and of ten at the same time.
func TestSmallTransactions(t *testing.T) {
	for _, producers := range []int{1, 10} {
		got := map[string]series{}
		sides := bothWith(t)
		for round := range rounds {
			for _, s := range sides {
				if round == 0 {
					createTopic(t, s.addr, "topic", 1)
					transactions(t, s.addr, producers, 50)
				}
				start := time.Now()
				n := transactions(t, s.addr, producers, 300)
				got[s.name] = append(got[s.name], float64(n)/time.Since(start).Seconds())
			}
		}
		reportBoth(t, fmt.Sprintf("transactions of 1 record, %d producers", producers), "/s", got, "3 times Kafka's")
	}
}

// transactions has producers write n transactions each, and returns how many
// there were.
func transactions(t *testing.T, addr string, producers, n int) int {
	t.Helper()
	var all sync.WaitGroup
	for i := range producers {
		all.Go(func() {
			ctx := context.Background()
			client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID(fmt.Sprint("bench-", i)), kgo.DefaultProduceTopic("topic"), kgo.ProducerLinger(0))
			if err != nil {
				t.Error(err)
				return
			}
			defer client.Close()
			for range n {
				if err := client.BeginTransaction(); err != nil {
					t.Error(err)
					return
				}
				if err := client.ProduceSync(ctx, kgo.StringRecord("one")).FirstErr(); err != nil {
					t.Error(err)
					return
				}
				if err := client.EndTransaction(ctx, kgo.TryCommit); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	return producers * n
}
