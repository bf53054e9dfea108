package load

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Report is what a check of a load found.
type Report struct {
	Acked  int      // records that were acknowledged
	Lost   []string // acknowledged, and not there or not where it was said
	Order  []string // there a second time, or after a later one
	Failed []error  // given up by the producer
	Unread error    // the topic can't be read to its end
}

// Clean tells whether nothing is wrong.
func (r *Report) Clean() bool { return len(r.Lost)+len(r.Order)+len(r.Failed) == 0 && r.Unread == nil }

// Finish ends the load and fails the test for each record that is not as it
// was acknowledged.
func (l *Load) Finish() {
	l.t.Helper()
	r := l.Check()
	if r.Unread != nil {
		l.t.Fatal(r.Unread)
	}
	if len(r.Failed) > 0 {
		l.t.Errorf("%d records failed for good, the first: %v", len(r.Failed), r.Failed[0])
	}
	for _, list := range [][]string{r.Lost, r.Order} {
		for i, what := range list {
			if i == 5 {
				l.t.Errorf("and %d more", len(list)-i)
				break
			}
			l.t.Error(what)
		}
	}
	l.t.Logf("%d records acknowledged, %d lost, %d out of order or doubled", r.Acked, len(r.Lost), len(r.Order))
}

// Check ends the load and holds every acknowledged record against what a
// consumer reads: there, once, at its offset, in the order it was sent.
func (l *Load) Check() Report {
	l.t.Helper()
	l.stop()
	l.done.Wait()
	var r Report
	read := l.read(&r)
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Acked, r.Failed, r.Lost = l.count, l.failed, slices.Clone(l.replaced)
	for p, acked := range l.acked {
		for offset, number := range acked {
			if got, ok := read[p][offset]; !ok {
				r.Lost = append(r.Lost, fmt.Sprintf("%s-%d offset %d: record %d was acknowledged, nothing is there", l.topic, p, offset, number))
			} else if got != number {
				r.Lost = append(r.Lost, fmt.Sprintf("%s-%d offset %d: record %d was acknowledged, record %d is there", l.topic, p, offset, number, got))
			}
		}
	}
	return r
}

// noise begins the records of a topic that nobody asks for.
const noise = "noise"

// read reads the topic to its end: partition, offset, number. The report gets
// what is wrong with the order.
func (l *Load) read(r *Report) (read map[int32]map[int64]int) {
	l.t.Helper()
	offsets := map[int32]kgo.Offset{}
	for p := range l.partitions {
		offsets[int32(p)] = kgo.NewOffset().AtStart()
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(l.seeds...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{l.topic: offsets}))
	if err != nil {
		l.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(l.t.Context(), 2*time.Minute)
	defer cancel()
	read = map[int32]map[int64]int{}
	latest := map[int32]int{}
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, l.topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		r.Unread = fmt.Errorf("the ends of %s: %w", l.topic, err)
		return read
	}
	left := 0
	ends.Each(func(o kadm.ListedOffset) {
		left += int(o.Offset)
		read[o.Partition], latest[o.Partition] = map[int64]int{}, -1
	})
	for left > 0 {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			r.Unread = fmt.Errorf("%d records of %s can't be read", left, l.topic)
			return read
		}
		fetches.EachRecord(func(record *kgo.Record) {
			left--
			p := record.Partition
			if strings.HasPrefix(string(record.Value), noise) {
				return
			}
			number, _ := strconv.Atoi(string(record.Value))
			if number <= latest[p] {
				r.Order = append(r.Order, fmt.Sprintf("%s-%d offset %d holds record %d after %d", l.topic, p, record.Offset, number, latest[p]))
			}
			latest[p] = max(number, latest[p])
			read[p][record.Offset] = number
		})
	}
	return read
}

// UntilEqual waits until all log directories have the same bytes of each
// partition.
func UntilEqual(t *testing.T, dirs []string, topic string, partitions int) {
	t.Helper()
	var differs string
	defer func() {
		if t.Failed() {
			t.Log(differs)
		}
	}()
	real.Until(t, 30*time.Second, "equal logs on all brokers", func() bool {
		for p := range partitions {
			folder := fmt.Sprintf("%s-%d", topic, p)
			first := records(t, filepath.Join(dirs[0], folder))
			for _, dir := range dirs[1:] {
				if other := records(t, filepath.Join(dir, folder)); !bytes.Equal(first, other) {
					differs = fmt.Sprintf("%s: %d bytes in %s, %d in %s", folder, len(first), dirs[0], len(other), dir)
					return false
				}
			}
		}
		return true
	})
}

// records returns the bytes of all segments of a partition.
func records(t *testing.T, folder string) []byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	var all []byte
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	return all
}
