package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"barnabas/test/real"
)

const rounds = 5

func TestMain(m *testing.M) {
	runFloor()
	real.Main(m)
}

// side is one of the two brokers that are compared.
type side struct {
	name string
	addr string
	pid  int
	dir  string // log.dirs
}

// both starts the two brokers beside each other.
func both(t *testing.T) (ours, kafka side) {
	b := real.Barnabas(t, 1)
	k := real.KafkaFullSize(t, "3.9.1", 1, real.ZooKeeper(t), "inter.broker.protocol.version=3.9")
	return side{"barnabas", b.Addr, b.PID(), b.Dir}, side{"kafka 3.9.1", k.Addr, k.PID(), k.Dir}
}

func report(t *testing.T, what, unit string, ours, kafka series, goal string) {
	t.Helper()
	fmt.Printf("%-44s barnabas %s   kafka %s %s   ratio %.3f   goal %s\n", what, ours, kafka, unit, ours.median()/kafka.median(), goal)
}

// TestProduceAndConsume compares the broker's CPU per million records of 100
// bytes, acks=all, one partition. Beside it is what receiving the same bytes into a
// file, and sending it, cost without a broker.
func TestProduceAndConsume(t *testing.T) {
	// A process's CPU is told in hundredths of a second, so each figure is taken
	// over enough records for that not to matter.
	const records, size, passes = 5_000_000, 100, 4
	ours, kafka := both(t)
	cpu := map[string]series{}
	rate := map[string]series{}
	var receive, send series
	for round := range rounds + 1 {
		topic := fmt.Sprintf("bench-%d", round)
		for _, s := range []side{ours, kafka} {
			createTopic(t, s.addr, topic, 1)
			cool := warmMemory(t, 3*records*size, 256<<20)
			p := measure(s.pid, records, func() { produce(t, s.addr, topic, records, size) })
			cool()
			c := measure(s.pid, passes*records, func() {
				for range passes {
					consume(t, s.addr, topic, records)
				}
			})
			if round == 0 {
				continue // warm-up
			}
			cpu["produce "+s.name] = append(cpu["produce "+s.name], p.cpu)
			cpu["consume "+s.name] = append(cpu["consume "+s.name], c.cpu)
			rate["produce "+s.name] = append(rate["produce "+s.name], p.rate/1000)
			rate["consume "+s.name] = append(rate["consume "+s.name], c.rate/1000)
		}
		if round == 0 {
			continue
		}
		file := filepath.Join(ours.dir, topic+"-0", "00000000000000000000.log")
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		sender := startFloor(t, "send", file)
		send = append(send, measure(sender.pid, passes*records, func() {
			for range passes {
				sender.take(t, int(info.Size()))
			}
		}).cpu)
		receiver := startFloor(t, "receive", filepath.Join(t.TempDir(), "received"))
		cool := warmMemory(t, 3*records*size, 1<<30)
		receive = append(receive, measure(receiver.pid, records, func() { receiver.give(t, int(info.Size())) }).cpu)
		cool()
	}
	for _, what := range []string{"produce", "consume"} {
		report(t, what+" 100 B: broker CPU a million records", "s", cpu[what+" "+ours.name], cpu[what+" "+kafka.name], "at most 0.25")
		report(t, what+" 100 B: thousand records a second", "k/s", rate[what+" "+ours.name], rate[what+" "+kafka.name], "reported")
	}
	floor := func(what string, cost series, of string) {
		fmt.Printf("%-44s %s s   ratio %.3f   what that costs without a broker\n", what, cost, cost.median()/cpu[of+" "+kafka.name].median())
	}
	floor("produce 100 B: receive and write", receive, "produce")
	floor("consume 100 B: sendfile", send, "consume")
	fmt.Printf("memory after it: barnabas %.1f MB, kafka %.1f MB\n", residentMB(ours.pid), residentMB(kafka.pid))
}

// TestStartAndIdle measures from exec on an empty folder to the first answer to
// Metadata, and the memory of a broker that does nothing.
func TestStartAndIdle(t *testing.T) {
	binary := real.Binary(t)
	var start, memory series
	for range rounds {
		dir := t.TempDir()
		addr, zk := "127.0.0.1:"+real.FreePort(t), "127.0.0.1:"+real.FreePort(t)
		cmd := exec.Command(binary, "start", "--override", "listeners=PLAINTEXT://"+addr, "--override", "keeper.listen="+zk,
			"--override", "log.dirs="+filepath.Join(dir, "data"), "--override", "keeper.dir="+filepath.Join(dir, "keeper"))
		began := time.Now()
		p := real.Start(t, "barnabas", cmd)
		for !real.Ready(addr) {
			if time.Since(began) > 30*time.Second {
				t.Fatal("no answer to Metadata within 30 s")
			}
		}
		start = append(start, float64(time.Since(began).Microseconds())/1000)
		settle, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		<-settle.Done()
		cancel()
		memory = append(memory, residentMB(p.PID()))
		p.Stop()
	}
	fmt.Printf("%-44s %s ms   goal 30 ms\n", "exec to first metadata answer, empty folder", start)
	fmt.Printf("%-44s %s MB   goal 25 MB\n", "resident when idle", memory)
	if os.Getenv("BARNABAS_BENCH_KAFKA_START") != "" {
		zk := real.ZooKeeper(t)
		began := time.Now()
		k := real.KafkaFullSize(t, "3.9.1", 1, zk)
		fmt.Printf("%-44s %.0f ms, %.1f MB\n", "the same of kafka 3.9.1", float64(time.Since(began).Milliseconds()), residentMB(k.PID()))
	}
}
