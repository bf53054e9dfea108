package bench

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestProduceLarge compares the broker's CPU per million records of 1 KiB,
// acks=all, on eight partitions, and what memory the brokers have after it.
func TestProduceLarge(t *testing.T) {
	const records, size, partitions = 500_000, 1024, 8
	ours, kafka := both(t)
	kinds := []struct {
		name, goal string
		codec      kgo.CompressionCodec
	}{
		{"produce 1 KiB", "0.8 s", kgo.NoCompression()},
		{"produce 1 KiB lz4", "0.5 s and at most 0.3", kgo.Lz4Compression()},
	}
	for i, kind := range kinds {
		cpu, rate := map[string]series{}, map[string]series{}
		for round := range rounds + 1 {
			for _, s := range []side{ours, kafka} {
				topic := fmt.Sprintf("large-%d-%d", i, round)
				createTopic(t, s.addr, topic, partitions)
				cool := warmMemory(t, 2*records*size, 1<<30)
				f := measure(s.pid, records, func() {
					produce(t, s.addr, topic, records, size, kgo.ProducerBatchCompression(kind.codec), kgo.MaxBufferedRecords(20_000))
				})
				cool()
				deleteTopic(t, s.addr, topic)
				if round == 0 {
					continue // warm-up
				}
				cpu[s.name] = append(cpu[s.name], f.cpu)
				rate[s.name] = append(rate[s.name], f.rate/1000)
			}
		}
		report(t, kind.name+": broker CPU a million records", "s", cpu[ours.name], cpu[kafka.name], kind.goal)
		report(t, kind.name+": thousand records a second", "k/s", rate[ours.name], rate[kafka.name], "reported")
	}
	fmt.Printf("memory after it: barnabas %.1f MB, kafka %.1f MB   goal 80 MB\n", residentMB(ours.pid), residentMB(kafka.pid))
}
