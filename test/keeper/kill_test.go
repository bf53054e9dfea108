package keeper

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"barnabas/internal/jute"
	"barnabas/internal/keeper"
	"barnabas/internal/keeper/keepertest"
)

// childDir names the environment variable that makes this test binary a server.
const childDir = "BARNABAS_KEEPER_CHILD"

// serveUntilKilled serves dir and prints its address.
func serveUntilKilled(dir string) {
	s, err := keeper.Open(keeper.Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err == nil {
			fmt.Println("serving", l.Addr())
			err = s.Serve(l)
		}
	}
	fmt.Println(err)
	os.Exit(1)
}

// child starts a server in a process of its own.
func child(t *testing.T, dir string) (cmd *exec.Cmd, addr string) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line := make([]byte, 200)
	n, err := out.Read(line)
	addr, ok := strings.CutPrefix(strings.TrimSpace(string(line[:n])), "serving ")
	if err != nil || !ok {
		t.Fatalf("child: %q, %v", line[:n], err)
	}
	return cmd, addr
}

func TestAKillAmidWritesLosesNoneThatWasAnswered(t *testing.T) {
	dir := t.TempDir()
	answered := map[string]bool{}
	for round := range 5 {
		cmd, addr := child(t, dir)
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		c, err := keepertest.Connect(nc, jute.ConnectRequest{Timeout: 30000})
		if err != nil {
			t.Fatal(err)
		}
		go func() { // 1,000 writes in one go
			for i := range 1000 {
				if _, err := c.Send(jute.OpCreate, &jute.CreateRequest{
					Path: fmt.Sprintf("/r%d-%d", round, i), Data: fmt.Append(nil, i), ACL: jute.WorldACL()}); err != nil {
					return // killed
				}
			}
		}()
		for n := 0; ; n++ {
			b, err := c.ReadFrame()
			if err != nil {
				break
			}
			var h jute.ReplyHeader
			var r jute.CreateResponse
			if err := jute.Unmarshal(b, &h, &r); err != nil || h.Err != jute.OK {
				t.Fatal(err, h)
			}
			answered[r.Path] = true
			if n == 1+40*round {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		c.Close()
		_ = cmd.Wait()
	}
	_, addr := child(t, dir)
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c, err := keepertest.Connect(nc, jute.ConnectRequest{Timeout: 30000})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	f, _, err := c.Call(jute.OpGetChildren, &jute.PathWatchRequest{Path: "/"})
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, name := range f.Body.(*jute.GetChildrenResponse).Children {
		there["/"+name] = true
	}
	lost := 0
	for path := range answered {
		if !there[path] {
			lost++
		}
	}
	t.Logf("%d answered, %d there", len(answered), len(there))
	if lost > 0 || len(answered) < 500 {
		t.Errorf("%d of %d answered writes are lost", lost, len(answered))
	}
}

func TestASessionSurvivesAKill(t *testing.T) {
	dir := t.TempDir()
	cmd, addr := child(t, dir)
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c, err := keepertest.Connect(nc, jute.ConnectRequest{Timeout: 30000})
	if err != nil {
		t.Fatal(err)
	}
	f, _, err := c.Call(jute.OpCreate2, &jute.CreateRequest{Path: "/e", ACL: jute.WorldACL(), Mode: jute.Ephemeral})
	if err != nil || f.Err != jute.OK {
		t.Fatal(err, f)
	}
	failed, _, err := c.Call(jute.OpDelete, &jute.PathVersionRequest{Path: "/none", Version: -1})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()

	_, addr = child(t, dir)
	if nc, err = net.DialTimeout("tcp", addr, time.Second); err != nil {
		t.Fatal(err)
	}
	again, err := keepertest.Connect(nc, jute.ConnectRequest{Timeout: 30000, SessionID: c.Resp.SessionID, Password: c.Resp.Password, LastZxidSeen: failed.Zxid})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	g, _, err := again.Call(jute.OpExists, &jute.PathWatchRequest{Path: "/e"})
	if err != nil || g.Err != jute.OK || *g.Body.(*jute.Stat) != f.Body.(*jute.Create2Response).Stat {
		t.Fatal(err, g, f)
	}
	if _, _, err := again.Call(jute.OpCloseSession, nil); err != nil {
		t.Fatal(err)
	}
}
