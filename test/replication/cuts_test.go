package replication

import (
	"context"
	"slices"
	"testing"
	"time"

	"barnabas/test/load"

	"github.com/twmb/franz-go/pkg/kadm"
)

// mannerOf changes with the rounds, but not in step with who is cut off.
func mannerOf(round int) manner { return manner((round + round/2) % 2) }

// others are the brokers but one.
func others(id int) []int {
	return slices.DeleteFunc([]int{1, 2, 3}, func(other int) bool { return other == id })
}

// electPreferred gives each broker its leaderships back.
func (c *scattered) electPreferred() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	if _, err := c.admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, nil); err != nil {
		c.t.Fatal(err)
	}
	c.untilAll("preferred leaders", []int{1, 2, 3}, func(p state) bool { return p.Leader == p.Replicas[0] })
}

// around makes a fault, waits for what comes of it, mends it and waits until
// the cluster is whole.
func (c *scattered) around(round int, what string, fault func() (heal func())) {
	c.t.Helper()
	c.load.LongestGap()
	began := time.Now()
	heal := fault()
	lasted, gap := time.Since(began), c.load.LongestGap()
	heal()
	healed := time.Now()
	c.untilWhole()
	whole := time.Since(healed)
	c.electPreferred()
	c.load.More(500)
	c.t.Logf("round %d, %s for %v: longest gap %v; whole again after %v, longest gap %v", round+1, what, lasted.Round(time.Millisecond),
		gap.Round(time.Millisecond), whole.Round(time.Millisecond), c.load.LongestGap().Round(time.Millisecond))
}

// untilLeftBy waits until the others see a broker lead nothing, and be in no
// ISR.
func (c *scattered) untilLeftBy(id int) {
	c.t.Helper()
	c.untilAll("the partitions have gone on without a broker", others(id), func(p state) bool {
		return p.Leader > 0 && int(p.Leader) != id && !slices.Contains(p.ISR, int32(id))
	})
}

// TestCutsBetweenBrokersLoseNothing takes two brokers apart that still reach the
// third, ZooKeeper and the clients. Each takes the other out of its ISRs, if it
// reaches the controller.
func TestCutsBetweenBrokersLoseNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, zk kind) {
		c := scatter(t, zk)
		for round := range rounds() {
			how := mannerOf(round)
			controller := untilController(t, c.admin)
			a, b := others(controller)[round/2%2], others(controller)[1-round/2%2]
			if round%2 == 1 {
				b = controller // a can't shrink its ISRs: its partitions wait
			}
			c.around(round, "two brokers cut "+how.String(), func() func() {
				heal := c.cut(a, b, how)
				third := 6 - a - b
				c.untilAll("a leader that reaches the controller goes on without the other", []int{third}, func(p state) bool {
					return p.Leader > 0 && (int(p.Leader) != b || !slices.Contains(p.ISR, int32(a))) &&
						(int(p.Leader) != a || b == controller || !slices.Contains(p.ISR, int32(b)))
				})
				if b != controller {
					c.load.More(1000)
				}
				return heal
			})
		}
		c.end()
	})
}

// controllerInTurn is the controller, in every other round another broker.
func controllerInTurn(t *testing.T, c *scattered, round int) int {
	id := untilController(t, c.admin)
	if round%2 == 1 {
		id = others(id)[round/2%2]
	}
	return id
}

// TestCutsFromZooKeeperLoseNothing takes ZooKeeper away from one broker, the
// controller in every other round: its session ends, the others go on without
// it, and what it says as controller or leader counts no more.
func TestCutsFromZooKeeperLoseNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, zk kind) {
		c := scatter(t, zk)
		for round := range rounds() {
			how := mannerOf(round)
			id := controllerInTurn(t, c, round)
			c.around(round, "a broker cut from ZooKeeper "+how.String(), func() func() {
				heal := c.cut(id, keeper, how)
				c.untilLeftBy(id)
				c.load.More(1000)
				return heal
			})
		}
		c.end()
	})
}

// TestLonelyLeadersLoseNothing takes ZooKeeper and both other brokers away from
// one that clients still reach: it takes records as the leader that it was, and
// must not acknowledge them.
func TestLonelyLeadersLoseNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, zk kind) {
		c := scatter(t, zk)
		for round := range rounds() {
			how := mannerOf(round)
			id := controllerInTurn(t, c, round)
			c.around(round, "a broker cut from all but clients "+how.String(), func() func() {
				var undo []func()
				for _, other := range append(others(id), keeper) {
					undo = append(undo, c.cut(id, other, how))
				}
				c.untilLeftBy(id)
				c.load.More(1000)
				return func() {
					for _, f := range undo {
						f()
					}
				}
			})
		}
		c.end()
	})
}

// TestUnpluggedBrokersLoseNothing takes a broker off the network.
func TestUnpluggedBrokersLoseNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, zk kind) {
		c := scatter(t, zk)
		for round := range rounds() {
			id := untilController(t, c.admin)
			if round%2 == 1 {
				id = others(id)[round/2%2]
			}
			c.around(round, "a broker off the network", func() func() {
				plug := c.unplug(id)
				c.untilLeftBy(id)
				c.load.More(1000)
				return plug
			})
		}
		c.end()
	})
}

func (c *scattered) end() {
	c.t.Helper()
	c.load.Finish()
	load.UntilEqual(c.t, c.dirs, "t", cutPartitions)
}
