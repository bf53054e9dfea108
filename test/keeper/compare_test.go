package keeper

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"barnabas/internal/jute"
	"barnabas/internal/keeper"
	"barnabas/internal/keeper/keepertest"
	"barnabas/test/real"
)

// side is one of the two servers, with the script's clients.
type side struct {
	name     string
	addr     string
	actors   [clients]actor
	base     int64            // the zxid before the script
	last     int64            // the last zxid that a reply had
	sessions map[int64]string // names of sessions, by their id
	trace    []string
}

type actor struct {
	c        *keepertest.Client // nil while dropped
	id       int64
	password []byte
}

func (s *side) log(format string, args ...any) {
	s.trace = append(s.trace, fmt.Sprintf(format, args...))
}

func (s *side) connect(r jute.ConnectRequest) (*keepertest.Client, error) {
	nc, err := net.Dial("tcp", s.addr)
	if err != nil {
		return nil, err
	}
	c, err := keepertest.Connect(nc, r)
	if err == nil && s.sessions[c.Resp.SessionID] == "" {
		s.sessions[c.Resp.SessionID] = fmt.Sprintf("session %d", len(s.sessions)+1)
	}
	return c, err
}

func (s *side) start(i int, r jute.ConnectRequest) error {
	c, err := s.connect(r)
	if err != nil {
		return err
	}
	s.actors[i] = actor{c, c.Resp.SessionID, c.Resp.Password}
	s.log("%s, timeout %d", s.sessions[c.Resp.SessionID], c.Resp.Timeout)
	return nil
}

// zxid shows a zxid as a difference to the start.
func (s *side) zxid(z int64) int64 {
	if z > 0 {
		return z - s.base
	}
	return z
}

func (s *side) stat(st jute.Stat) string {
	owner := "nobody"
	if st.EphemeralOwner != 0 {
		owner = s.sessions[st.EphemeralOwner]
	}
	return fmt.Sprintf("{c%d m%d p%d v%d cv%d av%d %s len%d kids%d t%v%v}", s.zxid(st.Czxid), s.zxid(st.Mzxid), s.zxid(st.Pzxid),
		st.Version, st.Cversion, st.Aversion, owner, st.DataLength, st.NumChildren, st.Ctime != 0, st.Mtime >= st.Ctime)
}

func data(b []byte) string {
	if b == nil {
		return "null"
	}
	return strconv.Quote(string(b))
}

func sorted(names []string) string {
	if names == nil {
		return "null"
	}
	names = slices.Clone(names)
	slices.Sort(names)
	return fmt.Sprintf("%q", names)
}

// body shows a response. What has no order in ZooKeeper is sorted.
func (s *side) body(r jute.Record) string {
	switch r := r.(type) {
	case *jute.Create2Response:
		return fmt.Sprintf("%q %s", r.Path, s.stat(r.Stat))
	case *jute.Stat:
		return s.stat(*r)
	case *jute.GetDataResponse:
		return data(r.Data) + s.stat(r.Stat)
	case *jute.GetChildrenResponse:
		return sorted(r.Children)
	case *jute.GetChildren2Response:
		return sorted(r.Children) + s.stat(r.Stat)
	case *jute.GetACLResponse:
		var acl []string
		for _, a := range r.ACL {
			acl = append(acl, fmt.Sprint(a))
		}
		return sorted(acl) + s.stat(r.Stat)
	case *jute.WhoAmIResponse:
		var ids []string
		for _, id := range r.IDs {
			ids = append(ids, id.Scheme+" "+id.ID)
		}
		return sorted(ids)
	case *jute.MultiResponse:
		var text []string
		for _, m := range r.Results {
			text = append(text, fmt.Sprintf("%v %d %q %s %s %s", m.Op, m.Err, m.Path, s.stat(m.Stat), data(m.Data), sorted(m.Children)))
		}
		return "multi" + strings.Join(text, "; ")
	case nil:
		return "none"
	}
	return fmt.Sprintf("%q", fmt.Sprintf("%+v", r))
}

func (s *side) frame(f keepertest.Frame) string {
	if f.Event != nil {
		return fmt.Sprintf("event %d %d %q (xid %d zxid %d err %d)", f.Event.Type, f.Event.State, f.Event.Path, f.Xid, f.Zxid, f.Err)
	}
	s.last = max(s.last, f.Zxid)
	return fmt.Sprintf("xid %d zxid %d %v %s", f.Xid, s.zxid(f.Zxid), f.Err, s.body(f.Body))
}

// run does one step and returns what came of it.
func (s *side) run(st step) ([]string, error) {
	s.trace = nil
	a := &s.actors[st.client]
	var err error
	switch st.kind {
	case "drop":
		a.c.Close()
		a.c = nil
	case "wrong password":
		_, err := s.connect(jute.ConnectRequest{Timeout: 30000, SessionID: a.id, Password: []byte("0123456789abcdef")})
		s.log("%v", err)
	case "attach":
		if err = s.start(st.client, jute.ConnectRequest{Timeout: 30000, SessionID: a.id, Password: a.password, LastZxidSeen: s.last}); err == nil {
			err = s.requests(a.c, st.ops)
		}
	case "steal": // attach while the first connection is there: it is closed
		first := a.c
		if err = s.start(st.client, jute.ConnectRequest{Timeout: 20000, SessionID: a.id, Password: a.password}); err == nil {
			_, end := first.ReadFrame()
			s.log("the first: %v", end != nil)
			first.Close()
		}
	case "close":
		if err = s.requests(a.c, []op{{op: jute.OpCloseSession}}); err == nil {
			_, end := a.c.ReadFrame()
			s.log("then closed: %v", end != nil)
			a.c.Close()
			err = s.start(st.client, jute.ConnectRequest{Timeout: 30000, LastZxidSeen: s.last})
		}
	case "expire":
		err = s.expire()
	default:
		err = s.requests(a.c, st.ops)
	}
	if err != nil {
		return s.trace, fmt.Errorf("%s: %w", s.name, err)
	}
	unordered := st.kind == "expire" || st.kind == "close" // the ephemeral nodes of a session go in no order
	if unordered {
		slices.Sort(s.trace)
	}
	return s.trace, s.settle(unordered)
}

// requests sends all, then takes all answers.
func (s *side) requests(c *keepertest.Client, ops []op) error {
	for _, o := range ops {
		body := o.body
		switch w := body.(type) {
		case *jute.SetWatchesRequest:
			copied := *w
			copied.RelativeZxid = s.last - o.lag
			body = &copied
		case *jute.SetWatches2Request:
			copied := *w
			copied.RelativeZxid = s.last - o.lag
			body = &copied
		}
		if o.cut > 0 {
			b := jute.Marshal(body)
			body = rawBody(b[:len(b)-o.cut])
		}
		if _, err := c.Send(o.op, body); err != nil {
			return err
		}
	}
	for replies := 0; replies < len(ops); {
		f, err := c.Recv()
		if err != nil {
			return err
		}
		if f.Event == nil {
			replies++
		}
		s.log("%s", s.frame(f))
	}
	return nil
}

// rawBody is a request's body that is already bytes.
type rawBody []byte

func (r rawBody) Encode(e *jute.Encoder) { e.B = append(e.B, r...) }
func (r rawBody) Decode(*jute.Decoder)   {}

// settle collects the events that each client has by now: they come before
// the answer to a ping.
func (s *side) settle(unordered bool) error {
	for i := range s.actors {
		c := s.actors[i].c
		if c == nil {
			continue
		}
		if _, err := c.Send(jute.OpPing, nil); err != nil {
			return err
		}
		var events []string
		for {
			f, err := c.Recv()
			if err != nil {
				return fmt.Errorf("%s: client %d: %w", s.name, i, err)
			}
			if f.Event == nil {
				events = append(events, s.frame(f))
				break
			}
			events = append(events, s.frame(f))
		}
		if unordered {
			slices.Sort(events)
		}
		s.log("client %d then has %q", i, events)
	}
	return nil
}

// expire makes a session that falls silent with an ephemeral node, and waits
// until the node is gone.
func (s *side) expire() error {
	c, err := s.connect(jute.ConnectRequest{Timeout: 1})
	if err != nil {
		return err
	}
	s.log("%s, timeout %d", s.sessions[c.Resp.SessionID], c.Resp.Timeout)
	if err := s.requests(c, []op{
		{op: jute.OpCreate, body: &jute.CreateRequest{Path: "/a", ACL: jute.WorldACL()}},
		{op: jute.OpCreate, body: &jute.CreateRequest{Path: "/a/short", ACL: jute.WorldACL(), Mode: jute.Ephemeral}},
		{op: jute.OpCreate, body: &jute.CreateRequest{Path: "/short", ACL: jute.WorldACL(), Mode: jute.Ephemeral}},
	}); err != nil {
		return err
	}
	c.Close()
	watcher, err := s.connect(jute.ConnectRequest{Timeout: 30000})
	if err != nil {
		return err
	}
	defer watcher.Close()
	f, events, err := watcher.Call(jute.OpExists, &jute.PathWatchRequest{Path: "/short", Watch: true})
	for err == nil && f.Err == jute.OK && len(events) == 0 && f.Event == nil {
		f, err = watcher.Recv() // the event, in at most some ticks
	}
	if err != nil {
		return err
	}
	return s.requests(watcher, []op{{op: jute.OpCloseSession}})
}

func seed(t *testing.T) uint64 {
	v := rand.Uint64()
	if text := os.Getenv("BARNABAS_SEED"); text != "" {
		var err error
		if v, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("BARNABAS_SEED=%d", v)
	return v
}

func steps(t *testing.T, standard int) int {
	if os.Getenv("BARNABAS_SOAK") != "" {
		standard *= 10
	}
	if text := os.Getenv("BARNABAS_STEPS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return standard
}

// ours serves the embedded server on a port.
func ours(t testing.TB, o keeper.Options) string {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	s, err := keeper.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func TestARandomScriptGivesEqualAnswersOnApacheZooKeeper(t *testing.T) {
	playScript(t, &generator{Rand: rand.New(rand.NewPCG(seed(t), 1))}, steps(t, 10_000))
}

func TestHardQuotasGiveEqualAnswersOnApacheZooKeeper(t *testing.T) {
	playScript(t, &generator{Rand: rand.New(rand.NewPCG(seed(t), 2)), quotas: true}, steps(t, 10_000)/5)
}

// playScript runs random steps on both servers until total operations are done,
// and stops at the first that is answered differently. Containers and TTL nodes
// stay: when a server looks for those to delete is its own affair.
func playScript(t *testing.T, g *generator, total int) {
	sides := [2]*side{
		{name: "Apache ZooKeeper", addr: real.StartZooKeeper(t, "tickTime=200", "minSessionTimeout=2000", "maxSessionTimeout=60000",
			"extendedTypesEnabled=true", "DigestAuthenticationProvider.superDigest="+superDigest, "enforceQuota="+strconv.FormatBool(g.quotas),
			"-Dznode.container.checkIntervalMs=86400000").Addr},
		{name: "Barnabas", addr: ours(t, keeper.Options{Dir: t.TempDir(), TickTime: 200 * time.Millisecond, MinSessionTimeout: 2 * time.Second, MaxSessionTimeout: time.Minute,
			SuperDigest: superDigest, EnforceQuota: g.quotas, ContainerInterval: 24 * time.Hour, Words: []string{"*"}})},
	}
	for _, s := range sides {
		s.sessions = map[int64]string{}
		for i := range clients {
			real.Until(t, 10*time.Second, "a session", func() bool { // Apache listens before it serves
				return s.start(i, jute.ConnectRequest{Timeout: 30000}) == nil
			})
			t.Cleanup(func() {
				if c := s.actors[i].c; c != nil {
					c.Close()
				}
			})
		}
		f, _, err := s.actors[0].c.Call(jute.OpSync, &jute.PathRequest{Path: "/"})
		if err != nil {
			t.Fatal(err)
		}
		s.base, s.last = f.Zxid, f.Zxid
	}
	type outcome struct {
		trace []string
		err   error
	}
	var before []string
	for n, done := 0, 0; done < total; n++ {
		st := g.step()
		done += max(1, len(st.ops))
		var got [2]outcome
		wait := make(chan struct{})
		go func() {
			defer close(wait)
			got[0].trace, got[0].err = sides[0].run(st)
		}()
		got[1].trace, got[1].err = sides[1].run(st)
		<-wait
		before = append(before, fmt.Sprintf("step %d: %v", n, st))
		if got[0].err != nil || got[1].err != nil || !slices.Equal(got[0].trace, got[1].trace) {
			t.Errorf("the servers part at step %d, after %d operations:\n%s\nerrors: %v, %v", n, done,
				strings.Join(before[max(0, len(before)-4):], "\n"), got[0].err, got[1].err)
			for i := range max(len(got[0].trace), len(got[1].trace)) {
				var line [2]string
				for j := range line {
					if line[j] = "-"; i < len(got[j].trace) {
						line[j] = got[j].trace[i]
					}
				}
				if line[0] != line[1] {
					t.Errorf("\nApache:   %s\nBarnabas: %s", line[0], line[1])
				}
			}
			t.FailNow()
		}
	}
}
