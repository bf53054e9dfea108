package group_test

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"barnabas/internal/coordinator"
	"barnabas/internal/coordinator/group"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var randomTopic = wire.UUID{1}

// consumer is a member of the consumer protocol. It owns what it was told, until
// it is told else.
type consumer struct {
	c      *cluster
	random *rand.Rand
	id     string
	epoch  int32
	owned  []int32
	asked  bool // what it owns has changed since it told
	calm   chan struct{}
}

func (m *consumer) run() {
	for !closed(m.c.stop) {
		m.beat()
		pause(time.Duration(50+m.random.IntN(200)) * time.Millisecond)
		if closed(m.calm) {
			continue
		}
		switch m.random.IntN(80) {
		case 0: // dies; another one comes in its place
			m.abandon()
			m.id = ""
			pause(time.Duration(m.random.IntN(2000)) * time.Millisecond)
		case 1:
			m.leave()
		}
	}
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (m *consumer) abandon() {
	m.own(nil)
	m.epoch = 0
}

// own gives up what is not among parts and takes what is new: nobody else may
// have it.
func (m *consumer) own(parts []int32) {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	for _, p := range m.owned {
		if !slices.Contains(parts, p) {
			delete(m.c.owners, fmt.Sprint(p))
		}
	}
	for _, p := range parts {
		if other, ok := m.c.owners[fmt.Sprint(p)]; ok && other != m.id {
			m.c.fatal = append(m.c.fatal, fmt.Sprintf("partition %d belongs to %s and to %s", p, other, m.id))
		}
		m.c.owners[fmt.Sprint(p)] = m.id
	}
	m.asked = !slices.Equal(m.owned, parts)
	m.owned = parts
}

func (m *consumer) beat() {
	if m.id == "" {
		m.id = m.c.newID()
	}
	r := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	r.Group, r.MemberID, r.MemberEpoch = "g", m.id, m.epoch
	// In time: who can't be heard of for as long loses what it has to give up.
	if m.epoch == 0 || m.asked || m.random.IntN(3) == 0 {
		r.RebalanceTimeoutMillis, r.SubscribedTopicNames, r.Topics = 60000, []string{"t"}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		if len(m.owned) > 0 {
			r.Topics = append(r.Topics, kmsg.ConsumerGroupHeartbeatRequestTopic{TopicID: randomTopic, Partitions: m.owned})
		}
	}
	response, code := m.c.ask(func(g *group.Machine, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
		g.ConsumerHeartbeat(r, "c", "/h", from, now, out)
	})
	if code != wire.None {
		m.asked = true // whatever was told may be lost
		return
	}
	answer := response.(*kmsg.ConsumerGroupHeartbeatResponse)
	switch wire.Code(answer.ErrorCode) {
	case wire.None:
	case wire.FencedMemberEpoch, wire.UnknownMemberID, wire.GroupIDNotFound:
		m.abandon()
		return
	default:
		m.c.fail("heartbeat: %v", wire.Code(answer.ErrorCode))
		return
	}
	m.epoch, m.asked = answer.MemberEpoch, false
	if answer.Assignment == nil {
		return
	}
	var parts []int32
	for _, t := range answer.Assignment.Topics {
		parts = append(parts, t.Partitions...)
	}
	m.own(parts)
}

func (m *consumer) leave() {
	m.own(nil)
	r := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	r.Group, r.MemberID, r.MemberEpoch = "g", m.id, -1
	m.c.ask(func(g *group.Machine, from coordinator.Caller, now time.Time, out *coordinator.Effects) {
		g.ConsumerHeartbeat(r, "c", "/h", from, now, out)
	})
	m.abandon()
	m.id = ""
}

// TestNoPartitionHasTwoConsumersWhenTheCoordinatorDies has consumers of KIP-848
// come and go while the coordinator is killed between append and commit: none is
// told that it owns what another one has not given up, and in the end all is
// owned.
func TestNoPartitionHasTwoConsumersWhenTheCoordinatorDies(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 5
	}
	base := rand.Uint64N(1 << 32)
	deaths := 0
	for seed := base; (seed < base+seeds || deaths < int(5*seeds)) && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) { deaths += dyingConsumers(t, seed) })
	}
	t.Logf("seeds from %d on; the coordinator died %d times between append and commit", base, deaths)
}

func dyingConsumers(t *testing.T, seed uint64) (deaths int) {
	c := &cluster{t: t, stop: make(chan struct{}), owners: map[string]string{}}
	c.r = coordinator.New(coordinator.Options[*group.Machine]{
		Topic: "__consumer_offsets", Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), LoadBuffer: 1 << 10,
		New: func(int32, int32) *group.Machine {
			return group.New(group.Config{
				MaxMetadata: 100, Retention: time.Hour, CheckInterval: time.Minute, MaxRecord: 1 << 20, NewID: c.newID,
				ConsumerSession: 40 * time.Second, ConsumerHeartbeat: 100 * time.Millisecond, ConsumerMaxSize: 100,
				Topic: func(string) (wire.UUID, int32) { return randomTopic, randomPartitions },
			})
		},
	})
	c.r.Elected(0, c.p.Lead())
	var members sync.WaitGroup
	calm := make(chan struct{})
	for i := range uint64(randomMembers) {
		m := &consumer{c: c, random: rand.New(rand.NewPCG(seed, i)), calm: calm}
		members.Go(m.run)
	}
	deaths = c.chaos(rand.New(rand.NewPCG(seed, 1000)), 20)
	close(calm)
	all := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.owners) == randomPartitions
	}
	for range 2000 { // who has died is out after its session
		if all() {
			break
		}
		pause(100 * time.Millisecond)
	}
	if !all() {
		c.fail("in the end only %v are owned", c.owners)
	}
	close(c.stop)
	members.Wait()
	c.r.Close()
	if len(c.fatal) > 0 {
		t.Errorf("seed %d: %s", seed, strings.Join(c.fatal, "\n"))
	}
	return deaths
}
