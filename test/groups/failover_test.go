package groups

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// three are brokers on one ZooKeeper that have every partition.
type three struct {
	t         *testing.T
	brokers   []*real.BarnabasBroker
	bootstrap string
	dead      int // index of the broker that is down; -1: none
}

func startThree(t *testing.T, properties ...string) *three {
	t.Helper()
	zk := real.StartKeeper(t).Addr
	c := &three{t: t, dead: -1}
	var addrs []string
	for id := range 3 {
		b := real.Barnabas(t, id+1, append([]string{"zookeeper.connect=" + zk, "zookeeper.session.timeout.ms=6000", "default.replication.factor=3",
			"offsets.topic.replication.factor=3", "offsets.topic.num.partitions=1"}, properties...)...)
		c.brokers, addrs = append(c.brokers, b), append(addrs, b.Addr)
	}
	c.bootstrap = strings.Join(addrs, ",")
	return c
}

// createTopic makes a topic of three replicas.
func (c *three) createTopic(name string, partitions int32) {
	c.t.Helper()
	r := kmsg.NewPtrCreateTopicsRequest()
	r.Version, r.TimeoutMillis = 5, 30000
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, 3
	r.Topics = append(r.Topics, topic)
	real.Until(c.t, patience, "topic "+name, func() bool {
		for _, b := range c.brokers { // the controller makes it
			if code := raw.Ask[*kmsg.CreateTopicsResponse](c.t, b.Addr, r).Topics[0].ErrorCode; code == 0 {
				return true
			}
		}
		return false
	})
}

// find returns which broker coordinates a group, if all that are up say the same
// and it serves; else -1.
func (c *three) find(group string) int {
	c.t.Helper()
	at := -1
	for i, b := range c.brokers {
		if i == c.dead {
			continue
		}
		r := kmsg.NewPtrFindCoordinatorRequest()
		r.Version, r.CoordinatorKey = 2, group
		answer := raw.Ask[*kmsg.FindCoordinatorResponse](c.t, b.Addr, r)
		says := int(answer.NodeID) - 1
		if answer.ErrorCode != 0 || says == c.dead || at >= 0 && says != at {
			return -1
		}
		at = says
	}
	h := kmsg.NewPtrHeartbeatRequest()
	h.Group, h.MemberID = group, "nobody"
	if raw.Ask[*kmsg.HeartbeatResponse](c.t, c.brokers[at].Addr, h).ErrorCode != 25 {
		return -1
	}
	return at
}

// coordinator waits until there is one.
func (c *three) coordinator(group string) (at int) {
	c.t.Helper()
	real.Until(c.t, patience, "a coordinator of "+group, func() bool { at = c.find(group); return at >= 0 })
	return at
}

// kill ends a broker as kill -9 does; start brings it back.
func (c *three) kill(i int) {
	c.brokers[i].Kill()
	c.dead = i
}

func (c *three) start() {
	c.t.Helper()
	c.brokers[c.dead].Restart(c.t)
	c.dead = -1
}

// TestConsumersOutliveTheirCoordinator kills the broker that coordinates a group
// of Java 4.1.0 consumers of KIP-848 and classic ones, again and again, and a
// member with it now and then: each time the group settles at another broker,
// with one owner for each partition, and every record is read.
func TestConsumersOutliveTheirCoordinator(t *testing.T) {
	t.Parallel()
	rounds := 2
	if os.Getenv("BARNABAS_SOAK") != "" {
		rounds = 12
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	c := startThree(t, consumerProtocol...)
	const topic, group, partitions = "shared", "outlives", 6
	c.createTopic(topic, partitions)
	kinds := []startMember{consumerMember(), kcat, consumerMember(), javaMember("4.1.0")}
	members := make([]member, len(kinds))
	var outputs []func() string
	join := func(i int) {
		members[i] = kinds[i](t, c.bootstrap, group, topic)
		outputs = append(outputs, members[i].output)
	}
	records := 0
	more := func() {
		t.Helper()
		produce(t, c.bootstrap, topic, records, records+100)
		records += 100
	}
	settle := func(what string) {
		t.Helper()
		settledAt(t, func() string {
			if at := c.find(group); at >= 0 {
				return c.brokers[at].Addr
			}
			return ""
		}, group, topic, len(members), partitions)
		real.Until(t, patience, "every record to be read "+what, func() bool { return missing(outputs, records) == 0 })
	}
	for i := range members {
		join(i)
	}
	more()
	settle("at first")
	for round := range rounds {
		at := c.coordinator(group)
		t.Logf("round %d: broker %d is killed", round, at+1)
		if round%2 == 1 {
			i := random.IntN(len(members))
			members[i].kill()
			c.kill(at)
			join(i)
		} else {
			c.kill(at)
		}
		more()
		settle(fmt.Sprintf("without broker %d", at+1))
		if kind := groupType(t, c.brokers[c.coordinator(group)].Addr, group); kind != "consumer" { // it does not move while a broker is down
			t.Errorf("the group is %s", kind)
		}
		c.start()
		more()
		settle(fmt.Sprintf("with broker %d again", at+1))
	}
}
