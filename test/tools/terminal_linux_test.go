package tools

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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

// screen is all that was shown.
func (p *person) screen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.String()
}

// sees waits until the screen shows s after what was seen before.
func (p *person) sees(s string) {
	p.t.Helper()
	defer func() {
		if p.t.Failed() {
			p.t.Logf("the screen: %q", p.screen()[p.read:])
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
			p.t.Errorf("%s exits with %d, want %d; the screen: %q", p.cmd.Args[1], got, status, p.screen())
		}
	case <-time.After(30 * time.Second):
		p.t.Fatalf("%s does not end; the screen: %q", p.cmd.Args[1], p.screen())
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
	p.sees(prompt(9))
	p.types(ctrlD)
	p.ends(1) // as ZooKeeper's: the status of the last command
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

// Whatever destroys something asks first, and does nothing without a yes.
func TestNothingIsDestroyedUnasked(t *testing.T) {
	c := newCommands(t)
	c.run("topics --bootstrap-server @B --create --topic a --partitions 1", "")
	c.run("console-producer --bootstrap-server @B --topic a", "one\n")
	c.run("consumer-groups --bootstrap-server @B --reset-offsets --group g --topic a --to-latest --execute", "")
	c.run("console-consumer --zookeeper @Z --topic a --group old --from-beginning --max-messages 1", "")
	c.file("one.json", `{"version":1,"partitions":[{"topic":"a","partition":0,"offset":1}]}`)
	state := func() string {
		return c.run("get-offsets --bootstrap-server @B --topic a --time earliest", "") + c.run("consumer-groups --bootstrap-server @B --describe --group g", "") +
			c.run("zookeeper-shell @Z ls -R /consumers/old/offsets", "")
	}
	before := state()
	for _, line := range []string{
		"delete-records --bootstrap-server @B --offset-json-file @D/one.json",
		"topics --bootstrap-server @B --empty --topic a",
		"topics --bootstrap-server @B --delete --topic a", "topics --zookeeper @Z --delete --topic a",
		"consumer-groups --bootstrap-server @B --delete-offsets --group g --topic a",
		"consumer-groups --bootstrap-server @B --delete --group g",
		"leader-election --bootstrap-server @B --election-type unclean --topic a --partition 0",
		"zookeeper-shell @Z deleteall /consumers/old",
		"transactions --bootstrap-server @B abort --topic a --partition 0 --producer-id 1 --producer-epoch 0 --coordinator-epoch 0",
		"console-consumer --zookeeper @Z --topic a --group old --delete-consumer-offsets",
	} {
		p := sit(t, c.args(line)...)
		p.sees("Are you sure? Type yes: ")
		p.types("n\r")
		p.sees("Nothing was done.")
		p.ends(1)
		if now := state(); now != before {
			t.Fatalf("%s changed\n%sto\n%s", line, before, now)
		}
	}
	p := sit(t, c.args("topics --bootstrap-server @B --empty --topic a")...)
	p.sees("Are you sure? Type yes: ")
	p.types("yes\r")
	p.sees("Emptied topic a.")
	p.ends(0)
	p = sit(t, c.args("topics --bootstrap-server @B --delete --topic a --yes")...)
	p.ends(0)
}

// Long work shows how far it is.
func TestLongWorkHasABar(t *testing.T) {
	b := real.Barnabas(t, 1)
	c := commands{t, b.Addr, b.Keeper, t.TempDir()}
	p := sit(t, c.args("producer-perf-test --topic a --num-records 2000 --record-size 10 --throughput 1000 --producer-props bootstrap.servers=@B")...)
	p.sees("] ")
	p.sees(" of 2000 records sent")
	p.sees("2000 records sent, ")
	p.ends(0)

	// Enough to check that it takes a while: the same folder often.
	c.run("producer-perf-test --topic a --num-records 200000 --record-size 500 --throughput -1 --producer-props bootstrap.servers=@B", "")
	const often = 20
	folders := strings.TrimSuffix(strings.Repeat(filepath.Join(b.Dir, "a-0")+",", often), ",")
	p = sit(t, "check-log", "--log-dirs", folders)
	p.sees("] ")
	p.sees(" bytes checked")
	p.sees(fmt.Sprint(often, " partitions, "))
	p.ends(0)
}
