package keeper

import (
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"barnabas/test/real"
)

// equalOutput runs a program on both servers and wants it to print the same.
func equalOutput(t *testing.T, run func(t *testing.T, addr string) string) {
	t.Helper()
	var out []string
	onBoth(t, func(t *testing.T, addr string) { out = append(out, run(t, addr)) })
	if t.Failed() || len(out) < 2 {
		return
	}
	if out[0] != out[1] {
		t.Errorf("on Apache\n%s\non Barnabas\n%s", out[0], out[1])
	}
	t.Log(out[1])
}

func TestCuratorsRecipesWork(t *testing.T) {
	jars := real.Curator(t)
	classes := t.TempDir()
	real.Run(t, 2*time.Minute, exec.Command("javac", "-cp", jars, "-d", classes, filepath.Join("testdata", "curator", "Recipes.java")))
	equalOutput(t, func(t *testing.T, addr string) string {
		return real.Run(t, 3*time.Minute, exec.Command("java", "-Xmx192m", "-XX:TieredStopAtLevel=1", "-cp", classes+":"+jars, "Recipes", addr))
	})
}

// CMAK's caches, own nodes and writes, with a broker there: Apache Kafka on each
// server, and Barnabas on its own.
func TestCMAKsWaysWork(t *testing.T) {
	jars := real.Curator212(t)
	classes := t.TempDir()
	real.Run(t, 2*time.Minute, exec.Command("javac", "-cp", jars, "-d", classes, filepath.Join("testdata", "cmak", "Cmak.java")))
	cmak := func(t *testing.T, addr string) string {
		return real.Run(t, 3*time.Minute, exec.Command("java", "-Xmx192m", "-XX:TieredStopAtLevel=1", real.Log4j(t), "-cp", classes+":"+jars, "Cmak", addr, "1"))
	}
	var want string
	equalOutput(t, func(t *testing.T, addr string) string {
		real.Kafka(t, "3.9.1", 1, addr)
		want = cmak(t, addr)
		return want
	})
	if got := cmak(t, real.Barnabas(t, 1).Keeper); got != want {
		t.Errorf("with Apache Kafka\n%s\nwith Barnabas\n%s", want, got)
	}
}

func TestKazoosRecipesWork(t *testing.T) {
	equalOutput(t, func(t *testing.T, addr string) string {
		return real.Run(t, 3*time.Minute, real.Python(t, filepath.Join("testdata", "kazoo_recipes.py"), addr))
	})
}

// zkCli's commands, one after the other. What differs at each run is masked.
func TestZkCliWorks(t *testing.T) {
	const script = `create /a data
create -s /a/s- x
create -e /a/e y
create -c /a/c
create -t 60000 /a/t z
ls /a
ls -R /a
ls -s /a
get -s /a
set /a other
set -v 0 /a again
stat /a
get /none
addWatch -m PERSISTENT /a
set /a third
removewatches /a
addauth digest u:p
create /b secret auth:u:cdrwa
getAcl /b
setAcl /b world:anyone:r
getAcl -s /b
setquota -n 5 /a
setquota -b 100 /a
listquota /a
delquota /a
getAllChildrenNumber /a
getEphemerals /a
whoami
sync /a
version
delete -v 7 /a/s-0000000000
deleteall /a
ls /
config
reconfig -remove 1
quit
`
	masks := []*regexp.Regexp{regexp.MustCompile(`(?m)^(c|m)time = .*$`), regexp.MustCompile(`0x[0-9a-f]{8,}`), regexp.MustCompile(`(?m)^.*(INFO|WARN|Exiting JVM|log4j|SLF4J|Connecting to|Welcome|JLine|WATCHER|WatchedEvent).*\n`)}
	equalOutput(t, func(t *testing.T, addr string) string {
		cmd := real.Java(t, "3.9.1", "org.apache.zookeeper.ZooKeeperMain", "-Dzookeeper.log.threshold=OFF", "--", "-server", addr)
		cmd.Stdin = strings.NewReader(script)
		stdout, stderr, err := real.Try(t, 2*time.Minute, cmd)
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) { // it ends with 1 when the last command failed
			t.Fatal(err, stdout, stderr)
		}
		for _, m := range masks {
			stdout = m.ReplaceAllString(stdout, "")
			stderr = m.ReplaceAllString(stderr, "")
		}
		return stdout + "---- stderr\n" + stderr
	})
}
