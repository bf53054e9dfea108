package keeper

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"barnabas/internal/jute"
	"barnabas/internal/keeper/keepertest"
	"barnabas/test/load"
	"barnabas/test/real"
)

// command runs a program of the system.
func command(t *testing.T, args ...string) error {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v: %w: %s", args, err, out)
	}
	return nil
}

// mount mounts an image, until the test is over or the function is called.
func mount(t *testing.T, image, on string, kind ...string) (unmount func()) {
	t.Helper()
	args := append([]string{"mount"}, kind...)
	err := os.MkdirAll(on, 0o755)
	if err == nil {
		err = command(t, append(args, image, on)...)
	}
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("this test needs root, to mount a file system: ", err)
		}
		t.Skip("this test needs root, to mount a file system: ", err)
	}
	done := false
	unmount = func() {
		if !done {
			done = true
			if err := command(t, "umount", on); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(unmount)
	return unmount
}

// Power is cut again and again amid writes: the server is stopped, and what the disk
// has at that moment, without what only the kernel's memory has, is copied,
// mounted and started from. Every write that was answered is there.
func TestAPowerCutLosesNothingThatWasAnswered(t *testing.T) {
	dir := t.TempDir()
	image, mounted := filepath.Join(dir, "disk"), filepath.Join(dir, "mnt")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 192<<20); err != nil {
		t.Fatal(err)
	}
	if err := command(t, "mkfs.ext4", "-q", "-F", image); err != nil {
		t.Skip("no ext4 file system can be made here: ", err)
	}
	unmount := mount(t, image, mounted, "-o", "loop")
	cmd, addr := child(t, filepath.Join(mounted, "keeper"))
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c, err := keepertest.Connect(nc, jute.ConnectRequest{Timeout: 30000})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	answered := 0 // the nodes /n0 to /n(answered-1)
	cuts := 5
	if load.Soak() {
		cuts = 20
	}
	for cut := range cuts {
		sent := 40 + 37*cut%200
		go func(from int) {
			for i := range sent { // more than are waited for
				_, _ = c.Send(jute.OpCreate, &jute.CreateRequest{Path: fmt.Sprint("/n", from+i), Data: make([]byte, 500), ACL: jute.WorldACL()})
			}
		}(answered)
		for i := range sent {
			f, err := c.Recv()
			if err != nil || f.Err != jute.OK {
				t.Fatal(f, err)
			}
			answered++
			if i == sent-20 { // the rest is under way
				cutPower(t, cmd, image, filepath.Join(dir, fmt.Sprint("cut", cut)), answered)
			}
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	unmount()
}

func cutPower(t *testing.T, cmd *exec.Cmd, image, at string, answered int) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	err := command(t, "cp", "--sparse=always", image, at)
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	unmount := mount(t, at, at+".mnt", "-o", "loop")
	again, addr := child(t, filepath.Join(at+".mnt", "keeper"))
	var f keepertest.Frame
	real.Until(t, 10*time.Second, "an answer", func() bool {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		c, err := keepertest.Connect(nc, jute.ConnectRequest{Timeout: 30000})
		if err != nil {
			return false
		}
		defer c.Close()
		f, _, err = c.Call(jute.OpGetChildren, &jute.PathWatchRequest{Path: "/"})
		return err == nil
	})
	there := map[string]bool{}
	for _, name := range f.Body.(*jute.GetChildrenResponse).Children {
		there[name] = true
	}
	for i := range answered {
		if !there[fmt.Sprint("n", i)] {
			t.Errorf("/n%d was answered and is lost", i)
		}
	}
	_ = again.Process.Kill()
	_ = again.Wait()
	unmount()
	if err := os.Remove(at); err != nil {
		t.Error(err)
	}
}

// On a file system that is full, writes are refused; with room again, they go
// through, without a restart.
func TestAFullFileSystemRefusesWritesUntilThereIsRoom(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "full")
	unmount := mount(t, "tmpfs", dir, "-t", "tmpfs", "-o", "size=4m")
	cmd, addr := child(t, filepath.Join(dir, "keeper"))
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c, err := keepertest.Connect(nc, jute.ConnectRequest{Timeout: 30000})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	create := func(i int) jute.Error {
		f, _, err := c.Call(jute.OpCreate, &jute.CreateRequest{Path: fmt.Sprint("/n", i), Data: make([]byte, 50_000), ACL: jute.WorldACL()})
		if err != nil {
			t.Fatal(err)
		}
		return f.Err
	}
	n := 0
	for ; create(n) == jute.OK; n++ {
		if n > 1000 {
			t.Fatal("it is never full")
		}
	}
	for range 3 {
		if e := create(n); e != jute.ErrSystemError {
			t.Fatal(e)
		}
	}
	if f, _, err := c.Call(jute.OpGetData, &jute.PathWatchRequest{Path: "/n0"}); err != nil || f.Err != jute.OK {
		t.Fatal(f, err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if e := create(n); e != jute.OK {
			t.Fatal(e)
		}
		n++
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	cmd, addr = child(t, filepath.Join(dir, "keeper"))
	again := super(t, addr)
	f, _, err := again.Call(jute.OpGetAllChildrenNumber, &jute.PathRequest{Path: "/"})
	if err != nil || int(f.Body.(*jute.CountResponse).Count) != n+3 {
		t.Errorf("%v %v, %d were answered", f.Body, err, n)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	unmount()
}
