package jute

import (
	"encoding/binary"
	"errors"
)

// ErrMalformed is what a Decoder ends with when a record is cut short, or
// claims a length or a count that the bytes left can't hold.
var ErrMalformed = errors.New("jute: malformed record")

// Decoder is a cursor over the bytes of one frame.
type Decoder struct {
	b   []byte
	err error
}

// NewDecoder returns a cursor at the start of b. Buffers that it returns alias b.
func NewDecoder(b []byte) *Decoder { return &Decoder{b: b} }

// Err returns ErrMalformed if anything read so far was not there.
func (d *Decoder) Err() error { return d.err }

// Rest returns the bytes that are not read yet.
func (d *Decoder) Rest() []byte { return d.b }

// Fail makes the record malformed; the caller found a value that can't be.
func (d *Decoder) Fail() {
	d.err = ErrMalformed
	d.b = nil
}

func (d *Decoder) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.Fail()
		return nil
	}
	p := d.b[:n:n]
	d.b = d.b[n:]
	return p
}

// Int reads four bytes.
func (d *Decoder) Int() int32 {
	if p := d.take(4); p != nil {
		return int32(binary.BigEndian.Uint32(p))
	}
	return 0
}

// Long reads eight bytes.
func (d *Decoder) Long() int64 {
	if p := d.take(8); p != nil {
		return int64(binary.BigEndian.Uint64(p))
	}
	return 0
}

// Bool reads one byte.
func (d *Decoder) Bool() bool {
	p := d.take(1)
	return p != nil && p[0] != 0
}

// Buffer reads a byte string. Null is nil; empty is not nil. It aliases the frame.
func (d *Decoder) Buffer() []byte {
	n := d.Int()
	if n == -1 || d.err != nil {
		return nil
	}
	if p := d.take(int(n)); p != nil {
		return p
	}
	if d.err != nil {
		return nil
	}
	return []byte{}
}

// String reads a text; null comes out empty, since nothing in the protocol
// tells the two apart to a server's or a client's use.
func (d *Decoder) String() string { return string(d.Buffer()) }

// Vector reads a count; -1 is null. Each element takes at least minSize bytes
// (1 or more), so a count that the rest of the frame can't hold is malformed.
func (d *Decoder) Vector(minSize int) int {
	n := int(d.Int())
	if d.err != nil {
		return 0
	}
	if n < -1 || n > len(d.b)/minSize {
		d.Fail()
		return 0
	}
	return n
}

// Strings reads a vector of texts; null is nil.
func (d *Decoder) Strings() []string {
	n := d.Vector(4)
	if n < 0 || d.err != nil {
		return nil
	}
	s := make([]string, 0, n)
	for range n {
		s = append(s, d.String())
	}
	if d.err != nil {
		return nil
	}
	return s
}

// Encoder appends primitives to B. The zero Encoder is ready.
type Encoder struct{ B []byte }

// Int appends four bytes.
func (e *Encoder) Int(v int32) { e.B = binary.BigEndian.AppendUint32(e.B, uint32(v)) }

// Long appends eight bytes.
func (e *Encoder) Long(v int64) { e.B = binary.BigEndian.AppendUint64(e.B, uint64(v)) }

// Bool appends 1 or 0.
func (e *Encoder) Bool(v bool) {
	if v {
		e.B = append(e.B, 1)
	} else {
		e.B = append(e.B, 0)
	}
}

// Buffer appends a byte string; nil is null.
func (e *Encoder) Buffer(p []byte) {
	if p == nil {
		e.Int(-1)
		return
	}
	e.Int(int32(len(p)))
	e.B = append(e.B, p...)
}

// String appends a text.
func (e *Encoder) String(s string) {
	e.Int(int32(len(s)))
	e.B = append(e.B, s...)
}

// Strings appends a vector of texts; nil is null.
func (e *Encoder) Strings(s []string) {
	if s == nil {
		e.Int(-1)
		return
	}
	e.Int(int32(len(s)))
	for _, v := range s {
		e.String(v)
	}
}

// BeginFrame appends room for a frame's length and returns where it is, for EndFrame.
func (e *Encoder) BeginFrame() int {
	e.Int(0)
	return len(e.B)
}

// EndFrame sets the length of the frame that began at start.
func (e *Encoder) EndFrame(start int) {
	binary.BigEndian.PutUint32(e.B[start-4:start], uint32(len(e.B)-start))
}

// Record is anything that crosses the wire.
type Record interface {
	Encode(*Encoder)
	Decode(*Decoder)
}

// Marshal returns the bytes of records, one after the other, without a frame length.
func Marshal(records ...Record) []byte {
	var e Encoder
	for _, r := range records {
		r.Encode(&e)
	}
	return e.B
}

// Unmarshal decodes records, one after the other. Bytes left over are ignored.
func Unmarshal(b []byte, records ...Record) error {
	d := NewDecoder(b)
	for _, r := range records {
		r.Decode(d)
	}
	return d.Err()
}
