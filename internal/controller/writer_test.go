package controller

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"testing"

	"barnabas/internal/controller/core"
	"barnabas/internal/jute"
	"barnabas/internal/keeper"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

func client(t *testing.T) *zookeeper.Client {
	t.Helper()
	return clientOver(t, plain)
}

func plain(nc net.Conn) net.Conn { return nc }

// clientOver is a client of an embedded server, over connections that wrap makes.
func clientOver(t *testing.T, wrap func(net.Conn) net.Conn) *zookeeper.Client {
	t.Helper()
	c := clientOf(t, embedded(t, wrap))
	if _, _, err := c.Create(t.Context(), znode.ControllerEpochPath, []byte("1"), zookeeper.Persistent); err != nil {
		t.Fatal(err)
	}
	return c
}

// embedded starts a server and tells how to reach it.
func embedded(t *testing.T, wrap func(net.Conn) net.Conn) zookeeper.Options {
	t.Helper()
	s, err := keeper.Open(keeper.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return zookeeper.Options{Connect: "embedded",
		Dial: func(ctx context.Context, _ string) (net.Conn, error) {
			nc, err := s.Dial(ctx)
			if err != nil {
				return nil, err
			}
			return wrap(nc), nil
		}}
}

func clientOf(t *testing.T, o zookeeper.Options) *zookeeper.Client {
	t.Helper()
	c, err := zookeeper.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func create(path string) core.Op { return core.Op{Kind: core.OpCreate, Path: path} }

// The outcome of each unit must be as if they had been done one by one. As those
// of the core, no two units want to make the same node.
func TestUnitsThatFailDoNotKeepTheOthersFromBeingDone(t *testing.T) {
	c := client(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range 30 {
		top := fmt.Sprintf("/r%d", round)
		w := writer{zk: c, maxOps: 1 + random.IntN(20), maxBytes: 1 << 20}
		if random.IntN(4) == 0 {
			w.maxBytes = 300
		}
		units := []core.Unit{{create(top)}}
		want := []core.UnitResult{{}}
		made := []string{top}
		for i := range random.IntN(80) {
			path := fmt.Sprintf("%s/n%d", top, i)
			switch random.IntN(5) {
			case 0: // a node and one below it
				units, want = append(units, core.Unit{create(path), create(path + "/below")}), append(want, core.UnitResult{})
				made = append(made, path, path+"/below")
			case 1: // below a node of an earlier unit
				parent := made[random.IntN(len(made))]
				units, want = append(units, core.Unit{create(parent + fmt.Sprintf("/c%d", i))}), append(want, core.UnitResult{})
			case 2: // a node that is there, in the second place
				units = append(units, core.Unit{create(path), create(znode.ControllerEpochPath)})
				want = append(want, core.UnitResult{Err: jute.ErrNodeExists, Op: 1})
			case 3: // the data version comes back
				units = append(units, core.Unit{create(path), {Kind: core.OpSet, Path: path, Data: []byte("x")}})
				want = append(want, core.UnitResult{Version: 1})
			case 4: // the wrong version, or no node at all
				u, r := core.Unit{{Kind: core.OpSet, Path: top, Version: 7}}, core.UnitResult{Err: jute.ErrBadVersion}
				if random.IntN(2) == 0 {
					u, r = core.Unit{create(path + "/none")}, core.UnitResult{Err: jute.ErrNoNode}
				}
				units, want = append(units, u), append(want, r)
			}
		}
		got, moved, err := w.write(t.Context(), units)
		if err != nil || moved {
			t.Fatal(moved, err)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("round %d, at most %d ops: unit %d %v: %+v, want %+v", round, w.maxOps, i, units[i], got[i], want[i])
			}
		}
	}
}

func TestNothingIsWrittenOnceTheEpochHasMoved(t *testing.T) {
	c := client(t)
	if _, err := c.Set(t.Context(), znode.ControllerEpochPath, []byte("2"), 0); err != nil {
		t.Fatal(err)
	}
	w := writer{zk: c, maxOps: 2, maxBytes: 1 << 20}
	_, moved, err := w.write(t.Context(), []core.Unit{{create("/a")}, {create("/b")}, {create("/c")}})
	if err != nil || !moved {
		t.Fatalf("moved %t, %v", moved, err)
	}
	if names, _, err := c.Children(t.Context(), "/"); err != nil || len(names) != 2 { // controller_epoch, zookeeper
		t.Errorf("%v, %v", names, err)
	}
}

func TestAUnitThatIsTooLargeFailsAlone(t *testing.T) {
	c := client(t)
	huge := core.Op{Kind: core.OpCreate, Path: "/huge", Data: make([]byte, 8<<20)}
	w := writer{zk: c, maxOps: 100, maxBytes: 64 << 20}
	got, _, err := w.write(t.Context(), []core.Unit{{create("/a")}, {huge}, {create("/b")}})
	if err != nil || got[0].Err != jute.OK || got[1].Err == jute.OK || got[2].Err != jute.OK {
		t.Fatalf("%+v, %v", got, err)
	}
}

// brief is a connection that breaks after so many bytes of the server's.
type brief struct {
	net.Conn
	left int
}

func (b *brief) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// No unit is given up for the losses of others.
func TestConnectionsThatBreakSoonCarryEverythingOut(t *testing.T) {
	c := clientOver(t, func(nc net.Conn) net.Conn { return &brief{nc, 240} }) // a few answers
	var units []core.Unit
	for i := range 4 * maxLosses {
		units = append(units, core.Unit{create(fmt.Sprintf("/n%d", i))})
	}
	w := writer{zk: c, maxOps: 1, maxBytes: 1 << 20}
	results, moved, err := w.write(t.Context(), units)
	if err != nil || moved {
		t.Fatal(moved, err)
	}
	for i, r := range results {
		if r.Err != jute.OK && r.Err != jute.ErrNodeExists { // the answer of the first try was lost
			t.Errorf("unit %d: %v", i, r.Err)
		}
	}
}
