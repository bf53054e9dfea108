package keeper

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"barnabas/internal/jute"
	"barnabas/internal/keeper/keepertest"
	"barnabas/test/real"
)

// super connects as the one who may do everything.
func super(t *testing.T, addr string) *keepertest.Client {
	t.Helper()
	var c *keepertest.Client
	real.Until(t, 20*time.Second, "a session on "+addr, func() bool {
		nc, err := net.Dial("tcp", addr)
		if err == nil {
			c, err = keepertest.Connect(nc, jute.ConnectRequest{Timeout: 30000})
		}
		return err == nil
	})
	t.Cleanup(c.Close)
	if f, _, err := c.Call(jute.OpAuth, &jute.AuthPacket{Scheme: "digest", Auth: []byte(superUser)}); err != nil || f.Err != jute.OK {
		t.Fatal(f, err)
	}
	return c
}

// describeTree shows all nodes with data, Stat and ACL, but the ephemeral ones.
func describeTree(t *testing.T, c *keepertest.Client) []string {
	t.Helper()
	var lines []string
	paths := []string{"/"}
	for len(paths) > 0 {
		path := paths[0]
		paths = paths[1:]
		data, _, err := c.Call(jute.OpGetData, &jute.PathWatchRequest{Path: path})
		acl, _, err2 := c.Call(jute.OpGetACL, &jute.PathRequest{Path: path})
		kids, _, err3 := c.Call(jute.OpGetChildren, &jute.PathWatchRequest{Path: path})
		if err != nil || err2 != nil || err3 != nil || data.Err != jute.OK || acl.Err != jute.OK {
			t.Fatal(path, err, err2, err3, data.Err, acl.Err)
		}
		if strings.HasSuffix(path, "/zookeeper_stats") { // counted anew at each start, whatever clients wrote there
			d := data.Body.(*jute.GetDataResponse)
			d.Data, d.Stat.DataLength = nil, 0
		}
		lines = append(lines, fmt.Sprintf("%s %+v %+v", path, data.Body, acl.Body.(*jute.GetACLResponse).ACL))
		names := kids.Body.(*jute.GetChildrenResponse).Children
		slices.Sort(names)
		for _, name := range names {
			paths = append(paths, strings.TrimSuffix(path, "/")+"/"+name)
		}
	}
	return lines
}

// play does random writes by a script's generator, on one server.
func play(t *testing.T, g *generator, c *keepertest.Client, total int) {
	t.Helper()
	for range total {
		op, body := g.write(false)
		if create, ok := body.(*jute.CreateRequest); ok && create.Mode.Ephemeral() {
			create.Mode = jute.PersistentSequential
		}
		if g.chance(10) {
			op, body = jute.OpSetACL, &jute.SetACLRequest{Path: "/acl", ACL: g.acl("/acl"), Version: -1}
		}
		if g.chance(10) {
			op, body = jute.OpMulti, &jute.MultiRequest{Ops: []jute.MultiOp{
				{Op: jute.OpCreate, Request: &jute.CreateRequest{Path: "/a/m-", ACL: jute.WorldACL(), Mode: jute.PersistentSequential}},
				{Op: jute.OpSetData, Request: &jute.SetDataRequest{Path: "/a", Data: []byte("m"), Version: -1}}}}
		}
		if _, _, err := c.Call(op, body); err != nil {
			t.Fatal(op, err)
		}
	}
}

func equalTrees(t *testing.T, what string, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("%s: %d nodes, %d before; the first that differs:\n got %s\nwant %s", what, len(got), len(want),
				strings.Join(got[min(i, len(got)):min(i+1, len(got))], ""), strings.Join(want[min(i, len(want)):min(i+1, len(want))], ""))
		}
	}
}

var apacheOptions = []string{"extendedTypesEnabled=true", "DigestAuthenticationProvider.superDigest=" + superDigest, "-Dznode.container.checkIntervalMs=86400000"}

// start serves our server's command on a folder.
func startOurs(t *testing.T, dir string) (addr string, p *real.Process) {
	t.Helper()
	addr = "127.0.0.1:" + real.FreePort(t)
	return addr, real.Start(t, "barnabas zookeeper", exec.Command(real.Binary(t), "zookeeper", "--listen", addr, "--dir", dir,
		"--super-digest", superDigest, "--container-interval", "24h"))
}

// There and back: the same nodes, Stats and ACLs on each server, written on by
// each in turn.
func TestATreeMovesToApacheZooKeeperAndBack(t *testing.T) {
	g := &generator{Rand: rand.New(rand.NewPCG(seed(t), 5))}
	first, apache, second := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "apache"), filepath.Join(t.TempDir(), "second")
	addr, p := startOurs(t, first)
	c := super(t, addr)
	play(t, g, c, 3000)
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	short, err := keepertest.Connect(nc, jute.ConnectRequest{Timeout: 12_000})
	if err != nil {
		t.Fatal(err)
	}
	if f, _, err := short.Call(jute.OpCreate, &jute.CreateRequest{Path: "/ephemeral", ACL: jute.WorldACL(), Mode: jute.Ephemeral}); err != nil || f.Err != jute.OK {
		t.Fatal(f, err)
	}
	want := describeTree(t, c)
	p.Stop()
	barnabas := func(args ...string) string {
		return real.Run(t, time.Minute, exec.Command(real.Binary(t), append([]string{"zookeeper"}, args...)...))
	}
	t.Log(barnabas("export", "--dir", first, "--to", apache))

	z := real.StartZooKeeper(t, append(apacheOptions, "dataDir="+apache)...)
	c = super(t, z.Addr)
	equalTrees(t, "on Apache", describeTree(t, c), want)
	real.Until(t, time.Minute, "the end of a session that came along", func() bool {
		f, _, err := c.Call(jute.OpExists, &jute.PathWatchRequest{Path: "/ephemeral"})
		return err == nil && f.Err == jute.ErrNoNode
	})
	play(t, g, c, 3000)
	want = describeTree(t, c)
	z.Kill() // Apache does nothing at a stop
	t.Log(barnabas("import", "--from", apache, "--dir", second))
	addr, p = startOurs(t, second)
	c = super(t, addr)
	equalTrees(t, "back", describeTree(t, c), want)
	play(t, g, c, 500)
	want = describeTree(t, c)
	p.Kill()

	// And each on the other's own folder.
	z = real.StartZooKeeper(t, append(apacheOptions, "dataDir="+second)...)
	c = super(t, z.Addr)
	equalTrees(t, "Apache on the server's own folder", describeTree(t, c), want)
	play(t, g, c, 500)
	want = describeTree(t, c)
	z.Kill()
	addr, _ = startOurs(t, second)
	equalTrees(t, "back on the same folder", describeTree(t, super(t, addr)), want)

	// Nothing is written over.
	if out, errs, err := real.Try(t, time.Minute, exec.Command(real.Binary(t), "zookeeper", "import", "--from", apache, "--dir", first)); err == nil || !strings.Contains(errs, "data already") {
		t.Error(out, errs, err)
	}
	if out, errs, err := real.Try(t, time.Minute, exec.Command(real.Binary(t), "zookeeper", "export", "--dir", second, "--to", filepath.Join(t.TempDir(), "x"))); err == nil || !strings.Contains(errs, "another process") {
		t.Error(out, errs, err)
	}
	if _, err := os.Stat(filepath.Join(second, "secret")); err != nil {
		t.Error(err)
	}
}
