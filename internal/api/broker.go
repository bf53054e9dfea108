package api

// Broker is what the handlers work on; internal/broker fills it in before the
// first connection is served.
type Broker struct{}
