package broker

import (
	"math"

	"barnabas/internal/config"

	"golang.org/x/sys/unix"
)

// enoughConnections is what a broker without max.connections should be able to
// serve; below, its operator is told.
const enoughConnections = 1000

// descriptors is how what the process may have open is shared out. Connections
// wait for a place before they take what the logs and the connections to other
// brokers need.
type descriptors struct {
	limit       int // RLIMIT_NOFILE; Go has raised the soft limit to the hard one
	files       int // of the logs
	keeper      int // connections of the embedded ZooKeeper, if there is one
	connections int // of the broker's listeners
}

func shareDescriptors(limit int, embedded bool) descriptors {
	d := descriptors{limit: limit, files: min(max(limit/2, 64), 65536)}
	left := max(limit-d.files-max(limit/8, 48), 16) // an eighth is for all that is not counted
	if embedded {
		d.keeper = left / 4
	}
	d.connections = left - d.keeper
	return d
}

func ownDescriptors(embedded bool) descriptors {
	limit := unix.Rlimit{Cur: 1024}
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) // or what is usual
	return shareDescriptors(int(min(uint64(limit.Cur), 1<<30)), embedded)
}

// bound is max.connections, or what the descriptors allow if that is less.
func (d descriptors) bound(maxConnections int) int {
	if maxConnections == 0 {
		return d.connections
	}
	return min(maxConnections, d.connections)
}

// sayIfFew tells an operator whose max.connections can't be reached.
func (b *Broker) sayIfFew(c *config.Broker) {
	wanted := c.Int("max.connections")
	if wanted == math.MaxInt32 {
		wanted = enoughConnections
	}
	if d := b.descriptors; d.connections < wanted {
		b.log.Warn("few connections can be served, since the process may have few files open; raise its limit (ulimit -n, LimitNOFILE)",
			"connections", d.connections, "max.connections", c.Int("max.connections"), "limit", d.limit)
	}
}
