package txn

import (
	"errors"
	"fmt"

	"barnabas/internal/wire"
)

// A key is an int16 version, 0, and the transactional id. A value of version 0:
//
//	producer id int64 | epoch int16 | timeout ms int32 | state int8 |
//	partitions []{topic string | []int32}? | last update int64 | start int64
//
// partitions is null in state Empty; times are ms since 1970, start is -1
// without a transaction. Version 1 is the same, flexible; it is read, and only
// Kafka with KRaft writes it.
const version = 0

// State is where a transactional id stands, by its number in the log.
type State int8

// The states (kafka.coordinator.transaction.TransactionState). Dead and
// PrepareEpochFence are never written.
const (
	Empty State = iota
	Ongoing
	PrepareCommit
	PrepareAbort
	CompleteCommit
	CompleteAbort
	dead
	prepareEpochFence
)

var stateNames = [...]string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence"}

// String returns Kafka's name of the state.
func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return fmt.Sprintf("State(%d)", int8(s))
	}
	return stateNames[s]
}

// errForeign says that a record is not one of a transaction coordinator.
var errForeign = errors.New("not a record of a transaction coordinator")

// stored is what a record holds.
type stored struct {
	producer      int64
	epoch         int16
	timeout       int32 // ms
	state         State
	partitions    []wire.TopicPartition // in order
	update, start int64
}

func keyOf(id string) []byte {
	w := wire.Writer{B: make([]byte, 0, 4+len(id))}
	w.Int16(0)
	w.String(false, id)
	return w.B
}

func decodeKey(b []byte) (string, error) {
	r := wire.NewReader(b)
	v := r.Int16()
	id := r.String(false)
	if r.Err() != nil || v != 0 {
		return "", fmt.Errorf("%w: a key of version %d, %d bytes", errForeign, v, len(b))
	}
	return string(id), nil
}

func valueOf(s *stored) []byte {
	var w wire.Writer
	w.Int16(version)
	w.Int64(s.producer)
	w.Int16(s.epoch)
	w.Int32(s.timeout)
	w.Int8(int8(s.state))
	if s.state == Empty {
		w.Int32(-1)
	} else {
		topics := 0
		for i, p := range s.partitions {
			if i == 0 || s.partitions[i-1].Topic != p.Topic {
				topics++
			}
		}
		w.Int32(int32(topics))
		for i := 0; i < len(s.partitions); {
			n := i
			for n < len(s.partitions) && s.partitions[n].Topic == s.partitions[i].Topic {
				n++
			}
			w.String(false, s.partitions[i].Topic)
			w.Int32(int32(n - i))
			for ; i < n; i++ {
				w.Int32(s.partitions[i].Partition)
			}
		}
	}
	w.Int64(s.update)
	w.Int64(s.start)
	return w.B
}

func decodeValue(b []byte) (s stored, err error) {
	r := wire.NewReader(b)
	v := r.Int16()
	if v < 0 || v > 1 {
		return s, fmt.Errorf("%w: value version %d", errForeign, v)
	}
	flexible := v == 1
	s.producer, s.epoch, s.timeout, s.state = r.Int64(), r.Int16(), r.Int32(), State(r.Int8())
	for n := r.NullableArray(flexible, 6-4*int(v)); n > 0 && r.Err() == nil; n-- {
		topic := string(r.String(flexible))
		for n := r.Array(flexible, 4); n > 0 && r.Err() == nil; n-- {
			s.partitions = append(s.partitions, wire.TopicPartition{Topic: topic, Partition: r.Int32()})
		}
		r.Tags(flexible)
	}
	s.update, s.start = r.Int64(), r.Int64()
	switch {
	case r.Err() != nil:
		return s, fmt.Errorf("%w: a value that is cut short", errForeign)
	case s.state < Empty || s.state > prepareEpochFence:
		return s, fmt.Errorf("%w: state %d", errForeign, s.state)
	}
	return s, nil
}
