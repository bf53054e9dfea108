package cluster

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"barnabas/test/load"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kgo"
)

// counter stands between clients and a broker's listener and counts what the
// broker sends.
type counter struct {
	net.Listener
	sent atomic.Int64
	all  sync.WaitGroup
}

func startCounter(t *testing.T, to string) *counter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{Listener: l}
	c.all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			c.all.Go(func() { c.serve(client, to) })
		}
	})
	t.Cleanup(func() { l.Close(); c.all.Wait() })
	return c
}

func (c *counter) serve(client net.Conn, to string) {
	defer client.Close()
	broker, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer broker.Close()
	c.all.Go(func() {
		_, _ = io.Copy(broker, client)
		broker.Close()
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := broker.Read(buffer)
		c.sent.Add(int64(n))
		if _, w := client.Write(buffer[:n]); err != nil || w != nil {
			return
		}
	}
}

// Consumers with client.rack read from the replica in their rack, those without
// from the leader (KIP-392): what each broker sends to clients tells.
func TestConsumersReadFromTheReplicaInTheirRack(t *testing.T) {
	server := real.ZooKeeper(t)
	var counters []*counter
	var seeds, inside []string
	for id := 1; id <= 3; id++ {
		client := "127.0.0.1:" + real.FreePort(t)
		c := startCounter(t, client)
		b := real.Barnabas(t, id, "zookeeper.connect="+server, "broker.rack=rack"+strconv.Itoa(id),
			"replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector",
			"listener.security.protocol.map=INSIDE:PLAINTEXT,CLIENT:PLAINTEXT", "inter.broker.listener.name=INSIDE",
			"listeners=INSIDE://{addr},CLIENT://"+client, "advertised.listeners=INSIDE://{addr},CLIENT://"+c.Addr().String())
		counters, seeds, inside = append(counters, c), append(seeds, c.Addr().String()), append(inside, b.Addr)
	}
	a := load.NewAdmin(t, inside)
	load.CreateTopic(t, a, "t", 1, []int32{1, 2, 3}, nil) // broker 1 leads
	const records, size = 2000, 1000
	producer, err := kgo.NewClient(kgo.SeedBrokers(inside...), kgo.DefaultProduceTopic("t"), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	for i := range records {
		producer.Produce(t.Context(), kgo.StringRecord(fmt.Sprintf("%d %s", i, strings.Repeat("x", size))), nil)
	}
	if err := producer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	load.UntilInSync(t, a, "t", 1, 3)

	consumers := map[string]func(rack string) int{ // each returns how many records it got
		"franz-go": func(rack string) int {
			client, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.Rack(rack), kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
				kgo.FetchMaxBytes(100_000), kgo.FetchMaxPartitionBytes(100_000))
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			n := 0
			for n < records {
				n += client.PollFetches(t.Context()).NumRecords()
			}
			return n
		},
		"kcat": func(rack string) int {
			out := real.Run(t, time.Minute, real.Kcat(t, "-b", seeds[0], "-C", "-t", "t", "-o", "beginning", "-c", strconv.Itoa(records), "-f", "%o\n",
				"-X", "client.rack="+rack, "-X", "fetch.message.max.bytes=100000", "-X", "fetch.wait.max.ms=50"))
			return strings.Count(out, "\n")
		},
		"Java 3.9.1": func(rack string) int {
			out := real.Run(t, time.Minute, real.Java(t, "3.9.1", "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", seeds[0], "--topic", "t",
				"--from-beginning", "--max-messages", strconv.Itoa(records), "--consumer-property", "client.rack="+rack,
				"--consumer-property", "max.partition.fetch.bytes=100000", "--consumer-property", "group.id=g"+rack))
			return strings.Count(out, "\n")
		},
	}
	for name, consume := range consumers {
		for rack, from := range map[string]int{"rack1": 1, "rack2": 2, "rack3": 3, "elsewhere": 1} {
			var before [3]int64
			for i, c := range counters {
				before[i] = c.sent.Load()
			}
			if got := consume(rack); got != records {
				t.Errorf("%s in %s: %d of %d records", name, rack, got, records)
			}
			for i, c := range counters {
				sent := c.sent.Load() - before[i]
				if near := i+1 == from; near && sent < records*size || !near && sent > records*size/4 {
					t.Errorf("%s in %s: broker %d sent %d bytes of %d", name, rack, i+1, sent, records*size)
				}
			}
		}
	}
}
