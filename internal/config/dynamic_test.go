package config

import (
	"sync"
	"testing"
)

func TestSubscribersSeeEveryChangeInOrder(t *testing.T) {
	d := NewDynamic(mustBroker(t, nil))
	var seen []int
	last := d.Load()
	cancel := d.Subscribe(func(old, now *Broker) {
		if old != last || now != d.Load() {
			t.Error("a change was missed")
		}
		last = now
		seen = append(seen, now.Int("max.connections"))
	})
	for _, n := range []string{"5", "6"} {
		if err := d.Update(map[string]string{"max.connections": n}, nil); err != nil {
			t.Fatal(err)
		}
	}
	before := d.Load()
	if err := d.Update(map[string]string{"max.connections": "-1"}, nil); err == nil || d.Load() != before {
		t.Error("a bad change has to leave everything as it is")
	}
	if warnings := d.UpdateStored(map[string]string{"max.connections": "-1", "num.io.threads": "9"}, nil); len(warnings) != 1 || d.Load().Int("num.io.threads") != 9 {
		t.Errorf("got %v", warnings)
	}
	d.SetID(1001)
	cancel()
	if err := d.Update(nil, nil); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 4 || seen[0] != 5 || seen[1] != 6 || last.ID() != 1001 {
		t.Errorf("got %v", seen)
	}
}

func TestDynamicUnderLoad(t *testing.T) {
	d := NewDynamic(mustBroker(t, nil))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				cancel := d.Subscribe(func(_, now *Broker) { _ = now.Int("max.connections") })
				if err := d.Update(map[string]string{"max.connections": "5"}, nil); err != nil {
					t.Error(err)
				}
				cancel()
				_ = d.Load().Int("max.connections")
			}
		})
	}
	wg.Wait()
}
