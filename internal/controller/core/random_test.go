package core

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"barnabas/internal/config"
	"barnabas/internal/wire"
	"barnabas/internal/znode"
)

var seedFlag = flag.Uint64("seed", 0, "run the random tests with this seed only")

// TestRandomOrders lets brokers come and go, topics be made, grown, moved and
// deleted, controllers follow each other and answers get lost, each thing
// happening at any moment; now and then everything is let to settle, and then
// ZooKeeper, the machine and the brokers must agree and nothing be stuck.
func TestRandomOrders(t *testing.T) {
	for range 60 {
		seed := *seedFlag
		if seed == 0 {
			seed = rand.Uint64()
		}
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { runRandom(t, seed) }) {
			t.Logf("again with -seed %d", seed)
		}
		if *seedFlag != 0 || t.Failed() {
			return
		}
	}
}

type chaos struct {
	*world
	*rand.Rand
}

func runRandom(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	steps := 20 + r.IntN(100)
	cfg := testConfig()
	cfg.UncleanElection = r.IntN(4) == 0
	cfg.AutoRebalance = r.IntN(2) == 0
	cfg.IBP = []config.IBP{config.V2_4IV0, config.V2_7IV1, config.V2_8IV1, config.LatestIBP, config.LatestIBP}[r.IntN(5)]
	c := &chaos{world: newWorld(cfg), Rand: r}
	c.ours = r.IntN(3) == 0
	c.twice = func() bool { return r.IntN(40) == 0 }
	for id := int32(1); id <= 4; id++ {
		c.up(id)
	}
	c.elect()
	for round := range 4 {
		for range steps {
			c.act()
			for range r.IntN(6) {
				c.progress()
			}
		}
		if c.calm() {
			c.check(t)
		} else {
			c.problem("it does not settle")
		}
		if len(c.problems) > 0 || t.Failed() {
			tail := strings.Split(c.trace.String(), "\n")
			t.Fatalf("round %d: %s\n%s\n--- the end of the trace\n%s", round, strings.Join(c.problems, "\n"), c.dump("/brokers/topics"),
				strings.Join(tail[max(0, len(tail)-300):], "\n"))
		}
	}
}

// progress lets one of the things that wait happen.
func (c *chaos) progress() {
	switch c.IntN(4) {
	case 0:
		c.doIO()
	case 1:
		c.deliver()
	default:
		c.answer(int32(1 + c.IntN(4)))
	}
}

func (c *chaos) topic() string { return fmt.Sprintf("t%d", c.IntN(8)) }

func (c *chaos) replicas() []int32 {
	ids := []int32{1, 2, 3, 4}
	c.Shuffle(4, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids[:1+c.IntN(3)]
}

func (c *chaos) partition() wire.TopicPartition {
	return wire.TopicPartition{Topic: c.topic(), Partition: int32(c.IntN(3))}
}

// act does one thing that brokers, tools or clients may do at any time.
func (c *chaos) act() {
	id := int32(1 + c.IntN(4))
	ignore := func(any) {}
	switch c.IntN(20) {
	case 0, 1:
		if c.brokers[id] == nil {
			c.up(id)
		} else {
			c.down(id)
		}
	case 2:
		if c.brokers[id] != nil {
			c.down(id)
			c.up(id)
		}
	case 3:
		if b := c.brokers[id]; b != nil {
			b.hold = !b.hold
		}
	case 4:
		c.toolCreates()
	case 5, 6:
		c.ask(CreateTopics{[]NewTopic{{Name: c.topic(), Assignment: [][]int32{c.replicas(), c.replicas()}}}}, ignore)
	case 7:
		c.ask(CreatePartitions{Topic: c.topic(), From: 2, Added: [][]int32{c.replicas()}}, ignore)
	case 8:
		c.toolGrows()
	case 9:
		c.ask(DeleteTopics{[]string{c.topic()}}, ignore)
	case 10:
		c.create(znode.DeleteTopicPath(c.topic()), "")
	case 11, 12:
		c.ask(Reassign{[]Reassignment{{c.partition(), c.replicas()}, {c.partition(), nil}}}, ignore)
	case 13:
		c.set(znode.ReassignPartitions, string(znode.EncodeReassignments([]znode.Reassignment{{TopicPartition: c.partition(), Replicas: c.replicas()}, {TopicPartition: c.partition(), Replicas: c.replicas()}})))
	case 14:
		c.set(znode.PreferredElection, string(znode.EncodePreferredElection([]wire.TopicPartition{c.partition(), c.partition()})))
	case 15:
		c.ask(ElectLeaders{Unclean: c.IntN(8) == 0}, ignore)
	case 16:
		c.ask(ControlledShutdown{id, -1}, ignore)
	case 17, 18:
		c.leaderAlters(false)
	case 19:
		if c.IntN(4) == 0 {
			for len(c.io) > 0 && c.IntN(2) == 0 {
				c.doIO() // done, but nobody hears of it
			}
			c.failover()
		} else {
			c.step(Tick{})
		}
	}
}

func (c *chaos) toolCreates() {
	n := znode.Topic{Version: 1, Partitions: map[int32]znode.Assignment{0: {Replicas: c.replicas()}, 1: {Replicas: c.replicas()}}}
	if c.IntN(5) == 0 {
		n.Partitions[1] = znode.Assignment{Replicas: []int32{1, 1}}
	}
	c.create(znode.TopicPath(c.topic()), string(n.Encode()))
}

// toolGrows rewrites a topic node as a tool of 0.8 does.
func (c *chaos) toolGrows() {
	node := c.tree[znode.TopicPath(c.topic())]
	if node == nil {
		return
	}
	n, err := znode.DecodeTopic([]byte(node.data))
	if err != nil || len(n.Partitions) > 3 {
		return
	}
	for _, a := range n.Partitions {
		if len(a.Adding)+len(a.Removing) > 0 {
			return // such tools refuse while a reassignment is in progress
		}
	}
	name := c.topic()
	if other := c.tree[znode.TopicPath(name)]; other == node {
		n.Version = 1
		n.Partitions[int32(len(n.Partitions))] = znode.Assignment{Replicas: c.replicas()}
		c.set(znode.TopicPath(name), string(n.Encode()))
	}
}

// leaderAlters lets leaders change ISRs: one of them to anything, or all to
// every replica that is up.
func (c *chaos) leaderAlters(all bool) {
	for _, id := range slices.Sorted(maps.Keys(c.brokers)) {
		b := c.brokers[id]
		tps := slices.SortedFunc(maps.Keys(b.leaders), func(a, b wire.TopicPartition) int { return strings.Compare(a.String(), b.String()) })
		for _, tp := range tps {
			p := b.leaders[tp]
			if p.Leader != id || !all && c.IntN(4) > 0 {
				continue
			}
			isr := []int32{id}
			for _, r := range p.Replicas {
				if r != id && c.brokers[r] != nil && (all || c.IntN(2) == 0) {
					isr = append(isr, r)
				}
			}
			if all && sameSet(isr, p.ISR) && b.pending[tp] == nil {
				continue
			}
			c.alterISRBy(b, tp, isr)
			if !all {
				return
			}
		}
	}
}

// calm brings everything up and lets it settle, followers catching up.
func (c *chaos) calm() bool {
	c.twice = func() bool { return false }
	defer func() { c.twice = func() bool { return c.IntN(40) == 0 } }()
	for id := int32(1); id <= 4; id++ {
		if b := c.brokers[id]; b == nil {
			c.up(id)
			c.brokers[id].hold = false
		} else {
			b.hold = false
		}
	}
	for range 60 {
		c.settle()
		before := c.zxid
		// A shutting down broker that does not go holds the ISR small: bounce.
		for _, id := range c.m.brokerIDs() {
			if c.m.brokers[id].shuttingDown && c.brokers[id] != nil {
				c.down(id)
				c.up(id)
				break
			}
		}
		accepted := c.accepted
		c.leaderAlters(true)
		c.settle()
		if len(c.problems) > 0 {
			return false
		}
		if c.zxid == before && c.accepted == accepted && c.m.Idle() {
			return true
		}
	}
	return false
}

// check compares ZooKeeper, the machine and the brokers.
func (c *chaos) check(t *testing.T) {
	for _, path := range []string{znode.DeleteTopics, znode.ISRChanges} {
		if left := c.children(path); len(left) > 0 {
			t.Errorf("%s: %v is stuck; why: %v", path, left, c.m.why(left[0]))
		}
	}
	for _, path := range []string{znode.ReassignPartitions, znode.PreferredElection} {
		if n := c.tree[path]; n != nil {
			t.Errorf("%s is stuck: %s", path, n.data)
		}
	}
	if len(c.m.queued)+len(c.m.reassigning)+len(c.m.unled) > 0 {
		t.Errorf("%d deletions, %d reassignments, %d partitions without a leader", len(c.m.queued), len(c.m.reassigning), len(c.m.unled))
	}
	if names := c.children(znode.Topics); !slices.Equal(names, sortedKeys(c.m.topics)) {
		t.Errorf("topics %v, in memory %v", names, sortedKeys(c.m.topics))
	}
	want := map[int32]map[wire.TopicPartition]bool{}
	for _, p := range c.m.allPartitions() {
		c.checkPartition(t, p)
		for _, id := range p.replicas {
			if want[id] == nil {
				want[id] = map[wire.TopicPartition]bool{}
			}
			want[id][p.tp()] = true
		}
	}
	for id, b := range c.brokers {
		for tp := range b.leaders {
			if !want[id][tp] && !b.missed {
				t.Errorf("broker %d still has %s", id, tp)
			}
		}
		for tp := range b.metadata {
			if c.m.partition(tp) == nil && !b.missed {
				t.Errorf("broker %d still tells of %s", id, tp)
			}
		}
		if !slices.Equal(b.live, []int32{1, 2, 3, 4}) {
			t.Errorf("broker %d believes in brokers %v", id, b.live)
		}
	}
}

func (c *chaos) checkPartition(t *testing.T, p *partition) {
	topicNode := c.tree[znode.TopicPath(p.topic.name)]
	if n, err := znode.DecodeTopic([]byte(topicNode.data)); err != nil || !slices.Equal(n.Partitions[p.id].Replicas, p.replicas) ||
		len(n.Partitions[p.id].Adding)+len(n.Partitions[p.id].Removing) > 0 || n.ID != p.topic.id || topicNode.version != p.topic.version {
		t.Errorf("%s: node %s version %d, in memory %v version %d", p, topicNode.data, topicNode.version, p.replicas, p.topic.version)
	}
	if c.m.hasTopicIDs() && p.topic.id.IsZero() {
		t.Errorf("%s has no id", p)
	}
	state := c.tree[znode.StatePath(p.topic.name, p.id)]
	if state == nil {
		t.Errorf("%s has no state", p)
		return
	}
	if s, err := znode.DecodePartitionState([]byte(state.data)); err != nil || !sameState(s, p.lead) || state.version != p.version {
		t.Errorf("%s: state %s version %d, in memory %+v version %d", p, state.data, state.version, p.lead, p.version)
	}
	if p.state != partitionOnline || !c.m.online(p.lead.Leader, p) || !subset(p.lead.ISR, p.replicas) || !sameSet(p.lead.ISR, p.replicas) {
		t.Errorf("%s: %s, %+v, replicas %v", p, p.state, p.lead, p.replicas)
	}
	for id, s := range p.replicaStates {
		if s != replicaOnline || !slices.Contains(p.replicas, id) {
			t.Errorf("%s: replica %d is %s", p, id, s)
		}
	}
	for id, b := range c.brokers {
		if m := b.metadata[p.tp()]; m.Leader != p.lead.Leader || m.LeaderEpoch != p.lead.LeaderEpoch || m.ZKVersion != p.version || !sameSet(m.ISR, p.lead.ISR) {
			t.Errorf("%s: broker %d tells of %+v", p, id, m)
		}
		if slices.Contains(p.replicas, id) {
			if l := b.leaders[p.tp()]; l.LeaderEpoch != p.lead.LeaderEpoch || l.Leader != p.lead.Leader {
				t.Errorf("%s: broker %d was told of leader %d in epoch %d, it is %d in %d", p, id, l.Leader, l.LeaderEpoch, p.lead.Leader, p.lead.LeaderEpoch)
			}
		}
	}
}
