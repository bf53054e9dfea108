package groups

import (
	"fmt"
	"strings"
	"testing"

	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestForeignBytesInTheOffsetsTopicAreSkipped writes to __consumer_offsets what
// no coordinator knows: when the broker starts again it says so, and serves the
// rest.
func TestForeignBytesInTheOffsetsTopicAreSkipped(t *testing.T) {
	b := real.Barnabas(t, 1, "offsets.topic.num.partitions=1")
	topic := raw.NewTopic(t, b.Addr, 2)
	raw.Coordinated(t, b.Addr, "mine")
	c := raw.Dial(t, b.Addr)
	commitOffset := func(partition int32) {
		t.Helper()
		if code := commit(c, commitRequest(6, "mine", topic, partition, 40+int64(partition), "")); code != 0 {
			t.Fatalf("commit: %d", code)
		}
	}
	commitOffset(0)
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr), kgo.ClientID("__admin_client"), kgo.DefaultProduceTopic("__consumer_offsets"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	foreign := [][2]string{{"", ""}, {"\x00", "x"}, {"\x00\x63key", "value"}, {"\x00\x01\x7f\xffg", "cut short"}, {"\x00\x02\x00\x01g", "\x00\x03no group"},
		{"\xff\xff", "x"}, {"\x00\x05\x00\x01g\x00\x01m", "\x00\x00\xff\xff\xff\xff\x0f"}, {"\x00\x03\x00\x01g", "\x00\x07"}}
	for _, r := range foreign {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Key: []byte(r[0]), Value: []byte(r[1])}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	commitOffset(1)
	b.Stop()
	b.Restart(t)
	raw.Coordinated(t, b.Addr, "mine")
	if got := fmt.Sprint(fetchOffsets(t, b.Addr, "mine", topic, 0, 1)); got != "[40 41]" {
		t.Errorf("the offsets are %s", got)
	}
	if n := strings.Count(b.Output(), "skipped a foreign record"); n != len(foreign) {
		t.Errorf("%d lines tell of foreign records, there are %d", n, len(foreign))
	}
}
