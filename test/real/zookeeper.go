package real

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ZooKeeperServer is a running ZooKeeper: Apache's 3.8, or the embedded one
// served alone.
type ZooKeeperServer struct {
	*Process
	Addr    string // host:port
	conf    string
	command func(t testing.TB) *exec.Cmd
}

// ZooKeeper starts an Apache ZooKeeper 3.8 server with an empty tree and
// returns its host:port.
func ZooKeeper(t testing.TB) string {
	t.Helper()
	return StartZooKeeper(t).Addr
}

// StartZooKeeper is ZooKeeper for a test that stops and restarts it. tickTime
// is 2 s, so sessions may be 4 to 40 s long; further lines of zoo.cfg replace
// the defaults. A line that begins with -D is a flag for the JVM.
func StartZooKeeper(t testing.TB, lines ...string) *ZooKeeperServer {
	t.Helper()
	port := FreePort(t)
	return StartZooKeeperAt(t, "127.0.0.1", port, func(cmd *exec.Cmd) *exec.Cmd { return cmd }, lines...)
}

// StartZooKeeperAt is StartZooKeeper on an address, run by what in makes of its
// command.
func StartZooKeeperAt(t testing.TB, host, port string, in func(*exec.Cmd) *exec.Cmd, lines ...string) *ZooKeeperServer {
	t.Helper()
	Jars(t, "3.9.1")
	dir := t.TempDir()
	z := &ZooKeeperServer{Addr: net.JoinHostPort(host, port), conf: filepath.Join(dir, "zoo.cfg")}
	conf := []string{"dataDir=" + dir, "clientPort=" + port, "clientPortAddress=" + host, "maxClientCnxns=0",
		"admin.enableServer=false", "4lw.commands.whitelist=*", "tickTime=2000"}
	var flags []string
	for _, line := range lines {
		if strings.HasPrefix(line, "-D") {
			flags = append(flags, line)
		} else {
			conf = append(conf, line)
		}
	}
	if err := os.WriteFile(z.conf, []byte(strings.Join(conf, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	args := append(flags, "--", z.conf)
	z.command = func(t testing.TB) *exec.Cmd {
		return in(Java(t, "3.9.1", "org.apache.zookeeper.server.quorum.QuorumPeerMain", args...))
	}
	z.Restart(t)
	return z
}

// StartKeeper starts the embedded ZooKeeper alone, as barnabas zookeeper does.
func StartKeeper(t testing.TB) *ZooKeeperServer {
	t.Helper()
	return StartKeeperAt(t, "127.0.0.1", FreePort(t), func(cmd *exec.Cmd) *exec.Cmd { return cmd })
}

// StartKeeperAt is to StartKeeper what StartZooKeeperAt is to StartZooKeeper.
func StartKeeperAt(t testing.TB, host, port string, in func(*exec.Cmd) *exec.Cmd) *ZooKeeperServer {
	t.Helper()
	z, dir := &ZooKeeperServer{Addr: net.JoinHostPort(host, port)}, t.TempDir()
	z.command = func(t testing.TB) *exec.Cmd {
		return in(exec.Command(Binary(t), "zookeeper", "--listen", z.Addr, "--dir", dir))
	}
	z.Restart(t)
	return z
}

// Config returns the zoo.cfg of Apache's.
func (z *ZooKeeperServer) Config() string { return z.conf }

// Restart starts the server again on its folder and port.
func (z *ZooKeeperServer) Restart(t testing.TB) {
	t.Helper()
	z.Process = Start(t, "zookeeper", z.command(t))
	z.UntilRunning(3*time.Minute, "ruok", func() bool { return FourLetterWord(z.Addr, "ruok") == "imok" })
}

// FourLetterWord sends one of ZooKeeper's four-letter words and returns the
// answer, or "" if there is none.
func FourLetterWord(addr, word string) string {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return ""
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(c, word); err != nil {
		return ""
	}
	b, _ := io.ReadAll(c) // what came before an error is the answer
	return string(b)
}
