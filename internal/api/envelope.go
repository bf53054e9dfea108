package api

import "errors"

var _ = register(API{
	Key: 58, Name: "Envelope", Min: 0, Max: 0, MaxFrame: 1 << 20, Reuse: true,
	Versions: []string{"a client's request, passed on by another broker (KIP-590)"},
	Handle:   handleEnvelope,
})

var errForwarding = errors.New("an Envelope request, although no broker forwards requests with ZooKeeper")

// handleEnvelope closes the connection, as Kafka does with ZooKeeper
// (KafkaApis.handleEnvelope without forwarding).
func handleEnvelope(_ *Broker, q *Request) { q.Fail(errForwarding) }
