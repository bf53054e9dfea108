package real

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var built atomic.Bool

var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "barnabas-bin-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "barnabas")
	out, err := exec.Command("go", "build", "-o", path, "barnabas/cmd/barnabas").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// Binary returns the path of a barnabas binary built from this tree, built
// once a test run.
func Binary(t testing.TB) string {
	t.Helper()
	built.Store(true)
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Main is a TestMain's body: it runs the tests and removes the binary that they
// built.
func Main(m *testing.M) {
	code := m.Run()
	if built.Load() {
		if path, err := binary(); err == nil {
			os.RemoveAll(filepath.Dir(path))
		}
	}
	os.Exit(code)
}

// BarnabasBroker is a running barnabas broker.
type BarnabasBroker struct {
	*Process
	Addr   string // host:port of its PLAINTEXT listener, or what {addr} stands for in its properties
	Keeper string // host:port of its embedded ZooKeeper, if it has one
	Dir    string // log.dirs

	binary string
	args   []string
	ready  func(addr string) bool
}

// Barnabas starts a broker on its embedded ZooKeeper, or on the connect string
// given as the property zookeeper.connect, and waits until it answers.
// Properties are name=value; {addr} in a value stands for Addr.
func Barnabas(t testing.TB, id int, properties ...string) *BarnabasBroker {
	t.Helper()
	return BarnabasFrom(t, Binary(t), id, properties...)
}

// BarnabasFrom is Barnabas with another binary.
func BarnabasFrom(t testing.TB, binary string, id int, properties ...string) *BarnabasBroker {
	t.Helper()
	dir := t.TempDir()
	b := &BarnabasBroker{binary: binary, Addr: "127.0.0.1:" + FreePort(t), Dir: filepath.Join(dir, "data")}
	defaults := []string{fmt.Sprintf("broker.id=%d", id), "listeners=PLAINTEXT://" + b.Addr, "log.dirs=" + b.Dir}
	embedded := true
	for _, p := range properties {
		embedded = embedded && !strings.HasPrefix(p, "zookeeper.connect=")
	}
	if embedded {
		b.Keeper = "127.0.0.1:" + FreePort(t)
		defaults = append(defaults, "keeper.listen="+b.Keeper, "keeper.dir="+filepath.Join(dir, "keeper"))
	}
	b.args = []string{"start"}
	properties, b.ready = withAddr(b.Addr, properties)
	for _, p := range append(defaults, properties...) {
		b.args = append(b.args, "--override", p)
	}
	b.Restart(t)
	return b
}

// Launch starts the broker again with the same properties and waits for
// nothing.
func (b *BarnabasBroker) Launch(t testing.TB) {
	t.Helper()
	b.Process = Start(t, "barnabas", exec.Command(b.binary, b.args...))
}

// Restart is Launch, and waits until the broker answers.
func (b *BarnabasBroker) Restart(t testing.TB) {
	t.Helper()
	b.Launch(t)
	b.UntilRunning(2*time.Minute, "answers", func() bool { return b.ready(b.Addr) })
}
