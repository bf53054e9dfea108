package client

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"barnabas/internal/wire"
	"barnabas/internal/znode"
)

// drawn writes the shares of all members as "thread: partitions".
func drawn(t *testing.T, strategy Strategy, group []member, partitions map[string][]int32) string {
	t.Helper()
	var lines []string
	for _, m := range group {
		mine, err := share(strategy, group, partitions, m.id)
		if err != nil {
			t.Fatal(err)
		}
		threads := map[string][]string{}
		streams := 0
		for _, n := range m.topics {
			streams = max(streams, n)
		}
		for i := range streams {
			threads[thread{m.id, i}.String()] = nil
		}
		for tp, i := range mine {
			id := thread{m.id, i}.String()
			threads[id] = append(threads[id], fmt.Sprintf("%s/%d", tp.Topic, tp.Partition))
		}
		for id, list := range threads {
			slices.Sort(list)
			lines = append(lines, strings.TrimSpace(id+": "+strings.Join(list, " ")))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func consumers(streams int, ids ...string) (group []member) {
	for _, id := range ids {
		group = append(group, member{id, map[string]int{"report-log": streams}})
	}
	return group
}

// Four partitions and three consumers, with one stream each and with two: the
// examples that the documents of ZooKeeper consumers give.
func TestRangeSharesFourPartitionsAmongThreeConsumers(t *testing.T) {
	four := map[string][]int32{"report-log": {0, 1, 2, 3}}
	for _, c := range []struct {
		streams int
		want    string
	}{
		{1, "node1-0: report-log/0 report-log/1\nnode2-0: report-log/2\nnode3-0: report-log/3"},
		{2, "node1-0: report-log/0\nnode1-1: report-log/1\nnode2-0: report-log/2\nnode2-1: report-log/3\nnode3-0:\nnode3-1:"},
	} {
		if got := drawn(t, Range, consumers(c.streams, "node1", "node2", "node3"), four); got != c.want {
			t.Errorf("%d streams:\n%s\nwant\n%s", c.streams, got, c.want)
		}
	}
	want := "C0-0: report-log/0 report-log/1\nC1-0: report-log/2 report-log/3"
	if got := drawn(t, Range, consumers(1, "C0", "C1"), four); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestThreadsAreInTheOrderOfTheirText(t *testing.T) {
	var parts []int32
	for p := range int32(11) {
		parts = append(parts, p)
	}
	got := drawn(t, Range, consumers(11, "c"), map[string][]int32{"report-log": parts})
	for _, line := range []string{"c-0: report-log/0", "c-1: report-log/1", "c-10: report-log/2", "c-2: report-log/3"} {
		if !strings.Contains(got+"\n", line+"\n") {
			t.Errorf("no line %q in\n%s", line, got)
		}
	}
	if compareUTF16("\U0001F600", "\uE000") >= 0 || compareUTF16("a", "ab") >= 0 || compareUTF16("b", "a") <= 0 {
		t.Error("order differs from java.lang.String's")
	}
}

func TestRoundRobinDealsInTheOrderOfHashCodes(t *testing.T) {
	topics := map[string]int{"a": 1, "b": 1}
	group := []member{{"x", topics}, {"y", topics}}
	got := drawn(t, RoundRobinAssignment, group, map[string][]int32{"a": {0, 1, 2}, "b": {0, 1}})
	// "[a,0]" < "[a,1]" < "[a,2]" < "[b,0]" < "[b,1]" as hash codes
	if want := "x-0: a/0 a/2 b/1\ny-0: a/1 b/0"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	group[1].topics = map[string]int{"a": 2, "b": 1}
	if _, err := share(RoundRobinAssignment, group, nil, "x"); !errors.Is(err, ErrAssignment) {
		t.Errorf("unequal streams: %v", err)
	}
}

func TestEachPartitionHasOneOwnerInEveryGroup(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	for range 300 {
		partitions := map[string][]int32{}
		for i := range 1 + r.IntN(5) {
			var list []int32
			for p := range int32(r.IntN(20)) {
				list = append(list, p)
			}
			partitions[fmt.Sprint("t", i)] = list
		}
		strategy := Strategy(r.IntN(2))
		same := 1 + r.IntN(3)
		var group []member
		for i := range 1 + r.IntN(6) {
			m := member{fmt.Sprint("g_", i), map[string]int{}}
			for topic := range partitions {
				switch {
				case strategy == RoundRobinAssignment:
					m.topics[topic] = same
				case i == 0 || r.IntN(2) == 0:
					m.topics[topic] = 1 + r.IntN(12)
				}
			}
			group = append(group, m)
		}
		owners := map[wire.TopicPartition]string{}
		total := 0
		for _, m := range group {
			mine, err := share(strategy, group, partitions, m.id)
			if err != nil {
				t.Fatal(err)
			}
			for tp, stream := range mine {
				if other, taken := owners[tp]; taken || stream >= m.topics[tp.Topic] {
					t.Fatalf("%v stream %d of %s, and of %s", tp, stream, m.id, other)
				}
				owners[tp] = m.id
			}
		}
		for _, list := range partitions {
			total += len(list)
		}
		if len(owners) != total {
			t.Fatalf("%d of %d partitions have owners", len(owners), total)
		}
	}
}

func TestFiltersReadAsKafkaReadsThem(t *testing.T) {
	white := func(e string) TopicFilter {
		f, err := WhiteList(e)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, c := range []struct {
		f      TopicFilter
		text   string
		topics string
	}{
		{white(`"a, b"`), "a|b", "a b"},
		{white(" 'white.*' "), "white.*", "white1"},
		{white(".*"), ".*", "a ab b white1"},
		{white("a|b"), "a|b", "a b"},
	} {
		var picked []string
		for _, topic := range []string{"a", "ab", "b", "white1", "__consumer_offsets"} {
			if c.f.Allows(topic, true) {
				picked = append(picked, topic)
			}
		}
		if c.f.String() != c.text || strings.Join(picked, " ") != c.topics {
			t.Errorf("%q picks %v, want %q", c.f, picked, c.topics)
		}
	}
	if !white(".*").Allows("__consumer_offsets", false) || !white(".*").Allows("__transaction_state", true) {
		t.Error("internal topics differ from 0.8.2's")
	}
	black, err := BlackList("a,b")
	if err != nil || black.Allows("a", true) || !black.Allows("ab", true) {
		t.Error(err, black)
	}
	if _, err := WhiteList("("); !errors.Is(err, ErrOption) {
		t.Error(err)
	}
	m, err := expand("c", znode.ConsumerRegistration{Subscription: map[string]int32{"w.*": 3}, Pattern: znode.PatternWhiteList}, []string{"w1", "x", "w2"}, true)
	if err != nil || !maps.Equal(m.topics, map[string]int{"w1": 3, "w2": 3}) {
		t.Error(m, err)
	}
}
