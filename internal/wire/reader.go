package wire

import (
	"encoding/binary"
	"errors"
)

// ErrMalformed is what a Reader ends with when a frame is cut short, claims
// more than it holds, or has null where the protocol has none. The connection
// that sent it is closed.
var ErrMalformed = errors.New("malformed frame")

// Reader is a cursor over one frame. Byte slices that it returns alias the
// frame. After the first error each further read returns zero values; check
// Err once at the end.
type Reader struct {
	b   []byte
	err error
}

// NewReader returns a cursor at the start of b.
func NewReader(b []byte) Reader { return Reader{b: b} }

// Err returns ErrMalformed if anything read so far was not there.
func (r *Reader) Err() error { return r.err }

// Rest returns the bytes that are not read yet.
func (r *Reader) Rest() []byte { return r.b }

// Fail makes the frame malformed; the caller found a value it can't be.
func (r *Reader) Fail() {
	r.err = ErrMalformed
	r.b = nil
}

// Take returns the next n bytes of the frame.
func (r *Reader) Take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.Fail()
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p
}

// Int8 reads one signed byte.
func (r *Reader) Int8() int8 {
	if p := r.Take(1); p != nil {
		return int8(p[0])
	}
	return 0
}

// Bool reads one byte; any value but 0 is true.
func (r *Reader) Bool() bool { return r.Int8() != 0 }

// Int16 reads two bytes.
func (r *Reader) Int16() int16 {
	if p := r.Take(2); p != nil {
		return int16(binary.BigEndian.Uint16(p))
	}
	return 0
}

// Int32 reads four bytes.
func (r *Reader) Int32() int32 {
	if p := r.Take(4); p != nil {
		return int32(binary.BigEndian.Uint32(p))
	}
	return 0
}

// Int64 reads eight bytes.
func (r *Reader) Int64() int64 {
	if p := r.Take(8); p != nil {
		return int64(binary.BigEndian.Uint64(p))
	}
	return 0
}

// UUID reads sixteen bytes.
func (r *Reader) UUID() (u UUID) {
	copy(u[:], r.Take(16))
	return u
}

// Uvarint reads an unsigned varint of at most 32 bits.
func (r *Reader) Uvarint() uint32 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || n > 5 || v > 1<<32-1 {
		r.Fail()
		return 0
	}
	r.b = r.b[n:]
	return uint32(v)
}

// length reads a length or count; -1 is null.
func (r *Reader) length(flexible bool, narrow bool) int {
	switch {
	case flexible:
		return int(r.Uvarint()) - 1
	case narrow:
		return int(r.Int16())
	default:
		return int(r.Int32())
	}
}

// NullableString reads a string as bytes; nil is null. With flexible, its
// length is compact.
func (r *Reader) NullableString(flexible bool) []byte {
	n := r.length(flexible, true)
	if n == -1 || r.err != nil {
		return nil
	}
	if p := r.Take(n); p != nil {
		return p
	}
	return []byte{}
}

// String reads a string that must not be null.
func (r *Reader) String(flexible bool) []byte {
	p := r.NullableString(flexible)
	if p == nil {
		r.Fail()
	}
	return p
}

// NullableBytes reads a byte string with a 32-bit or compact length; nil is null.
func (r *Reader) NullableBytes(flexible bool) []byte {
	n := r.length(flexible, false)
	if n == -1 || r.err != nil {
		return nil
	}
	if p := r.Take(n); p != nil {
		return p
	}
	return []byte{}
}

// NullableArray reads an array's count; -1 is null. Each element takes at
// least minSize bytes (1 or more), so a count that the rest of the frame can't
// hold is malformed and nothing is allocated for it.
func (r *Reader) NullableArray(flexible bool, minSize int) int {
	n := r.length(flexible, false)
	if r.err != nil {
		return 0
	}
	if n < -1 || n > len(r.b)/minSize {
		r.Fail()
		return 0
	}
	return n
}

// Array reads the count of an array that must not be null.
func (r *Reader) Array(flexible bool, minSize int) int {
	n := r.NullableArray(flexible, minSize)
	if n < 0 {
		r.Fail()
		return 0
	}
	return n
}

// Tags skips the tagged fields that end each structure of a flexible version.
func (r *Reader) Tags(flexible bool) {
	if flexible {
		r.EachTag(func(uint32, []byte) {})
	}
}

// EachTag calls f for each tagged field of a flexible structure.
func (r *Reader) EachTag(f func(tag uint32, value []byte)) {
	for n := r.Uvarint(); n > 0 && r.err == nil; n-- {
		tag := r.Uvarint()
		size := r.Uvarint()
		if uint64(size) > uint64(len(r.b)) {
			r.Fail()
			return
		}
		f(tag, r.Take(int(size)))
	}
}
