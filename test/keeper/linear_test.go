package keeper

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"barnabas/internal/jute"
	"barnabas/internal/keeper/keepertest"
)

// nodeState is one node of the model.
type nodeState struct {
	there   bool
	data    string
	version int32
}

// nodeOp is one request on one node, nodeAnswer what came back. Without an
// answer it may have happened, at any time later, or not.
type nodeOp struct {
	op      jute.Op
	path    string
	data    string
	version int32
}

type nodeAnswer struct {
	unknown bool
	err     jute.Error
	data    string
	version int32
}

// step does an operation on the model and returns the answer that it must have.
func (s nodeState) step(in nodeOp) (nodeState, nodeAnswer) {
	wrong := in.version != -1 && in.version != s.version
	switch {
	case in.op == jute.OpCreate && s.there:
		return s, nodeAnswer{err: jute.ErrNodeExists}
	case in.op == jute.OpCreate:
		return nodeState{true, in.data, 0}, nodeAnswer{}
	case !s.there:
		return s, nodeAnswer{err: jute.ErrNoNode}
	case in.op == jute.OpGetData:
		return s, nodeAnswer{data: s.data, version: s.version}
	case wrong:
		return s, nodeAnswer{err: jute.ErrBadVersion}
	case in.op == jute.OpDelete:
		return nodeState{}, nodeAnswer{}
	}
	return nodeState{true, in.data, s.version + 1}, nodeAnswer{version: s.version + 1}
}

var nodeModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byPath := map[string][]porcupine.Operation{}
		for _, o := range history {
			p := o.Input.(nodeOp).path
			byPath[p] = append(byPath[p], o)
		}
		var parts [][]porcupine.Operation
		for _, part := range byPath {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return nodeState{} },
	Step: func(state, input, output any) (bool, any) {
		next, want := state.(nodeState).step(input.(nodeOp))
		got := output.(nodeAnswer)
		return got.unknown || got == want, next
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

// history collects operations of several clients.
type history struct {
	mu sync.Mutex
	t0 time.Time
	o  []porcupine.Operation
}

func (h *history) add(client int, in nodeOp, call time.Duration, out nodeAnswer) {
	end := int64(time.Since(h.t0))
	if out.unknown {
		end = math.MaxInt64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.o = append(h.o, porcupine.Operation{ClientId: client, Input: in, Call: int64(call), Output: out, Return: end})
}

// one sends a request and notes what came of it; false: the server is gone.
func (h *history) one(t *testing.T, c *keepertest.Client, client int, in nodeOp, seen *int64) (nodeAnswer, bool) {
	var body jute.Record
	switch in.op {
	case jute.OpCreate:
		body = &jute.CreateRequest{Path: in.path, Data: []byte(in.data), ACL: jute.WorldACL()}
	case jute.OpGetData:
		body = &jute.PathWatchRequest{Path: in.path}
	case jute.OpDelete:
		body = &jute.PathVersionRequest{Path: in.path, Version: in.version}
	default:
		body = &jute.SetDataRequest{Path: in.path, Data: []byte(in.data), Version: in.version}
	}
	call := time.Since(h.t0)
	f, _, err := c.Call(in.op, body)
	if err != nil {
		h.add(client, in, call, nodeAnswer{unknown: true})
		return nodeAnswer{}, false
	}
	out := nodeAnswer{err: f.Err}
	switch b := f.Body.(type) {
	case *jute.GetDataResponse:
		out.data, out.version = string(b.Data), b.Stat.Version
	case *jute.Stat:
		out.version = b.Version
	}
	h.add(client, in, call, out)
	if f.Zxid < *seen { // a client never sees the past
		t.Errorf("client %d: zxid %x after %x", client, f.Zxid, *seen)
	}
	*seen = f.Zxid
	return out, true
}

// Clients at work on a few nodes while the server is killed and started again:
// there is an order of all their requests, in which each has its place between
// its sending and its answer, that explains every answer.
func TestConcurrentHistoriesAreLinearizable(t *testing.T) {
	const workers, lives, paths = 6, 4, 4
	random := seed(t)
	dir := t.TempDir()
	h := &history{t0: time.Now()}
	for life := range lives {
		cmd, addr := child(t, dir)
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				work(t, h, addr, life*workers+w, rand.New(rand.NewPCG(random, uint64(life*workers+w))), life < lives-1, cmd, paths)
			})
		}
		wg.Wait()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	result := porcupine.CheckOperationsTimeout(nodeModel, h.o, time.Minute)
	unknown := 0
	for _, o := range h.o {
		if o.Output.(nodeAnswer).unknown {
			unknown++
		}
	}
	t.Logf("%d operations, %d without an answer: %s", len(h.o), unknown, result)
	if result != porcupine.Ok {
		t.Error("no order explains the answers")
	}
}

// work is one client; the first kills the server in the midst of it.
func work(t *testing.T, h *history, addr string, client int, g *rand.Rand, kill bool, cmd *exec.Cmd, paths int) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return // killed already
	}
	c, err := keepertest.Connect(nc, jute.ConnectRequest{Timeout: 30000})
	if err != nil {
		return
	}
	defer c.Close()
	versions := map[string]int32{}
	var seen int64
	for i := range 150 {
		if kill && client%6 == 0 && i == 100 {
			_ = cmd.Process.Kill()
		}
		in := nodeOp{op: []jute.Op{jute.OpCreate, jute.OpGetData, jute.OpGetData, jute.OpDelete, jute.OpSetData, jute.OpSetData}[g.IntN(6)],
			path: fmt.Sprint("/n", g.IntN(paths)), version: -1}
		if in.op == jute.OpCreate || in.op == jute.OpSetData {
			in.data = fmt.Sprint(client, "-", i)
		}
		if v, ok := versions[in.path]; ok && g.IntN(2) == 0 && in.op != jute.OpCreate && in.op != jute.OpGetData {
			in.version = v
		}
		out, ok := h.one(t, c, client, in, &seen)
		if !ok {
			return
		}
		if in.op == jute.OpGetData || in.op == jute.OpSetData && out.err == jute.OK {
			versions[in.path] = out.version
		}
	}
}
