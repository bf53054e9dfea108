package group

import (
	"errors"
	"fmt"

	"barnabas/internal/wire"
)

// Keys begin with an int16 version, which is also their kind:
//
//	0, 1  group string | topic string | partition int32      a committed offset
//	2     group string                                       a group's members
//
// Values begin with an int16 version of their own. Committed offset:
//
//	0, 2  offset int64 | metadata string | commit time int64
//	1     the same | expire time int64
//	3     offset int64 | leader epoch int32 | metadata string | commit time int64
//	4     the same, flexible
//
// A group's members (the latter part once for each member):
//
//	protocol type string | generation int32 | protocol string? | leader string? |
//	[2+] state time int64 | members int32
//	member id string | [3+] instance id string? | client id string | host string |
//	[1+] rebalance timeout int32 | session timeout int32 | subscription bytes |
//	assignment bytes
//
// and 4 is 3, flexible. Times are ms since 1970. Keys 3 to 8 and
// 16 are in consumer_records.go: as Kafka 2.8 stops loading there, none is written unless
// every broker is Barnabas. A key of another version is foreign.
const (
	offsetKeyVersion   = 1
	groupKeyVersion    = 2
	offsetValueVersion = 3
	expireValueVersion = 1 // the one that has an expire time
	groupValueVersion  = 3
)

// errForeign says that a record's key or value has a version that no Kafka with
// classic groups writes, or is cut short.
var errForeign = errors.New("not a record of a group coordinator")

// offset is a committed offset.
type offset struct {
	offset      int64
	leaderEpoch int32 // -1: none
	metadata    string
	commitTime  int64 // ms
	expireTime  int64 // ms; -1: by the broker's retention
	position    int64 // of its record
}

type partition struct {
	topic string
	index int32
}

func offsetKey(group, topic string, index int32) []byte {
	w := wire.Writer{B: make([]byte, 0, 10+len(group)+len(topic))}
	w.Int16(offsetKeyVersion)
	w.String(false, group)
	w.String(false, topic)
	w.Int32(index)
	return w.B
}

func offsetValue(o *offset) []byte {
	w := wire.Writer{B: make([]byte, 0, 24+len(o.metadata))}
	if o.expireTime >= 0 {
		w.Int16(expireValueVersion)
		w.Int64(o.offset)
		w.String(false, o.metadata)
		w.Int64(o.commitTime)
		w.Int64(o.expireTime)
		return w.B
	}
	w.Int16(offsetValueVersion)
	w.Int64(o.offset)
	w.Int32(o.leaderEpoch)
	w.String(false, o.metadata)
	w.Int64(o.commitTime)
	return w.B
}

func groupKey(group string) []byte {
	w := wire.Writer{B: make([]byte, 0, 4+len(group))}
	w.Int16(groupKeyVersion)
	w.String(false, group)
	return w.B
}

// groupValue encodes a group's generation. assignment overrules what the
// members have.
func groupValue(g *group, stateTime int64, assignment map[string][]byte) []byte {
	nullable := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	var w wire.Writer
	w.Int16(groupValueVersion)
	w.String(false, g.protocolType)
	w.Int32(g.generation)
	w.NullableString(false, nullable(g.protocol))
	w.NullableString(false, nullable(g.leader))
	w.Int64(stateTime)
	w.Int32(int32(len(g.order)))
	for _, m := range g.order {
		w.String(false, m.id)
		w.NullableString(false, m.instance)
		w.String(false, m.clientID)
		w.String(false, m.host)
		w.Int32(int32(m.rebalanceTimeout))
		w.Int32(int32(m.sessionTimeout))
		writeBytes(&w, m.metadata(g.protocol))
		if a, ok := assignment[m.id]; ok || assignment != nil {
			writeBytes(&w, a)
		} else {
			writeBytes(&w, m.assignment)
		}
	}
	return w.B
}

func writeBytes(w *wire.Writer, b []byte) {
	w.Int32(int32(len(b)))
	w.B = append(w.B, b...)
}

// key is a decoded key.
type key struct {
	version int16
	group   string
	offset  bool   // of a committed offset, else of a group
	member  string // of a consumer group's member, or a regular expression
	partition
}

func decodeKey(b []byte) (k key, err error) {
	r := wire.NewReader(b)
	v := r.Int16()
	k.version = v
	switch {
	case r.Err() != nil:
		return k, fmt.Errorf("%w: a key of %d bytes", errForeign, len(b))
	case v == 0 || v == offsetKeyVersion:
		k.offset = true
		k.group, k.topic, k.index = string(r.String(false)), string(r.String(false)), r.Int32()
	case v == groupKeyVersion:
		k.group = string(r.String(false))
	case isConsumerKey(v):
		k.group = string(r.String(false))
		if ofMember(v) {
			k.member = string(r.String(false))
		}
	default:
		return k, fmt.Errorf("%w: key version %d", errForeign, v)
	}
	if r.Err() != nil {
		return k, fmt.Errorf("%w: a key that is cut short", errForeign)
	}
	return k, nil
}

func decodeOffset(b []byte) (o offset, err error) {
	r := wire.NewReader(b)
	v := r.Int16()
	if v < 0 || v > 4 {
		return o, fmt.Errorf("%w: offset value version %d", errForeign, v)
	}
	o.leaderEpoch, o.expireTime = -1, -1
	o.offset = r.Int64()
	if v >= 3 {
		o.leaderEpoch = r.Int32()
	}
	o.metadata = string(r.String(v == 4))
	o.commitTime = r.Int64()
	if v == 1 {
		o.expireTime = r.Int64()
	}
	if r.Err() != nil {
		return o, fmt.Errorf("%w: an offset value that is cut short", errForeign)
	}
	return o, nil
}

// stored is a decoded value of a group.
type stored struct {
	protocolType, protocol, leader string
	generation                     int32
	stateTime                      int64 // -1: not told
	members                        []storedMember
}

type storedMember struct {
	id, clientID, host               string
	instance                         *string
	rebalanceTimeout, sessionTimeout int32
	subscription, assignment         []byte
}

func decodeGroup(b []byte) (s stored, err error) {
	r := wire.NewReader(b)
	v := r.Int16()
	if v < 0 || v > 4 {
		return s, fmt.Errorf("%w: group value version %d", errForeign, v)
	}
	flexible := v == 4
	s.protocolType = string(r.String(flexible))
	s.generation = r.Int32()
	s.protocol = string(r.NullableString(flexible))
	s.leader = string(r.NullableString(flexible))
	s.stateTime = -1
	if v >= 2 {
		s.stateTime = r.Int64()
	}
	for n := r.Array(flexible, 8); n > 0 && r.Err() == nil; n-- {
		m := storedMember{id: string(r.String(flexible))}
		if v >= 3 {
			if p := r.NullableString(flexible); p != nil {
				id := string(p)
				m.instance = &id
			}
		}
		m.clientID, m.host = string(r.String(flexible)), string(r.String(flexible))
		if v >= 1 {
			m.rebalanceTimeout = r.Int32()
		}
		m.sessionTimeout = r.Int32()
		if v == 0 {
			m.rebalanceTimeout = m.sessionTimeout
		}
		m.subscription = append([]byte{}, r.NullableBytes(flexible)...)
		m.assignment = append([]byte{}, r.NullableBytes(flexible)...)
		r.Tags(flexible)
		s.members = append(s.members, m)
	}
	if r.Err() != nil {
		return s, fmt.Errorf("%w: a group value that is cut short", errForeign)
	}
	return s, nil
}
