package core

import (
	"fmt"
	"testing"

	"barnabas/internal/znode"
)

// grown is a cluster of three brokers with 10,000 partitions.
func grown(b *testing.B) *world {
	cfg := testConfig()
	w := newWorld(cfg)
	for id := int32(1); id <= 3; id++ {
		w.up(id)
	}
	w.elect()
	w.settle()
	for i := range 1000 {
		n := NewTopic{Name: fmt.Sprintf("t%d", i)}
		for p := range int32(10) {
			n.Assignment = append(n.Assignment, []int32{1 + p%3, 1 + (p+1)%3, 1 + (p+2)%3})
		}
		w.ask(CreateTopics{[]NewTopic{n}}, func(any) {})
	}
	for w.doIO() || w.deliver() {
	}
	clear(w.sent)
	if len(w.m.unled) > 0 || len(w.m.topics) != 1000 {
		b.Fatal("not all topics were made")
	}
	return w
}

// quiet carries out what waits, without brokers.
func (w *world) quiet() {
	for w.doIO() || w.deliver() {
	}
	clear(w.sent)
	w.trace.Reset()
}

// BenchmarkFailover is the machine's and this test's own share of a new term
// with 10,000 partitions.
func BenchmarkFailover(b *testing.B) {
	w := grown(b)
	b.ReportAllocs()
	for b.Loop() {
		w.failover()
		w.quiet()
	}
}

// BenchmarkBrokerDeath is a broker that leads a third of 10,000 partitions and
// follows the others.
func BenchmarkBrokerDeath(b *testing.B) {
	w := grown(b)
	for b.Loop() {
		b.StopTimer()
		w.quiet()
		b.StartTimer()
		w.down(2)
		w.quiet()
		b.StopTimer()
		w.up(2)
		w.quiet()
		for _, p := range w.m.allPartitions() { // everybody is in sync again
			s := p.lead
			s.ISR = p.replicas
			w.m.setState(p, s, p.version+1)
			w.tree[znode.StatePath(p.topic.name, p.id)].version++
		}
		b.StartTimer()
	}
}
