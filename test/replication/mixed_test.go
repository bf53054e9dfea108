package replication

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"barnabas/test/load"
	"barnabas/test/real"
)

// member is a broker of a mixed cluster.
type member interface {
	address() string
	folder() string
	kill()
	stop()
	restart()
}

type barnabas struct {
	t *testing.T
	*real.BarnabasBroker
}

func (b barnabas) address() string { return b.Addr }
func (b barnabas) folder() string  { return b.Dir }
func (b barnabas) kill()           { b.Kill() }
func (b barnabas) stop()           { b.Stop() }
func (b barnabas) restart()        { b.Restart(b.t) }

// apache is an Apache Kafka broker that can be killed and started again.
type apache struct {
	t         *testing.T
	version   string
	id        int
	addr, dir string
	file      string // server.properties
	process   *real.Process
}

func (k *apache) address() string { return k.addr }
func (k *apache) folder() string  { return k.dir }
func (k *apache) kill()           { k.process.Kill() }
func (k *apache) stop()           { k.process.Stop() }

func (k *apache) restart() {
	k.t.Helper()
	k.process = real.Start(k.t, fmt.Sprintf("kafka-%s-%d", k.version, k.id), real.Java(k.t, k.version, "kafka.Kafka", "-Xmx384m", "--", k.file))
	k.process.UntilRunning(5*time.Minute, "started", func() bool {
		return strings.Contains(k.process.Output(), "started (kafka.server.KafkaServer)")
	})
}

func startApache(t *testing.T, version string, id int, zk string, properties ...string) *apache {
	t.Helper()
	dir := t.TempDir()
	k := &apache{t: t, version: version, id: id, addr: "127.0.0.1:" + real.FreePort(t), dir: filepath.Join(dir, "data"), file: filepath.Join(dir, "server.properties")}
	lines := append([]string{fmt.Sprintf("broker.id=%d", id), "listeners=PLAINTEXT://" + k.addr, "log.dirs=" + k.dir, "zookeeper.connect=" + zk}, properties...)
	if err := os.WriteFile(k.file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	k.restart()
	return k
}

// common are the properties of every broker of a mixed cluster.
func common(ibp string) []string {
	return []string{"inter.broker.protocol.version=" + ibp, "zookeeper.session.timeout.ms=6000", "auto.create.topics.enable=false",
		"offsets.topic.replication.factor=1", "group.initial.rebalance.delay.ms=0"}
}

// Two clusters at a time: most of it is waiting.
func TestMixedClusterLosesNothing(t *testing.T) {
	cases := []struct{ version, ibp string }{{"3.9.1", "3.9"}, {"2.8.2", "2.8"}}
	if load.Soak() {
		cases = append(cases, []struct{ version, ibp string }{{"3.9.1", "2.8"}, {"2.8.2", "2.7-IV0"}, {"2.8.2", "2.4"}}...)
	}
	for _, c := range cases {
		for _, controller := range []string{"barnabas", "kafka"} {
			t.Run(fmt.Sprintf("%s-ibp-%s-%s-is-controller", c.version, c.ibp, controller), func(t *testing.T) {
				t.Parallel()
				zk := real.ZooKeeper(t)
				members := map[int]member{}
				start := func(id int) {
					if id == 2 {
						members[id] = startApache(t, c.version, id, zk, common(c.ibp)...)
					} else {
						members[id] = barnabas{t, real.Barnabas(t, id, append(common(c.ibp), "zookeeper.connect="+zk)...)}
					}
				}
				order := []int{1, 2, 3}
				if controller == "kafka" {
					order = []int{2, 1, 3}
				}
				var seeds, dirs []string
				for _, id := range order {
					start(id)
					seeds, dirs = append(seeds, members[id].address()), append(dirs, members[id].folder())
				}
				a := load.NewAdmin(t, seeds)
				const partitions = 3
				load.CreateTopic(t, a, "t", partitions, []int32{1, 2, 3}, atLeastTwo)
				load.UntilInSync(t, a, "t", partitions, 3)
				l := load.Start(t, "t", partitions, seeds)
				l.More(1000)
				for _, victim := range order { // the controller first
					l.LongestGap()
					members[victim].kill()
					l.More(2000)
					t.Logf("broker %d killed: longest gap %v", victim, l.LongestGap().Round(time.Millisecond))
					members[victim].restart()
					load.UntilInSync(t, a, "t", partitions, 3)
					l.More(500)
				}
				for _, id := range order {
					l.LongestGap()
					members[id].stop()
					l.More(500)
					t.Logf("broker %d stopped: longest gap %v", id, l.LongestGap().Round(time.Millisecond))
					members[id].restart()
					load.UntilInSync(t, a, "t", partitions, 3)
					l.More(100)
				}
				l.Finish()
				load.UntilEqual(t, dirs, "t", partitions)
			})
		}
	}
}
