package tools

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"barnabas/test/real"

	"golang.org/x/sys/unix"
)

// person sits at a terminal in which a command runs.
type person struct {
	t    *testing.T
	keys *os.File
	cmd  *exec.Cmd
	exit chan error

	mu   sync.Mutex
	seen strings.Builder // guarded by mu
	read int             // of seen, by sees
}

// sit runs a command in a terminal of its own.
func sit(t *testing.T, args ...string) *person {
	t.Helper()
	main, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { main.Close() })
	fd := int(main.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	end, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	p := &person{t: t, keys: main, cmd: exec.Command(real.Binary(t), args...), exit: make(chan error, 1)}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = end, end, end
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.exit <- p.cmd.Wait() }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := main.Read(buf)
			p.mu.Lock()
			p.seen.Write(buf[:n])
			p.mu.Unlock()
			if err != nil {
				return // the command is gone
			}
		}
	}()
	return p
}

func (p *person) types(s string) {
	p.t.Helper()
	if _, err := io.WriteString(p.keys, s); err != nil {
		p.t.Fatal(err)
	}
}

// sees waits until the screen shows s after what was seen before.
func (p *person) sees(s string) {
	p.t.Helper()
	defer func() {
		if p.t.Failed() {
			p.t.Logf("the screen: %q", p.seen.String()[p.read:])
		}
	}()
	real.Until(p.t, 30*time.Second, "the screen to show "+s, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		at := strings.Index(p.seen.String()[p.read:], s)
		if at >= 0 {
			p.read += at + len(s)
		}
		return at >= 0
	})
}

func (p *person) ends(status int) {
	p.t.Helper()
	select {
	case <-p.exit:
		if got := p.cmd.ProcessState.ExitCode(); got != status {
			p.t.Errorf("%s exits with %d, want %d; the screen: %q", p.cmd.Args[1], got, status, p.seen.String())
		}
	case <-time.After(30 * time.Second):
		p.t.Fatalf("%s does not end; the screen: %q", p.cmd.Args[1], p.seen.String())
	}
}

const (
	ctrlC = "\x03"
	ctrlD = "\x04"
	up    = "\x1b[A"
	left  = "\x1b[D"
)

func TestTheShellEditsRemembersAndCompletesLines(t *testing.T) {
	b := real.Barnabas(t, 1)
	p := sit(t, "zookeeper-shell", b.Keeper)
	prompt := func(n int) string { return fmt.Sprintf("[zk: %s(CONNECTED) %d] ", b.Keeper, n) }
	p.sees(prompt(0))
	p.types("ls /brok\t\t\t") // the node, its slash, then what is below
	p.sees("/brokers/ids")
	p.types("id\t\r")
	p.sees("[1]")
	p.sees(prompt(1))
	p.types("gt /controller_epoch" + strings.Repeat(left, len("t /controller_epoch")) + "e\r")
	p.sees("1\r\n")
	p.sees(prompt(2))
	p.types(up + up + "\r")
	p.sees("ls /brokers/ids")
	p.sees("[1]")
	p.sees(prompt(3))
	p.types("history\r")
	p.sees("1 - get /controller_epoch")
	p.sees(prompt(4))
	p.types("create /seen a\r")
	p.sees("Created /seen")
	p.types("get -w /seen\r")
	p.sees("a\r\n")
	p.types("set /seen b\r")
	p.sees("WatchedEvent state:SyncConnected type:NodeDataChanged path:/seen")
	p.types("redo 1\r")
	p.sees("1\r\n")
	p.types("deleteall /seen\r")
	p.sees("Are you sure?")
	p.types("no\r")
	p.sees("Nothing was done.")
	p.types(ctrlD)
	p.ends(0)
}

func TestCtrlCEndsACommandThatWaits(t *testing.T) {
	b := real.Barnabas(t, 1)
	for _, args := range [][]string{
		{"console-consumer", "--topic", "c", "--group", "g"}, {"console-producer", "--topic", "c"}, {"topics", "--delete", "--topic", "c"},
	} {
		p := sit(t, append(args, "--bootstrap-server", b.Addr)...)
		switch args[0] {
		case "console-consumer": // it makes the topic
			real.Until(t, 30*time.Second, "the group", func() bool {
				out := real.Run(t, time.Minute, exec.Command(real.Binary(t), "consumer-groups", "--bootstrap-server", b.Addr, "--list", "--state"))
				return strings.Contains(out, "Stable")
			})
		case "console-producer":
			p.sees(">")
			p.types("line\r")
			p.sees("\r\n>")
		default:
			p.sees("Are you sure?")
		}
		p.types(ctrlC)
		p.ends(130)
	}
	out := real.Run(t, time.Minute, exec.Command(real.Binary(t), "consumer-groups", "--bootstrap-server", b.Addr, "--list", "--state"))
	if !strings.Contains(out, "Empty") {
		t.Errorf("the consumer did not leave its group: %s", out)
	}
	if out := real.Run(t, time.Minute, exec.Command(real.Binary(t), "get-offsets", "--bootstrap-server", b.Addr, "--topic", "c")); out != "c:0:1\n" {
		t.Errorf("what was typed before Ctrl-C: %q", out)
	}
}
