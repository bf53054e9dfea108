package record

import "encoding/binary"

// Splitter walks the whole entries of a set. Use:
//
//	s := record.Split(set)
//	for s.Next() {
//		b := s.Batch()
//		...
//	}
//	if err := s.Err(); err != nil { ... s.Whole() ... }
//
// It trusts no length: an entry that it hands out lies inside the set and has
// at least the header of its format. It does not look at CRCs. It allocates
// nothing unless the set is corrupt.
type Splitter struct {
	set  []byte
	pos  int // where the current entry begins
	next int // where it ends
	err  error
	done bool
}

// Split returns a Splitter at the start of set.
func Split(set []byte) Splitter { return Splitter{set: set} }

// Next moves to the next entry and tells whether there is one.
func (s *Splitter) Next() bool {
	if s.done {
		return false
	}
	n, err := EntrySize(s.set[s.next:])
	if err != nil {
		s.done = true
		if e, ok := err.(*Error); ok {
			e.Position = s.next
		}
		s.err = err
		return false
	}
	if n == 0 || n > len(s.set)-s.next {
		s.done = true
		if s.next < len(s.set) {
			s.err = ErrTorn
		}
		return false
	}
	s.pos, s.next = s.next, s.next+n
	return true
}

// Batch returns the current entry. It aliases the set.
func (s *Splitter) Batch() Batch { return s.set[s.pos:s.next:s.next] }

// Position returns where in the set the current entry begins.
func (s *Splitter) Position() int { return s.pos }

// Whole returns how many bytes from the start of the set are whole entries that
// Next has handed out so far.
func (s *Splitter) Whole() int { return s.next }

// Err tells why Next returned false: nil at the clean end of the set, ErrTorn
// when the rest is the beginning of an entry, an [Error] with CorruptMessage
// when the rest can't be one.
func (s *Splitter) Err() error { return s.err }

// EntrySize returns the size of the entry that begins with p, of which the
// first MinEntryPrefix bytes are enough, or 0 if p is too short to tell. The
// error is an [Error] with CorruptMessage: a length or a magic that no entry
// has. The size may be more than len(p).
func EntrySize(p []byte) (int, error) {
	if len(p) < entryOverhead {
		return 0, nil
	}
	length := int32(binary.BigEndian.Uint32(p[lengthAt:]))
	if length < minEntryLengthV0 {
		return 0, corrupt("entry length %d is below the least of %d", length, minEntryLengthV0)
	}
	if int64(length)+entryOverhead > 1<<31-1 {
		return 0, corrupt("entry length %d is too large", length)
	}
	if len(p) < upToMagic {
		return 0, nil
	}
	least := int32(minEntryLengthV0)
	switch p[magicAt] {
	case 0:
	case 1:
		least = legacyHeaderV1 - entryOverhead
	case 2:
		least = minBatchLengthV2
	default:
		return 0, corrupt("entry has the unknown magic %d", int8(p[magicAt]))
	}
	if length < least {
		return 0, corrupt("entry length %d is below the least of %d for magic %d", length, least, p[magicAt])
	}
	return entryOverhead + int(length), nil
}
