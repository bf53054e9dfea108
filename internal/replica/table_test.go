package replica

import (
	"fmt"
	"testing"

	"barnabas/internal/wire"
)

func TestTableFindsWhatWasPutAndForgetsWhatWasRemoved(t *testing.T) {
	tab := newTable()
	m := NewManager(Options{})
	var all []*Partition
	for i := range 200 {
		name := fmt.Sprintf("topic-%d", i)
		for n := range int32(3) {
			p := newPartition(m, wire.TopicPartition{Topic: name, Partition: 2 - n}, nil)
			tab.put(p)
			all = append(all, p)
		}
		tab.setID(name, wire.UUID{1, byte(i), 15: byte(i)})
	}
	for i, p := range all {
		if got := tab.topic([]byte(p.Topic)).Partition(p.Index); got != p {
			t.Fatalf("%v: found %v", p.TopicPartition, got)
		}
		if got := tab.topicByID(wire.UUID{1, byte(i / 3), 15: byte(i / 3)}); got == nil || got.Name != p.Topic {
			t.Fatalf("%v: by id %v", p.TopicPartition, got)
		}
	}
	if n := len(tab.all()); n != len(all) {
		t.Fatalf("all returns %d, want %d", n, len(all))
	}
	for _, p := range all[:3] {
		tab.remove(p)
	}
	if tab.topic([]byte("topic-0")) != nil || tab.topicByID(wire.UUID{1}) != nil {
		t.Fatal("the topic outlived its partitions")
	}
	tab.setID("topic-1", wire.UUID{9})
	if tab.topicByID(wire.UUID{1, 1, 15: 1}) != nil || tab.topicByID(wire.UUID{9}).Name != "topic-1" {
		t.Fatal("a new id does not replace the old one")
	}
	if tab.topic([]byte("topic-1")).Partition(-1) != nil || tab.topic([]byte("topic-1")).Partition(3) != nil {
		t.Fatal("partitions that nobody put")
	}
}

func TestLookupAllocatesNothing(t *testing.T) {
	tab := newTable()
	tab.put(newPartition(NewManager(Options{}), wire.TopicPartition{Topic: "t"}, nil))
	name := []byte("t")
	if n := testing.AllocsPerRun(100, func() {
		if tab.topic(name).Partition(0) == nil {
			t.Fatal("not found")
		}
	}); n != 0 {
		t.Fatalf("%v allocations a lookup", n)
	}
}
