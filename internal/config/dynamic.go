package config

// Dynamic holds the snapshot in force and tells subscribers of each new one.
// Its methods are safe for concurrent use.
type Dynamic struct{}

// NewDynamic returns a holder of this snapshot.
func NewDynamic(b *Broker) *Dynamic { panic("todo") }

// Load returns the snapshot in force. It takes no lock.
func (d *Dynamic) Load() *Broker { panic("todo") }

// Update puts a new snapshot in force, made with [Broker.With], and calls every
// subscriber before it returns. With an error nothing changes.
func (d *Dynamic) Update(perBroker, clusterWide map[string]string) error { panic("todo") }

// Subscribe calls changed for each later snapshot, one at a time and in order;
// changed must not call Update or Subscribe. The returned function ends it.
func (d *Dynamic) Subscribe(changed func(old, now *Broker)) (cancel func()) { panic("todo") }
