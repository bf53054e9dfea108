package wire

import "encoding/binary"

// Writer appends primitives to B. The zero Writer is ready.
type Writer struct{ B []byte }

// Int8 appends one byte.
func (w *Writer) Int8(v int8) { w.B = append(w.B, byte(v)) }

// Bool appends 1 or 0.
func (w *Writer) Bool(v bool) {
	if v {
		w.Int8(1)
	} else {
		w.Int8(0)
	}
}

// Int16 appends two bytes.
func (w *Writer) Int16(v int16) { w.B = binary.BigEndian.AppendUint16(w.B, uint16(v)) }

// Int32 appends four bytes.
func (w *Writer) Int32(v int32) { w.B = binary.BigEndian.AppendUint32(w.B, uint32(v)) }

// Int64 appends eight bytes.
func (w *Writer) Int64(v int64) { w.B = binary.BigEndian.AppendUint64(w.B, uint64(v)) }

// UUID appends sixteen bytes.
func (w *Writer) UUID(u UUID) { w.B = append(w.B, u[:]...) }

// Uvarint appends an unsigned varint.
func (w *Writer) Uvarint(v uint32) { w.B = binary.AppendUvarint(w.B, uint64(v)) }

// Length appends a 32-bit length or array count, compact when flexible; -1 is null.
func (w *Writer) Length(flexible bool, n int) {
	if flexible {
		w.Uvarint(uint32(n + 1))
	} else {
		w.Int32(int32(n))
	}
}

// String appends a string that is not null.
func (w *Writer) String(flexible bool, s string) {
	w.stringLength(flexible, len(s))
	w.B = append(w.B, s...)
}

// NullableString appends a string; nil is null.
func (w *Writer) NullableString(flexible bool, s *string) {
	if s == nil {
		w.stringLength(flexible, -1)
		return
	}
	w.String(flexible, *s)
}

// StringBytes appends bytes as a string that is not null.
func (w *Writer) StringBytes(flexible bool, s []byte) {
	w.stringLength(flexible, len(s))
	w.B = append(w.B, s...)
}

func (w *Writer) stringLength(flexible bool, n int) {
	if flexible {
		w.Uvarint(uint32(n + 1))
	} else {
		w.Int16(int16(n))
	}
}

// Tags appends an empty set of tagged fields when flexible.
func (w *Writer) Tags(flexible bool) {
	if flexible {
		w.B = append(w.B, 0)
	}
}
