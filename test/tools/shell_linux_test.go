package tools

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"barnabas/test/real"
)

// What needs a server of its own: ZooKeeper's shell and ours do the same below
// two chroots of one Apache ZooKeeper that knows nodes with a time to live, and
// ours does so on the embedded server, which always knows them.
func TestTheShellAnswersAsZooKeepersBelowAChroot(t *testing.T) {
	input := strings.Join([]string{
		"ls /", "create /a one", "create -t 100000 /a/short x", "create -t 100000 -s /a/short- x", "create -c /a/box", "create -e /mine", "get -s /a/short",
		"getEphemerals", "getAllChildrenNumber /", "getAllChildrenNumber /a", "config -c",
		"addWatch /a", "addWatch -m PERSISTENT /", "set /a two", "create /a/b", "removewatches /a", "removewatches /", "set /a three",
		"setquota -n 5 /a", "listquota /a", "ls -R /", "delquota /a", "deleteall /a", "ls /", "get -w /mine", "delete /mine", "quit",
	}, "\n") + "\n"
	run := func(cmd *exec.Cmd, server, chroot string) []string {
		cmd.Stdin = strings.NewReader(input)
		p := place{broker: "no broker", zookeeper: server + chroot, dir: "no folder"}
		got := p.run(t, step{line: "zookeeper-shell", mark: "+", input: []string{input}}, cmd)
		for i, line := range got.out {
			got.out[i] = strings.ReplaceAll(line, "["+chroot, "[@CHROOT")
		}
		return slices.DeleteFunc(got.out, func(line string) bool { return strings.HasPrefix(line, "Connecting to") })
	}
	zk := real.StartZooKeeper(t, "-Dzookeeper.extendedTypesEnabled=true").Addr
	real.Run(t, time.Minute, exec.Command(real.Binary(t), "zookeeper-shell", zk, "create", "/theirs")) // which theirs does not
	theirs := run(real.Java(t, "3.9.1", "org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka", "-server", zk+"/theirs"), zk, "/theirs")
	if len(theirs) < 40 {
		t.Fatalf("ZooKeeper's shell wrote %q", theirs)
	}
	for _, server := range []string{zk, real.Barnabas(t, 1).Keeper} {
		ours := run(exec.Command(real.Binary(t), "zookeeper-shell", server+"/ours"), server, "/ours")
		if !slices.Equal(ours, theirs) {
			t.Errorf("ZooKeeper's shell wrote\n  %s\nours\n  %s", strings.Join(theirs, "\n  "), strings.Join(ours, "\n  "))
		}
	}
}

// A refused identity ends the session.
func TestTheShellSaysThatASessionIsOver(t *testing.T) {
	for name, server := range map[string]string{"zookeeper": real.ZooKeeper(t), "barnabas": real.Barnabas(t, 1).Keeper} {
		cmd := exec.Command(real.Binary(t), "zookeeper-shell", server)
		cmd.Stdin = strings.NewReader("addauth foo bar\nsync /\nsync /\nls /\n")
		out := real.Run(t, time.Minute, cmd)
		out = strings.ReplaceAll(out, "\nWATCHER::\n\nWatchedEvent state:AuthFailed type:None path:null\n", "") // it comes when it likes
		if !strings.HasSuffix(out, "Sync has failed. rc=-115\nNot connected\nNot connected\n") {
			t.Errorf("%s: %q", name, out)
		}
	}
}

// Watches that stay and identities are there again after a lost connection.
func TestTheShellKeepsItsSessionOverALostConnection(t *testing.T) {
	zk := real.StartZooKeeper(t)
	for _, node := range []string{"/kept", "/once"} {
		real.Run(t, time.Minute, exec.Command(real.Binary(t), "zookeeper-shell", zk.Addr, "create", node))
	}
	p := sit(t, "zookeeper-shell", zk.Addr)
	p.sees("(CONNECTED) 0] ")
	p.types("addWatch /kept\r")
	p.sees(" 1] ")
	p.types("get -w /once\r")
	p.sees(" 2] ")
	p.types("removewatches /once -d\r")
	p.sees("DataWatchRemoved")
	p.types("addauth digest u:p\r")
	p.sees(" 4] ")
	zk.Stop()
	p.sees("state:Disconnected")
	zk.Restart(t)
	p.sees("state:SyncConnected")
	p.types("whoami\r")
	p.sees("digest: u")
	real.Run(t, time.Minute, exec.Command(real.Binary(t), "zookeeper-shell", zk.Addr, "create", "/kept/below"))
	p.sees("NodeCreated path:/kept/below")
	p.types("removewatches /kept\r")
	p.sees("PersistentWatchRemoved")
	real.Run(t, time.Minute, exec.Command(real.Binary(t), "zookeeper-shell", zk.Addr, "set", "/once", "x"))
	p.types("get /once\r")
	p.sees("x\r\n")
	p.types("quit\r")
	p.ends(0)
	if shown := p.screen(); strings.Contains(shown, "NodeDataChanged") {
		t.Errorf("a watch that was removed fired: %q", shown)
	}
}
