package real

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Cache returns the folder that test/setup fills.
func Cache() string {
	if dir := os.Getenv("BARNABAS_CACHE"); dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = os.TempDir()
	}
	return filepath.Join(home, ".cache", "barnabas")
}

// need ends the test if path (a file, or a command's name) is not there.
func need(t testing.TB, what, path string) string {
	t.Helper()
	if strings.ContainsRune(path, filepath.Separator) {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	} else if found, err := exec.LookPath(path); err == nil {
		return found
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is not installed; test/setup installs it", what)
	}
	t.Skipf("%s is not installed; run test/setup", what)
	return ""
}

// FreePort returns a TCP port of 127.0.0.1 that was free a moment ago, and that
// this process was not given before. It is none of those that the system gives to
// connections, of which there are many at any time.
func FreePort(t testing.TB) string {
	t.Helper()
	for range 1000 {
		port := strconv.Itoa(10240 + rand.IntN(32768-10240))
		if _, given := givenPorts.LoadOrStore(port, true); given {
			continue
		}
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

var givenPorts sync.Map

// Process is a program that runs beside a test.
type Process struct {
	t    testing.TB
	name string
	cmd  *exec.Cmd
	log  *output
	done chan struct{}
	err  error // of Wait; read after done
}

// output keeps what a program printed.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// Start runs cmd until it ends, Kill or Stop is called, or the test is over.
// If the test fails, what it printed goes to the test's log.
func Start(t testing.TB, name string, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{t: t, name: name, cmd: cmd, log: &output{}, done: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = p.log
	}
	cmd.Stderr = p.log
	cmd.SysProcAttr = dieWithParent()
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s printed:\n%s", name, tail(p.log.String(), 8000))
		}
	})
	return p
}

func tail(s string, n int) string {
	if len(s) > n {
		return "... " + s[len(s)-n:]
	}
	return s
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Output returns what the program has printed so far.
func (p *Process) Output() string { return p.log.String() }

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends a signal to the program.
func (p *Process) Signal(s os.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("%s: signal %v: %v", p.name, s, err)
	}
}

// Kill ends the program with SIGKILL and waits until it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.done
}

// Stop ends the program with SIGTERM and returns its exit code; after a minute
// it is killed and the test fails.
func (p *Process) Stop() int {
	p.t.Helper()
	p.Signal(syscall.SIGTERM)
	return p.Wait(time.Minute)
}

// Wait waits for the program to end by itself and returns its exit code; after
// limit it is killed and the test fails.
func (p *Process) Wait(limit time.Duration) int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(limit):
		p.Kill()
		p.t.Errorf("%s did not end within %v", p.name, limit)
	}
	return p.cmd.ProcessState.ExitCode()
}

// Until waits until ok returns true, or fails the test after limit.
func Until(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited %v for: %s", limit, what)
		case <-tick.C:
		}
	}
}

// UntilRunning is Until for something that a process has to do first: it fails
// at once when the process ends.
func (p *Process) UntilRunning(limit time.Duration, what string, ok func() bool) {
	p.t.Helper()
	Until(p.t, limit, p.name+": "+what, func() bool {
		select {
		case <-p.done:
			p.t.Fatalf("%s ended (%v) before: %s", p.name, p.err, what)
		default:
		}
		return ok()
	})
}

// Run runs cmd to its end with a limit and returns what it wrote to stdout.
// If it fails, so does the test.
func Run(t testing.TB, limit time.Duration, cmd *exec.Cmd) string {
	t.Helper()
	out, errOut, err := Try(t, limit, cmd)
	if err != nil {
		t.Fatalf("%s: %v\nstdout: %s\nstderr: %s", strings.Join(cmd.Args, " "), err, tail(out, 4000), tail(errOut, 8000))
	}
	return out
}

// Try is Run for a command that may fail.
func Try(t testing.TB, limit time.Duration, cmd *exec.Cmd) (stdout, stderr string, err error) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	cmd.SysProcAttr = dieWithParent()
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return "", "", err
	}
	timer := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	err = cmd.Wait()
	return out.String(), errOut.String(), err
}
