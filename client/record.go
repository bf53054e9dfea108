package client

import (
	"fmt"
	"time"
)

// Header is a key and value that travel with a record, since 0.11.
type Header struct {
	Key   string
	Value []byte
}

// Record is what a Producer sends. It must not be changed until it came back.
type Record struct {
	Topic string
	// Key and Value go through the producer's serializers; nil is null.
	Key, Value any
	// PartitionKey, if not nil, is what [ScalaHash] and partitioners of one's
	// own hash in place of Key (partKey of kafka.producer.KeyedMessage, 0.8).
	PartitionKey any
	// Partition, if not nil, is where the record goes; no partitioner is asked.
	Partition *int32
	Headers   []Header
	// Timestamp is when the record was made, to the millisecond; zero: when it
	// is sent.
	Timestamp time.Time
}

// Result is what became of a record.
type Result struct {
	Record    *Record
	Partition int32 // -1 when it was never chosen
	Offset    int64 // -1 with an error, or when acks is 0
	Err       error
}

// SendError gives back the records that were not acknowledged, in the order in
// which they were sent. They may still have reached the log if the answer was
// lost. Records of the same call that are not in it were acknowledged.
type SendError struct {
	Failed []Result
}

// Error tells how many records failed, and why the first did.
func (e *SendError) Error() string {
	if len(e.Failed) == 0 {
		return "client: no record failed"
	}
	first := e.Failed[0]
	return fmt.Sprintf("client: %d records were not sent; the first, to topic %q: %v", len(e.Failed), first.Record.Topic, first.Err)
}

// Unwrap returns the errors of the records.
func (e *SendError) Unwrap() []error {
	errs := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		errs[i] = f.Err
	}
	return errs
}

// Records returns the records that failed, to be sent again or stored away.
func (e *SendError) Records() []*Record {
	list := make([]*Record, len(e.Failed))
	for i, f := range e.Failed {
		list[i] = f.Record
	}
	return list
}
