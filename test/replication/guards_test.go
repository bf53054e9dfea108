package replication

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"barnabas/test/load"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// guard is a piece of code without which acknowledged records are lost, and what
// stands in its place when it is taken out.
type guard struct {
	file, code, instead string
	lose                func(t *testing.T, binary string) load.Report
}

var guards = map[string]guard{
	"the epoch check in the controller's multi": {
		file:    "internal/controller/writer.go",
		code:    "zookeeper.CheckOp(znode.ControllerEpochPath, w.epochVersion)",
		instead: "zookeeper.CheckOp(znode.ControllerEpochPath, -1)",
		lose:    loseByOldController,
	},
	"acknowledged only below the high watermark": {
		file:    "internal/replica/waits.go",
		code:    "hw := p.hw.Load()\n\tif hw < offset {",
		instead: "hw := max(p.hw.Load(), offset)\n\tif hw < offset {",
		lose:    loseByEarlyAnswer,
	},
	"truncation to what the leader has": {
		file:    "internal/replica/fetch_session.go",
		code:    "w.Int32(c.at.epoch)",
		instead: "w.Int32(-1) // the leader is not told, and can't say what diverges",
		lose:    loseByDivergence,
	},
	"the ISR grows by those that have the start of the epoch": {
		file:    "internal/replica/isr.go",
		code:    "return f.since && f.end >= hw && f.end >= epochStart",
		instead: "return f.since && f.end >= hw",
		lose:    loseByEarlyMember,
	},
}

// without builds a binary without a guard.
func (g guard) without(t *testing.T) string {
	t.Helper()
	top, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	file, dir := filepath.Join(top, g.file), t.TempDir()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(source, []byte(g.code)); n != 1 {
		t.Fatalf("%s has the guard %d times: %s", g.file, n, g.code)
	}
	open, overlay := filepath.Join(dir, "unguarded.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(open, bytes.Replace(source, []byte(g.code), []byte(g.instead), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {file: open}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, replace, 0o644); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "barnabas")
	real.Run(t, 5*time.Minute, exec.Command("go", "build", "-overlay", overlay, "-o", binary, "barnabas/cmd/barnabas"))
	return binary
}

// TestTheCheckerFindsWhatUnguardedBrokersLose takes one guard out at a time, does
// what it guards against, and expects the checker to find the loss. In a soak the
// same is done with the guard, and nothing is lost.
func TestTheCheckerFindsWhatUnguardedBrokersLose(t *testing.T) {
	for name, g := range guards {
		t.Run(name, func(t *testing.T) {
			if load.Soak() {
				if r := g.lose(t, real.Binary(t)); len(r.Lost) > 0 || r.Unread != nil {
					t.Fatalf("with the guard: %d lost, unreadable: %v, for example %.300s", len(r.Lost), r.Unread, r.Lost)
				}
			}
			binary := g.without(t)
			const attempts = 5
			for n := range attempts {
				r := g.lose(t, binary)
				if len(r.Lost) > 0 || r.Unread != nil {
					t.Logf("found at attempt %d: %d of %d acknowledged records lost, %d out of order, unreadable: %v", n+1, len(r.Lost), r.Acked, len(r.Order), r.Unread)
					return
				}
			}
			t.Errorf("nothing was lost in %d attempts, or the checker did not see it", attempts)
		})
	}
}

// unguarded is a cluster of three brokers of some binary, with a topic of one
// partition on all of them, broker 1 first.
type unguarded struct {
	t       *testing.T
	zk      string
	brokers [4]*real.BarnabasBroker // by id
	seeds   []string
	admin   *load.Admin
}

func startUnguarded(t *testing.T, binary string, properties ...string) *unguarded {
	t.Helper()
	c := &unguarded{t: t, zk: real.ZooKeeper(t)}
	// Broker 2 is the controller, since it is there first.
	for _, id := range []int{2, 3, 1} {
		c.start(binary, id, c.zk, properties...)
	}
	c.admin = load.NewAdmin(t, c.seeds)
	load.CreateTopic(t, c.admin, "t", 1, []int32{1, 2, 3}, atLeastTwo)
	load.UntilInSync(t, c.admin, "t", 1, 3)
	return c
}

func (c *unguarded) start(binary string, id int, zk string, properties ...string) {
	c.t.Helper()
	b := real.BarnabasFrom(c.t, binary, id, append([]string{"zookeeper.connect=" + zk, "zookeeper.session.timeout.ms=6000"}, properties...)...)
	c.brokers[id], c.seeds = b, append(c.seeds, b.Addr)
}

// whole waits until all replicas are in sync and broker 1 leads, if it can.
func (c *unguarded) whole() {
	c.t.Helper()
	load.UntilInSync(c.t, c.admin, "t", 1, 3)
	if _, err := c.admin.ElectLeaders(c.t.Context(), kadm.ElectPreferredReplica, nil); err != nil {
		c.t.Fatal(err)
	}
	untilLeader(c.t, c.admin, "t", 1)
}

// loseByEarlyAnswer kills a leader whose followers have not copied for a moment.
func loseByEarlyAnswer(t *testing.T, binary string) load.Report {
	c := startUnguarded(t, binary)
	l := load.Start(t, "t", 1, c.seeds)
	l.More(200)
	for _, id := range []int{2, 3} {
		c.brokers[id].Signal(syscall.SIGSTOP)
	}
	l.MoreWithin(100, 2*time.Second)
	c.brokers[1].Kill()
	for _, id := range []int{2, 3} {
		c.brokers[id].Signal(syscall.SIGCONT)
	}
	l.MoreWithin(200, 15*time.Second)
	return l.Check()
}

// loseByDivergence has a leader append what nobody else gets, and die; when it
// comes back and has caught up, it leads again.
func loseByDivergence(t *testing.T, binary string) load.Report {
	c := startUnguarded(t, binary)
	// A record a batch: else one would begin before the end of broker 1's log, and be refused.
	l := load.Start(t, "t", 1, c.seeds, kgo.MaxBufferedRecords(1))
	l.More(200)
	for _, id := range []int{2, 3} {
		c.brokers[id].Signal(syscall.SIGSTOP)
	}
	load.Noise(t, "t", 0, c.brokers[1].Addr, 100)
	c.brokers[1].Kill()
	for _, id := range []int{2, 3} {
		c.brokers[id].Signal(syscall.SIGCONT)
	}
	l.More(500) // beyond what broker 1 has
	c.brokers[1].Restart(t)
	c.whole()
	return l.Check()
}

// loseByEarlyMember elects a leader that does not know how far the high watermark
// was, while a replica comes back that has no more than it knows, copies slowly,
// and is elected next.
func loseByEarlyMember(t *testing.T, binary string) load.Report {
	// A fetch that waits for 2 s tells of the high watermark that late, and one
	// batch at a time keeps a replica behind for a while.
	c := startUnguarded(t, binary, "replica.lag.time.max.ms=2000", "replica.fetch.wait.max.ms=2000", "replica.fetch.max.bytes=1")
	two := load.NewAdmin(t, []string{c.brokers[2].Addr})
	c.brokers[3].Signal(syscall.SIGSTOP)
	load.Noise(t, "t", 0, c.brokers[1].Addr, 2000) // all before broker 3 is out of the ISR
	// Few enough to be on their way at once: nothing comes after them that would
	// tell broker 2 that they are acknowledged, which is when broker 3 is out of the ISR.
	l := load.StartSome(t, "t", 1, []string{c.brokers[1].Addr}, 4) // which does not ask broker 3
	l.More(4)
	c.brokers[1].Kill()
	c.brokers[3].Signal(syscall.SIGCONT)
	load.UntilEach(t, two, 0, "t", 1, "it leads, and broker 3 is in the ISR", func(p kmsg.MetadataResponseTopicPartition) bool {
		return p.Leader == 2 && slices.Contains(p.ISR, 3)
	})
	c.brokers[3].Signal(syscall.SIGSTOP)
	c.brokers[2].Kill()
	c.brokers[3].Signal(syscall.SIGCONT)
	untilLeader(t, c.admin, "t", 3)
	for _, id := range []int{2, 1} {
		c.brokers[id].Restart(t)
	}
	load.UntilInSync(t, c.admin, "t", 1, 3)
	return l.Check()
}

// loseByOldController holds a controller's last write of a topic's deletion back
// until another controller has deleted the topic, and somebody made it again.
func loseByOldController(t *testing.T, binary string) load.Report {
	c := &unguarded{t: t, zk: real.ZooKeeper(t)}
	held := holdBack(t, c.zk, "/admin/delete_topics/t")
	c.start(binary, 1, held.addr, "zookeeper.session.timeout.ms=30000")
	c.start(binary, 2, c.zk)
	c.start(binary, 3, c.zk)
	c.admin = load.NewAdmin(t, c.seeds)
	load.CreateTopic(t, c.admin, "t", 1, []int32{2, 3}, atLeastTwo)
	load.UntilInSync(t, c.admin, "t", 1, 2)
	shell := func(args ...string) string {
		return real.Run(t, time.Minute, exec.Command(real.Binary(t), append([]string{"zookeeper-shell", c.zk}, args...)...))
	}
	shell("create", "/admin/delete_topics/t", "")
	real.Until(t, time.Minute, "the controller deletes the topic", held.holds)
	shell("delete", "/controller")
	again := load.NewAdmin(t, c.seeds[1:])
	real.Until(t, time.Minute, "another controller", func() bool { return untilController(t, again) != 1 })
	real.Until(t, time.Minute, "the topic is gone", func() bool {
		return !strings.Contains(shell("ls", "/admin/delete_topics")+shell("ls", "/brokers/topics"), "[t]")
	})
	load.CreateTopic(t, again, "t", 1, []int32{2, 3}, atLeastTwo)
	load.UntilInSync(t, again, "t", 1, 2)
	l := load.Start(t, "t", 1, c.seeds[1:], kgo.RecordDeliveryTimeout(10*time.Second), kgo.RetryTimeout(10*time.Second), kgo.UnknownTopicRetries(3))
	l.More(500)
	held.release()
	l.MoreWithin(10000, 2*time.Second)
	// What is not in ZooKeeper is gone when the brokers have started again.
	for _, id := range []int{2, 3} {
		c.brokers[id].Stop()
		c.brokers[id].Restart(t)
	}
	return l.Check()
}

// holder passes a broker's connection to ZooKeeper on until the broker sends
// something, which it keeps until it is released, with all that follows.
type holder struct {
	addr string
	what []byte

	mu       sync.Mutex
	held     bool
	released chan struct{}
	once     sync.Once
}

func holdBack(t *testing.T, to, what string) *holder {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &holder{addr: listener.Addr().String(), what: []byte(what), released: make(chan struct{})}
	var all sync.WaitGroup
	t.Cleanup(func() { h.release(); listener.Close(); all.Wait() })
	all.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
				all.Go(func() {
					defer near.Close()
					defer far.Close()
					h.pass(way[0], way[1])
				})
			}
			t.Cleanup(func() { near.Close(); far.Close() }) // before what waits for them
		}
	})
	return h
}

func (h *holder) pass(from io.Reader, to io.Writer) {
	buffer := make([]byte, 1<<20)
	for {
		n, err := from.Read(buffer)
		h.mu.Lock()
		h.held = h.held || bytes.Contains(buffer[:n], h.what)
		held := h.held
		h.mu.Unlock()
		if held {
			<-h.released
		}
		if _, werr := to.Write(buffer[:n]); err != nil || werr != nil {
			return
		}
	}
}

func (h *holder) holds() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held
}

func (h *holder) release() { h.once.Do(func() { close(h.released) }) }
