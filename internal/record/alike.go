package record

import "encoding/binary"

// shape is where the numbers of a record lie whose bytes quick understood, and
// what the record after it must have in the same places to be as long, with
// numbers as long.
type shape struct {
	size                      int       // bytes of the record
	head, mask                [2]uint64 // the first 16 bytes, and which of their bits count
	timestamp                 int       // position of the timestamp delta
	offset                    int       // of the offset delta
	value                     int       // of the value's size
	valueSize, valueMask      uint32    // the four bytes there
	timestampBits, offsetBits uint32
}

// shapeOf returns the shape of the record at p[at:next].
func shapeOf(p []byte, at, next int) shape {
	b := (*[window]byte)(p[at:])
	s := shape{size: next - at}
	var mask [window]byte
	all := func(from, to int, bits byte) {
		for ; from < to; from++ {
			mask[from] = bits
		}
	}
	_, k := short(b, 0)
	all(0, k, 0xff)
	s.timestamp = k + 1 // behind the attributes
	_, k = short(b, s.timestamp)
	all(s.timestamp, k, 0x80)
	s.timestampBits = 1<<(7*(k-s.timestamp)) - 1
	s.offset = k
	_, k = short(b, s.offset)
	all(s.offset, k, 0x80)
	s.offsetBits = 1<<(7*(k-s.offset)) - 1
	key, q := short(b, k)
	all(k, q, 0xff)
	s.value = q
	if key != 1 { // no null
		s.value += int(key >> 1)
	}
	s.valueSize = binary.LittleEndian.Uint32(p[at+s.value:])
	_, k = short((*[window]byte)(p[at+s.value:]), 0)
	s.valueMask = 1<<(8*k) - 1
	for i := range s.head {
		s.head[i] = binary.LittleEndian.Uint64(b[8*i:])
		s.mask[i] = binary.LittleEndian.Uint64(mask[8*i:])
	}
	return s
}

// runAlike goes on from record i, at p[at:next], over the records that have its
// shape, and returns the last of them and where the next one begins. Where each
// begins does not depend on what was read from the one before, so that the
// processor need not wait for one to read the next.
func (w *walk) runAlike(p []byte, at, next int, i, count int32) (int32, int) {
	s := shapeOf(p, at, next)
	for i+1 < count && len(p)-next >= s.size+window {
		r := p[next : next+s.size+window]
		if (binary.LittleEndian.Uint64(r)^s.head[0])&s.mask[0] != 0 ||
			(binary.LittleEndian.Uint64(r[8:])^s.head[1])&s.mask[1] != 0 ||
			(binary.LittleEndian.Uint32(r[s.value:])^s.valueSize)&s.valueMask != 0 ||
			sevens(binary.LittleEndian.Uint32(r[s.offset:]))&s.offsetBits != uint32(i+1)<<1 ||
			r[s.size-1] != 0 {
			break
		}
		i++
		d := sevens(binary.LittleEndian.Uint32(r[s.timestamp:])) & s.timestampBits
		w.timestamp(w.baseTimestamp+(int64(d>>1)^-int64(d&1)), i)
		next += s.size
	}
	return i, next
}

// sevens puts the low seven bits of the first three bytes of b side by side.
func sevens(b uint32) uint32 {
	return b&0x7f | b>>1&0x3f80 | b>>2&0x1fc000
}
