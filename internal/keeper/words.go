package keeper

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net"
	"os"
	"os/user"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"time"

	"barnabas/internal/jute"
)

// version is what srvr and mntr give as ZooKeeper's version: tools look at the
// number to tell which commands a server has.
const version = "3.8.4-barnabas, built on 2024-02-12 22:16 UTC"

// words are ZooKeeper's four-letter words (FourLetterCommands). Those that are
// not in Options.Words are answered as ZooKeeper answers one that is not in its
// whitelist. Each is called with the lock held.
var words = map[string]func(wordInput) string{
	"conf": conf, "cons": cons, "crst": crst, "dirs": dirs, "dump": dumpWord, "envi": envi, "gtmk": gtmk, "hash": noWord, "isro": isro, "mntr": mntr,
	"ruok": ruok, "srst": srst, "srvr": srvr, "stat": stat, "stmk": stmk, "wchc": wchc, "wchp": wchp, "wchs": wchs,
}

// wordInput is what a word may tell of.
type wordInput struct {
	c               *core
	o               Options
	now             time.Time
	up              time.Duration
	port, secure    int // of the first listener of each kind; 0, and -1 as ZooKeeper has it, if there is none
	snapshots, logs int64
	mask            int64 // the argument of stmk
}

// defaultWords may be asked when Options.Words is nil. srvr may be always.
var defaultWords = []string{"ruok", "srvr", "mntr", "isro"}

// wordOf returns the four-letter word that stands where a connection's first
// frame has its length, or "".
func wordOf(length uint32) string {
	word := string(binary.BigEndian.AppendUint32(nil, length))
	if _, ok := words[word]; ok {
		return word
	}
	return ""
}

// word answers a four-letter word; argument is what follows stmk.
func (s *Server) word(word string, argument int64) string {
	if !slices.Contains(s.o.Words, word) && !slices.Contains(s.o.Words, "*") && word != "srvr" {
		return word + " is not executed because it is not in the whitelist.\n"
	}
	in := wordInput{o: s.o, mask: argument, secure: -1}
	if word == "conf" || word == "dirs" {
		in.snapshots, in.logs = s.store.size()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	in.c, in.now = s.mu.core, time.Now()
	in.up = in.now.Sub(s.started)
	for l, secure := range s.mu.listeners {
		port := &in.port
		if secure {
			port = &in.secure
		}
		if a, ok := l.Addr().(*net.TCPAddr); ok && (*port <= 0 || a.Port < *port) {
			*port = a.Port
		}
	}
	in.c.stats.received++
	return words[word](in)
}

func ruok(wordInput) string { return "imok" }

func isro(wordInput) string { return "rw" }

// There is no trace: gtmk tells ZooKeeper's default mask, stmk what it was given.
func gtmk(wordInput) string { return "306" }

func stmk(in wordInput) string { return strconv.FormatInt(in.mask, 10) }

func noWord(wordInput) string { return "" }

func crst(in wordInput) string {
	for cl := range in.c.clients {
		cl.stats = stats{}
	}
	return "Connection stats reset.\n"
}

func srst(in wordInput) string {
	in.c.stats = stats{}
	return "Server stats reset.\n"
}

func srvr(in wordInput) string {
	return "Zookeeper version: " + version + "\n" + serverStats(in.c)
}

func stat(in wordInput) string {
	var b strings.Builder
	b.WriteString("Zookeeper version: " + version + "\nClients:\n")
	for _, cl := range in.c.ordered() {
		b.WriteString(cl.describe(true) + "\n")
	}
	return b.String() + "\n" + serverStats(in.c)
}

func serverStats(c *core) string {
	return fmt.Sprintf("Latency min/avg/max: %d/%s/%d\nReceived: %d\nSent: %d\nConnections: %d\nOutstanding: %d\nZxid: 0x%x\nMode: standalone\nNode count: %d\n",
		c.stats.minTime.Milliseconds(), decimal(c.stats.average()), c.stats.maxTime.Milliseconds(),
		c.stats.received, c.stats.sent, len(c.clients), c.outstanding(), c.lastZxid, c.nodeCount())
}

func cons(in wordInput) string {
	var b strings.Builder
	for _, cl := range in.c.ordered() {
		b.WriteString(cl.describe(false) + "\n")
	}
	return b.String() + "\n"
}

// ordered lists the connections, the oldest first.
func (c *core) ordered() []*client {
	return slices.SortedFunc(maps.Keys(c.clients), func(a, b *client) int { return int(a.number - b.number) })
}

// describe shows a connection as ZooKeeper does (ServerCnxn.dumpConnectionInfo).
func (cl *client) describe(brief bool) string {
	interest := 1
	if cl.session == nil {
		interest = 0
	}
	text := fmt.Sprintf(" /%s[%d](queued=%d,recved=%d,sent=%d", cl.addr, interest, cl.outstanding, cl.stats.received, cl.stats.sent)
	if !brief && cl.session != nil {
		text += fmt.Sprintf(",sid=0x%x,lop=%s,est=%d,to=%d", uint64(cl.session.id), cl.lastOp, cl.since.UnixMilli(), cl.timeout.Milliseconds())
		if cl.lastXid >= 0 {
			text += fmt.Sprintf(",lcxid=0x%x", cl.lastXid)
		}
		text += fmt.Sprintf(",lzxid=0x%x,lresp=%d,llat=%d,minlat=%d,avglat=%d,maxlat=%d", uint64(cl.lastZxid), cl.lastReply.UnixMilli(),
			cl.stats.last.Milliseconds(), cl.stats.minTime.Milliseconds(), int64(cl.stats.average()), cl.stats.maxTime.Milliseconds())
	}
	return text + ")"
}

// shortNames are ZooKeeper's names of operations in cons (FinalRequestProcessor).
var shortNames = map[jute.Op]string{
	jute.OpPing: "PING", jute.OpCreateSession: "SESS", jute.OpMulti: "MULT", jute.OpMultiRead: "MLTR", jute.OpCreate: "CREA", jute.OpCreate2: "CREA",
	jute.OpCreateTTL: "CREA", jute.OpCreateContainer: "CREA", jute.OpDelete: "DELE", jute.OpDeleteContainer: "DELE", jute.OpSetData: "SETD",
	jute.OpReconfig: "RECO", jute.OpSetACL: "SETA", jute.OpCloseSession: "CLOS", jute.OpSync: "SYNC", jute.OpCheck: "CHEC", jute.OpExists: "EXIS",
	jute.OpGetData: "GETD", jute.OpSetWatches: "SETW", jute.OpSetWatches2: "STW2", jute.OpAddWatch: "ADDW", jute.OpGetACL: "GETA",
	jute.OpGetChildren: "GETC", jute.OpGetAllChildrenNumber: "GETACN", jute.OpGetChildren2: "GETC", jute.OpCheckWatches: "CHKW",
	jute.OpRemoveWatches: "REMW", jute.OpWhoAmI: "HOMI", jute.OpGetEphemerals: "GETE",
}

func conf(in wordInput) string {
	return fmt.Sprintf("clientPort=%d\nsecureClientPort=%d\ndataDir=%s\ndataDirSize=%d\ndataLogDir=%s\ndataLogSize=%d\ntickTime=%d\nmaxClientCnxns=%d\n"+
		"minSessionTimeout=%d\nmaxSessionTimeout=%d\nclientPortListenBacklog=-1\nserverId=0\n",
		in.port, in.secure, in.o.dataDir(), in.snapshots+in.logs, in.o.dataDir(), in.snapshots+in.logs, in.o.TickTime.Milliseconds(), in.o.MaxClientConnections,
		in.o.MinSessionTimeout.Milliseconds(), in.o.MaxSessionTimeout.Milliseconds())
}

func dirs(in wordInput) string {
	return fmt.Sprintf("datadir_size: %d\nlogdir_size: %d\n", in.snapshots+in.logs, in.snapshots+in.logs)
}

func envi(wordInput) string {
	host, _ := os.Hostname()
	dir, _ := os.Getwd()
	who, home := "<NA>", "<NA>"
	if u, err := user.Current(); err == nil {
		who, home = u.Username, u.HomeDir
	}
	m := []metrics.Sample{{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/total:bytes"}}
	metrics.Read(m)
	free, total := m[0].Value.Uint64()>>20, m[1].Value.Uint64()>>20
	var b strings.Builder
	b.WriteString("Environment:\n")
	for _, v := range [][2]string{
		{"zookeeper.version", version}, {"host.name", host}, {"java.version", "<NA>"}, {"java.vendor", "<NA>"}, {"java.home", "<NA>"},
		{"java.class.path", "<NA>"}, {"java.library.path", "<NA>"}, {"java.io.tmpdir", os.TempDir()}, {"java.compiler", "<NA>"},
		{"os.name", runtime.GOOS}, {"os.arch", runtime.GOARCH}, {"os.version", "<NA>"}, {"user.name", who}, {"user.home", home}, {"user.dir", dir},
		{"os.memory.free", fmt.Sprintf("%dMB", free)}, {"os.memory.max", fmt.Sprintf("%dMB", total)}, {"os.memory.total", fmt.Sprintf("%dMB", total)},
	} {
		b.WriteString(v[0] + "=" + v[1] + "\n")
	}
	return b.String()
}

// javaDate is the form of java.util.Date.toString.
const javaDate = "Mon Jan 02 15:04:05 MST 2006"

func dumpWord(in wordInput) string {
	var b strings.Builder
	q := &in.c.expiry
	fmt.Fprintf(&b, "SessionTracker dump:\nSession Sets (%d)/(%d):\n", len(q.buckets), len(in.c.sessions))
	for _, bucket := range slices.Sorted(maps.Keys(q.buckets)) {
		fmt.Fprintf(&b, "%d expire at %s:\n", len(q.buckets[bucket]), q.base.Add(time.Duration(bucket)*q.tick).Format(javaDate))
		for s := range q.buckets[bucket] {
			fmt.Fprintf(&b, "\t0x%x\n", uint64(s.id))
		}
	}
	fmt.Fprintf(&b, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", len(in.c.tree.ephemerals))
	for _, id := range slices.Sorted(maps.Keys(in.c.tree.ephemerals)) {
		fmt.Fprintf(&b, "0x%x:\n", uint64(id))
		for _, path := range slices.Sorted(maps.Keys(in.c.tree.ephemerals[id])) {
			b.WriteString("\t" + path + "\n")
		}
	}
	fmt.Fprintf(&b, "Connections dump:\nConnections Sets (%d)/(%d):\n", min(1, len(in.c.clients)), len(in.c.clients))
	if len(in.c.clients) > 0 {
		fmt.Fprintf(&b, "%d expire at %s:\n", len(in.c.clients), in.now.Add(in.o.MaxSessionTimeout).Format(javaDate))
	}
	for _, cl := range in.c.ordered() {
		id := int64(0)
		if cl.session != nil {
			id = cl.session.id
		}
		fmt.Fprintf(&b, "\tip: /%s sessionId: 0x%x\n", cl.addr, uint64(id))
	}
	return b.String()
}

// The words on watches tell of data watches only, as ZooKeeper's
// (DataTree.dumpWatches); a connection counts once it had one.
func wchs(in wordInput) string {
	watching := 0
	for cl := range in.c.clients {
		if cl.watches[dataWatch] != nil {
			watching++
		}
	}
	t := &in.c.watches[dataWatch]
	return fmt.Sprintf("%d connections watching %d paths\nTotal watches:%d\n", watching, len(t.byPath), t.total)
}

func wchc(in wordInput) string {
	var b strings.Builder
	for _, cl := range in.c.ordered() {
		if cl.watches[dataWatch] == nil || cl.session == nil {
			continue
		}
		fmt.Fprintf(&b, "0x%x\n", uint64(cl.session.id))
		for _, path := range slices.Sorted(maps.Keys(cl.watches[dataWatch])) {
			b.WriteString("\t" + path + "\n")
		}
	}
	return b.String() + "\n"
}

func wchp(in wordInput) string {
	var b strings.Builder
	t := in.c.watches[dataWatch].byPath
	for _, path := range slices.Sorted(maps.Keys(t)) {
		b.WriteString(path + "\n")
		for cl := range t[path] {
			if cl.session != nil {
				fmt.Fprintf(&b, "\t0x%x\n", uint64(cl.session.id))
			}
		}
	}
	return b.String() + "\n"
}

func mntr(in wordInput) string {
	c := in.c
	watches, ephemerals := 0, 0
	for kind := range watchKinds {
		watches += c.watches[kind].total
	}
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
		{"uptime", in.up.Milliseconds()},
		{"max_latency", c.stats.maxTime.Milliseconds()},
		{"stale_sessions_expired", c.stats.expired},
		{"connection_rejected", c.stats.rejected},
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
