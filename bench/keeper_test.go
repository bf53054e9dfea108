package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"barnabas/internal/jute"
	"barnabas/internal/keeper/keepertest"
	"barnabas/internal/poll"
	"barnabas/internal/vfs"
	"barnabas/test/real"
)

// zookeeperSide is one of the two ZooKeeper servers that are compared.
type zookeeperSide struct {
	name  string
	addr  string
	start func(*testing.T) *real.Process // again, on the same folder
	p     *real.Process
}

// bothZooKeepers makes the two servers, with the heap and collector of Apache's
// own start script; both sync each write.
func bothZooKeepers(t *testing.T) []*zookeeperSide {
	ours := &zookeeperSide{name: "barnabas", addr: "127.0.0.1:" + real.FreePort(t)}
	dir := t.TempDir()
	ours.start = func(t *testing.T) *real.Process {
		return real.Start(t, "barnabas zookeeper", exec.Command(real.Binary(t), "zookeeper", "--listen", ours.addr, "--dir", dir))
	}
	apache := &zookeeperSide{name: "apache"}
	first := real.StartZooKeeper(t) // writes a zoo.cfg
	apache.addr = first.Addr
	first.Kill()
	conf := first.Config()
	apache.start = func(t *testing.T) *real.Process {
		return real.Start(t, "zookeeper", real.Java(t, "3.9.1", "org.apache.zookeeper.server.quorum.QuorumPeerMain",
			"-Xmx1000m", "-XX:TieredStopAtLevel=4", "-XX:-UseSerialGC", "-XX:+UseG1GC", "-Dzookeeper.log.dir="+filepath.Dir(conf), "--", conf))
	}
	for _, s := range []*zookeeperSide{ours, apache} {
		s.p = s.start(t)
		s.connect(t).Close()
	}
	return []*zookeeperSide{ours, apache}
}

// connect waits for a session.
func (s *zookeeperSide) connect(t testing.TB) *keepertest.Client {
	t.Helper()
	end := time.Now().Add(2 * time.Minute)
	for {
		nc, err := net.Dial("tcp", s.addr)
		if err == nil {
			var c *keepertest.Client
			if c, err = keepertest.Connect(nc, jute.ConnectRequest{Timeout: 40000}); err == nil {
				return c
			}
		}
		select {
		case <-s.p.Done():
			t.Fatalf("%s ended", s.name)
		default:
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// load has clients do n requests each, one at a time, and returns the rate of
// all and the times of each.
func (s *zookeeperSide) load(t *testing.T, clients, n int, request func(client, i int) (jute.Op, jute.Record)) (float64, []time.Duration) {
	t.Helper()
	var all []time.Duration
	var mu sync.Mutex
	var wg sync.WaitGroup
	conns := make([]*keepertest.Client, clients)
	for i := range conns {
		conns[i] = s.connect(t)
		defer conns[i].Close()
	}
	began := time.Now()
	for i, c := range conns {
		wg.Go(func() {
			times := make([]time.Duration, 0, n)
			for j := range n {
				op, body := request(i, j)
				at := time.Now()
				if f, _, err := c.Call(op, body); err != nil || f.Err != jute.OK {
					t.Error(s.name, f.Err, err)
					return
				}
				times = append(times, time.Since(at))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, times...)
		})
	}
	wg.Wait()
	return float64(clients*n) / time.Since(began).Seconds(), all
}

// loop has clients do n equal requests each, one at a time, and returns the rate
// of all. What is measured is the server, which the load takes as little of the
// machine from as it can: one thread for all, which looks at no more of an answer
// than the error.
func (s *zookeeperSide) loop(t *testing.T, clients, n int, op jute.Op, body jute.Record) float64 {
	t.Helper()
	p, err := poll.New()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var e jute.Encoder
	start := e.BeginFrame()
	(&jute.RequestHeader{Xid: 1, Op: op}).Encode(&e)
	body.Encode(&e)
	e.EndFrame(start)
	var wg sync.WaitGroup
	var asks []func()
	for range clients {
		fd := s.ownSession(t)
		answer, have := make([]byte, 1024), 0
		ask := func() {
			if k, err := poll.Write(fd, e.B); k != len(e.B) {
				t.Errorf("%s: %d of %d bytes were taken: %v", s.name, k, len(e.B), err)
			}
		}
		left := n
		wg.Add(1)
		if err := p.Add(fd, func() {
			k, err := poll.Read(fd, answer[have:])
			have += k
			if err == nil && !whole(answer[:have]) {
				return
			}
			if err == nil {
				err = errorIn(answer)
			}
			if left, have = left-1, 0; err != nil {
				t.Error(s.name, err)
				left = 0
			}
			if left > 0 {
				ask()
				return
			}
			p.Remove(fd)
			poll.Close(fd)
			wg.Done()
		}); err != nil {
			t.Fatal(err)
		}
		asks = append(asks, ask)
	}
	began := time.Now()
	p.Post(func() {
		for _, ask := range asks {
			ask()
		}
	})
	wg.Wait()
	return float64(clients*n) / time.Since(began).Seconds()
}

// ownSession is a session whose socket belongs to the caller alone.
func (s *zookeeperSide) ownSession(t *testing.T) int {
	t.Helper()
	nc, err := net.Dial("tcp", s.addr)
	if err == nil {
		_, err = keepertest.Connect(nc, jute.ConnectRequest{Timeout: 40000})
	}
	if err != nil {
		t.Fatal(err)
	}
	fd, err := poll.Take(nc.(*net.TCPConn))
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// whole says whether all of an answer has come.
func whole(b []byte) bool { return len(b) >= 4 && len(b) >= 4+int(binary.BigEndian.Uint32(b)) }

// errorIn returns the error in the header of an answer.
func errorIn(answer []byte) error {
	if code := jute.Error(int32(binary.BigEndian.Uint32(answer[4+4+8:]))); code != jute.OK {
		return code
	}
	return nil
}

func percentile(times []time.Duration, p float64) float64 {
	slices.Sort(times)
	return float64(times[min(len(times)-1, int(p*float64(len(times))))].Microseconds()) / 1000
}

func reportKeeper(what, unit string, got map[string]series, goal string) {
	fmt.Printf("%-44s barnabas %s   apache %s %s   ratio %.3f   goal %s\n", what, got["barnabas"], got["apache"], unit,
		got["barnabas"].median()/got["apache"].median(), goal)
}

// TestZooKeeperRates compares the embedded ZooKeeper with Apache ZooKeeper 3.8
// over TCP.
func TestZooKeeperRates(t *testing.T) {
	sides := bothZooKeepers(t)
	data := make([]byte, 100)
	type key struct{ what, side string }
	got := map[key]series{}
	add := func(what string, s *zookeeperSide, v float64) {
		got[key{what, s.name}] = append(got[key{what, s.name}], v)
	}
	for round := range rounds + 1 {
		for _, s := range sides {
			create := func(prefix string) func(int, int) (jute.Op, jute.Record) {
				return func(client, i int) (jute.Op, jute.Record) {
					return jute.OpCreate, &jute.CreateRequest{Path: fmt.Sprintf("/%s-%d-%d-%d", prefix, round, client, i), Data: data, ACL: jute.WorldACL()}
				}
			}
			get := func(int, int) (jute.Op, jute.Record) {
				return jute.OpGetData, &jute.PathWatchRequest{Path: fmt.Sprintf("/one-%d-0-0", round)}
			}
			one, _ := s.load(t, 1, 2000, create("one"))
			many, manyTimes := s.load(t, 100, 200, create("many"))
			readOne, _ := s.load(t, 1, 10000, get)
			_, node := get(0, 0)
			cpu := cpuSeconds(s.p.PID())
			readMany := s.loop(t, 100, 1000, jute.OpGetData, node)
			cpu = cpuSeconds(s.p.PID()) - cpu
			if round == 0 {
				continue // warm-up
			}
			add("create, 1 client", s, one/1000)
			add("create, 100 clients", s, many/1000)
			add("read, 1 client", s, readOne/1000)
			add("read, 100 clients", s, readMany/1000)
			add("the server's CPU a read, 100 clients", s, cpu*1e6/(100*1000))
			add("p99 of writes, 100 clients", s, percentile(manyTimes, 0.99))
		}
	}
	for _, line := range []struct{ what, unit, goal string }{
		{"create, 1 client", "k/s", "at least 1.5"}, {"create, 100 clients", "k/s", "at least 1.5"},
		{"read, 1 client", "k/s", "at least 2"}, {"read, 100 clients", "k/s", "at least 2"},
		{"the server's CPU a read, 100 clients", "us", "reported"},
		{"p99 of writes, 100 clients", "ms", "at most 0.5"},
	} {
		reportKeeper("ZooKeeper: "+line.what, line.unit, map[string]series{"barnabas": got[key{line.what, "barnabas"}], "apache": got[key{line.what, "apache"}]}, line.goal)
	}
}

// TestZooKeeperWriteTimes compares how long the writes of a single client take.
// The servers take turns often: the tail is what else the machine does, too, and
// the disk most of all. Its own times, without any server, are what no server
// that syncs each write can be below.
func TestZooKeeperWriteTimes(t *testing.T) {
	const turns, warm, writes = 43, 3, 1000
	sides := bothZooKeepers(t)
	data := make([]byte, 100)
	percentiles := []float64{0.5, 0.99, 0.999}
	got := map[float64]map[string]series{}
	for _, p := range percentiles {
		got[p] = map[string]series{}
	}
	for turn := range turns {
		add := func(name string, times []time.Duration) {
			for _, p := range percentiles {
				if turn >= warm {
					got[p][name] = append(got[p][name], percentile(times, p))
				}
			}
		}
		for _, s := range sides {
			_, times := s.load(t, 1, writes, func(client, i int) (jute.Op, jute.Record) {
				return jute.OpCreate, &jute.CreateRequest{Path: fmt.Sprintf("/%d-%d", turn, i), Data: data, ACL: jute.WorldACL()}
			})
			add(s.name, times)
		}
		add("disk", syncTimes(t, writes, 230))
	}
	for _, p := range percentiles {
		reportKeeper(fmt.Sprintf("ZooKeeper: p%v of writes, 1 client", 100*p), "ms", got[p], map[bool]string{true: "at most 0.5", false: "reported"}[p == 0.99])
		fmt.Printf("%-44s %s ms, of Apache's %.3f\n", fmt.Sprintf("ZooKeeper: p%v of the disk's syncs alone", 100*p), got[p]["disk"],
			got[p]["disk"].median()/got[p]["apache"].median())
	}
}

// syncTimes appends n times size bytes to a file filled with zeros beforehand,
// the cheapest kind to sync, and returns how long each took until it was durable.
func syncTimes(t *testing.T, n, size int) []time.Duration {
	t.Helper()
	f, err := vfs.OS.OpenFile(filepath.Join(t.TempDir(), "log"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, n*size), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	times := make([]time.Duration, n)
	record := make([]byte, size)
	for i := range times {
		began := time.Now()
		if _, err := f.WriteAt(record, int64(i*size)); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		times[i] = time.Since(began)
	}
	return times
}

// TestMillionZnodes compares memory and start with 1,000,000 nodes of 100 bytes
// under 1,000 parents.
func TestMillionZnodes(t *testing.T) {
	sides := bothZooKeepers(t)
	filled, memory, fresh, start, stall := map[string]series{}, map[string]series{}, map[string]series{}, map[string]series{}, map[string]series{}
	for _, s := range sides {
		began := time.Now()
		longest := fillMillion(t, s)
		filled[s.name] = series{1000 / time.Since(began).Seconds()}
		stall[s.name] = series{float64(longest.Milliseconds())}
		settle, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		<-settle.Done()
		cancel()
		memory[s.name] = series{residentMB(s.p.PID())}
		s.p.Kill()
		began = time.Now()
		s.p = s.start(t)
		c := s.connect(t)
		start[s.name] = series{time.Since(began).Seconds()}
		if f, _, err := c.Call(jute.OpGetAllChildrenNumber, &jute.PathRequest{Path: "/p"}); err != nil || f.Body.(*jute.CountResponse).Count != 1_001_000 {
			t.Fatal(f, err)
		}
		c.Close()
		fresh[s.name] = series{residentMB(s.p.PID())}
		s.p.Kill()
	}
	reportKeeper("ZooKeeper: 1,000,000 creates in multis", "k/s", filled, "reported")
	reportKeeper("ZooKeeper: longest request meanwhile", "ms", stall, "reported")
	reportKeeper("ZooKeeper: memory with 1,000,000 znodes", "MB", memory, "at most 0.5")
	reportKeeper("ZooKeeper: memory after a start with them", "MB", fresh, "at most 0.5")
	reportKeeper("ZooKeeper: exec to a session, after a kill", "s", start, "1 s")
}

// fillMillion makes the nodes, and returns the longest time of a single write
// of another client beside it.
func fillMillion(t *testing.T, s *zookeeperSide) time.Duration {
	c, other := s.connect(t), s.connect(t)
	defer c.Close()
	defer other.Close()
	done, result := make(chan struct{}), make(chan time.Duration)
	go func() {
		var longest time.Duration
		for {
			select {
			case <-done:
				result <- longest
				return
			default:
			}
			at := time.Now()
			if _, _, err := other.Call(jute.OpSetData, &jute.SetDataRequest{Path: "/", Version: -1}); err != nil {
				t.Error(err)
			}
			longest = max(longest, time.Since(at))
		}
	}()
	data := []byte(strings.Repeat("x", 100))
	send := func(m *jute.MultiRequest) {
		if f, _, err := c.Call(jute.OpMulti, m); err != nil || f.Err != jute.OK {
			t.Fatal(f, err)
		}
	}
	create := func(path string) jute.MultiOp {
		return jute.MultiOp{Op: jute.OpCreate, Request: &jute.CreateRequest{Path: path, Data: data, ACL: jute.WorldACL()}}
	}
	send(&jute.MultiRequest{Ops: []jute.MultiOp{create("/p")}})
	for i := range 1000 {
		m := &jute.MultiRequest{Ops: []jute.MultiOp{create(fmt.Sprintf("/p/%03d", i))}}
		for j := range 1000 {
			m.Ops = append(m.Ops, create(fmt.Sprintf("/p/%03d/n%06d", i, j)))
			if len(m.Ops) == 250 {
				send(m)
				m = &jute.MultiRequest{}
			}
		}
		if len(m.Ops) > 0 {
			send(m)
		}
	}
	close(done)
	return <-result
}
