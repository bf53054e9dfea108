package keeper

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// version is what srvr and mntr give as ZooKeeper's version: tools look at the
// number to tell which commands a server has.
const version = "3.8.4-barnabas, built on 2024-02-12 22:16 UTC"

// knownWords are ZooKeeper's four-letter words (FourLetterCommands). Those
// that are not served are answered as ZooKeeper answers one that is not in its
// whitelist.
var knownWords = map[string]func(*core, time.Duration) string{
	"ruok": ruok, "srvr": srvr, "mntr": mntr, "isro": isro,
	"conf": nil, "cons": nil, "crst": nil, "dirs": nil, "dump": nil, "envi": nil, "gtmk": nil, "hash": nil,
	"srst": nil, "stat": nil, "stmk": nil, "wchc": nil, "wchp": nil, "wchs": nil,
}

// defaultWords may be asked when Options.Words is nil.
var defaultWords = []string{"ruok", "srvr", "mntr", "isro"}

// wordOf returns the four-letter word that stands where a connection's first
// frame has its length, or "".
func wordOf(length uint32) string {
	word := string(binary.BigEndian.AppendUint32(nil, length))
	if _, ok := knownWords[word]; ok {
		return word
	}
	return ""
}

func refuseWord(word string) string {
	return word + " is not executed because it is not in the whitelist.\n"
}

func ruok(*core, time.Duration) string { return "imok" }

func isro(*core, time.Duration) string { return "rw" }

func srvr(c *core, _ time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Zookeeper version: %s\n", version)
	fmt.Fprintf(&b, "Latency min/avg/max: %d/%s/%d\n", c.stats.minTime.Milliseconds(), decimal(c.stats.average()), c.stats.maxTime.Milliseconds())
	fmt.Fprintf(&b, "Received: %d\nSent: %d\nConnections: %d\nOutstanding: %d\n",
		c.stats.received, c.stats.sent, len(c.clients), c.outstanding())
	fmt.Fprintf(&b, "Zxid: 0x%x\nMode: standalone\nNode count: %d\n", c.lastZxid, c.nodeCount())
	return b.String()
}

func mntr(c *core, uptime time.Duration) string {
	watches := 0
	for kind := range watchKinds {
		for _, clients := range c.watches[kind] {
			watches += len(clients)
		}
	}
	ephemerals := 0
	for _, paths := range c.tree.ephemerals {
		ephemerals += len(paths)
	}
	var b strings.Builder
	for _, v := range []struct {
		name  string
		value any
	}{
		{"version", version},
		{"server_state", "standalone"},
		{"ephemerals_count", ephemerals},
		{"num_alive_connections", len(c.clients)},
		{"avg_latency", decimal(c.stats.average())},
		{"outstanding_requests", c.outstanding()},
		{"znode_count", c.nodeCount()},
		{"global_sessions", len(c.sessions)},
		{"packets_sent", c.stats.sent},
		{"packets_received", c.stats.received},
		{"connection_drop_probability", "0.0"},
		{"watch_count", watches},
		{"auth_failed_count", c.stats.authFailed},
		{"min_latency", c.stats.minTime.Milliseconds()},
		{"approximate_data_size", c.tree.bytes},
		{"local_sessions", 0},
		{"uptime", uptime.Milliseconds()},
		{"max_latency", c.stats.maxTime.Milliseconds()},
		{"stale_sessions_expired", c.stats.expired},
	} {
		fmt.Fprintf(&b, "zk_%s\t%v\n", v.name, v.value)
	}
	return b.String()
}

// decimal prints as ZooKeeper does: one to four digits after the point.
func decimal(v float64) string {
	s := strings.TrimRight(strconv.FormatFloat(v, 'f', 4, 64), "0")
	if strings.HasSuffix(s, ".") {
		s += "0"
	}
	return s
}

func (c *core) outstanding() int {
	n := 0
	for cl := range c.clients {
		n += cl.outstanding
	}
	return n
}

// nodeCount counts as ZooKeeper, whose table has the root twice.
func (c *core) nodeCount() int { return len(c.tree.nodes) + 1 }
