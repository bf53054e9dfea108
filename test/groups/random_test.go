package groups

import (
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"

	"barnabas/test/raw"
	"barnabas/test/real"
)

// kinds are clients that all have the range assignor, so that they can share a
// group, and that can be killed and stopped.
var kinds = []startMember{kcat, kcat, kcat, python("kafka-python"), python("aiokafka"), kcat, javaMember("3.9.1"), kcat}

// crowd is a group whose members come and go.
type crowd struct {
	t           *testing.T
	random      *rand.Rand
	addr        string
	group       string
	topic       string
	partitions  int32
	most        int
	members     []member
	outputs     []func() string
	started     int
	records     int
	description string
}

func (c *crowd) start() {
	kind := kinds[c.started%len(kinds)]
	c.started++
	m := kind(c.t, c.addr, c.group, c.topic)
	c.members, c.outputs = append(c.members, m), append(c.outputs, m.output)
}

// take takes out a member.
func (c *crowd) take() member {
	i := c.random.IntN(len(c.members))
	m := c.members[i]
	c.members = append(c.members[:i:i], c.members[i+1:]...)
	return m
}

// settled writes records and waits until the group has settled, with one owner
// for each partition, and has read them all.
func (c *crowd) settled() {
	c.t.Helper()
	produce(c.t, c.addr, c.topic, c.records, c.records+200)
	c.records += 200
	settled(c.t, c.addr, c.group, c.topic, len(c.members), c.partitions)
	real.Until(c.t, patience, "every record to be read after: "+c.description, func() bool { return missing(c.outputs, c.records) == 0 })
}

// change has something happen to a member.
func (c *crowd) change() {
	c.t.Helper()
	switch what := c.random.IntN(4); {
	case len(c.members) < 2 || what == 0 && len(c.members) < c.most:
		c.description += " join"
		c.start()
	case what == 1:
		c.description += " leave"
		c.take().leave()
	case what == 2:
		c.description += " kill"
		c.take().kill()
	default:
		c.description += " stall"
		m := c.take()
		m.signal(syscall.SIGSTOP)
		c.settled()
		m.signal(syscall.SIGCONT)
		c.members = append(c.members, m)
	}
	c.settled()
}

// TestGroupsOfManyMembersAndPartitions has groups of 1 to 20 members of several
// kinds on 1 to 100 partitions whose members join, leave, die and stall at
// random: every record is read, and each time that a group has settled, each
// partition has one owner.
func TestGroupsOfManyMembersAndPartitions(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	sizes, changes := [][2]int{{3, 1}, {12, 100}}, 3
	if os.Getenv("BARNABAS_SOAK") != "" {
		sizes, changes = nil, 20
		for range 10 {
			sizes = append(sizes, [2]int{1 + random.IntN(20), 1 + random.IntN(100)})
		}
	}
	b := real.Barnabas(t, 1, "group.initial.rebalance.delay.ms=1000")
	for _, size := range sizes {
		t.Run(fmt.Sprintf("%d members, %d partitions", size[0], size[1]), func(t *testing.T) {
			c := &crowd{t: t, random: random, addr: b.Addr, most: size[0], partitions: int32(size[1])}
			c.topic = raw.NewTopic(t, b.Addr, c.partitions)
			c.group = "crowd-" + c.topic
			for range c.most {
				c.start()
			}
			c.settled()
			for range changes {
				c.change()
			}
		})
	}
}
