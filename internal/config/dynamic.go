package config

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Dynamic holds the snapshot in force and tells subscribers of each new one.
// Its methods are safe for concurrent use.
type Dynamic struct {
	current atomic.Pointer[Broker]

	// mu orders the changes. It is held while subscribers are called, so that
	// every one of them sees every change, and in one order.
	mu struct {
		sync.Mutex
		subscribers []*subscriber
	}
}

type subscriber struct{ changed func(old, now *Broker) }

// NewDynamic returns a holder of this snapshot.
func NewDynamic(b *Broker) *Dynamic {
	d := &Dynamic{}
	d.current.Store(b)
	return d
}

// Load returns the snapshot in force. It takes no lock.
func (d *Dynamic) Load() *Broker { return d.current.Load() }

// Update puts a new snapshot in force, made with [Broker.With], and calls every
// subscriber before it returns. With an error nothing changes.
func (d *Dynamic) Update(perBroker, clusterWide map[string]string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	next, err := d.Load().With(perBroker, clusterWide)
	if err != nil {
		return err
	}
	d.replaceLocked(next)
	return nil
}

// UpdateStored is Update with [Broker.WithStored]: what is wrong is left out
// and comes back as warnings.
func (d *Dynamic) UpdateStored(perBroker, clusterWide map[string]string) []Warning {
	d.mu.Lock()
	defer d.mu.Unlock()
	next, warnings := d.Load().WithStored(perBroker, clusterWide)
	d.replaceLocked(next)
	return warnings
}

// SetID puts a generated broker id in force (see [Broker.WithID]) and calls
// every subscriber before it returns.
func (d *Dynamic) SetID(id int32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.replaceLocked(d.Load().WithID(id))
}

func (d *Dynamic) replaceLocked(next *Broker) {
	old := d.current.Swap(next)
	for _, s := range d.mu.subscribers {
		s.changed(old, next)
	}
}

// Subscribe calls changed for each later snapshot, one at a time and in order;
// changed must not call Update or Subscribe. The returned function ends it:
// once it has returned, changed is not called again.
func (d *Dynamic) Subscribe(changed func(old, now *Broker)) (cancel func()) {
	s := &subscriber{changed}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.subscribers = append(slices.Clone(d.mu.subscribers), s)
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.mu.subscribers = slices.DeleteFunc(slices.Clone(d.mu.subscribers), func(o *subscriber) bool { return o == s })
	}
}
