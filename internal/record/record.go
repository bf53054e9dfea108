package record

// Record is one record of an entry of any format. Key, Value and Headers alias
// the entry or a buffer that is used again: copy what must outlive the callback
// that got it.
type Record struct {
	// Offset is absolute as far as the header of the entry is.
	Offset int64
	// Timestamp is in milliseconds since 1970, or NoTimestamp. For an entry
	// with LogAppendTime it is that of the entry.
	Timestamp int64
	// Sequence is NoSequence unless an idempotent producer wrote the batch.
	Sequence int32
	// Key and Value are nil for null, and empty but not nil for empty.
	Key, Value []byte
	// Headers are those of a v2 record; none before.
	Headers Headers
}

// Header is one header of a record. Value is nil for null.
type Header struct {
	Key   string
	Value []byte
}

// Headers are the headers of a record as they lie in it. They were checked when
// the record was.
type Headers struct {
	count int
	raw   []byte
}

// Len returns how many headers there are.
func (h Headers) Len() int { return h.count }

// Next takes the first header off and returns its key and its value (nil for
// null); both alias the record. ok is false when there is none.
func (h *Headers) Next() (key, value []byte, ok bool) {
	if h.count <= 0 {
		return nil, nil, false
	}
	n, at := varint(h.raw, 0)
	key = h.raw[at : at+int(n) : at+int(n)]
	at += int(n)
	n, at = varint(h.raw, at)
	if n >= 0 {
		value = h.raw[at : at+int(n) : at+int(n)]
		at += int(n)
	}
	h.raw, h.count = h.raw[at:], h.count-1
	return key, value, true
}

// All returns the headers, copied.
func (h Headers) All() []Header {
	if h.count <= 0 {
		return nil
	}
	all := make([]Header, 0, h.count)
	for {
		k, v, ok := h.Next()
		if !ok {
			return all
		}
		if v != nil {
			v = append([]byte{}, v...)
		}
		all = append(all, Header{Key: string(k), Value: v})
	}
}
