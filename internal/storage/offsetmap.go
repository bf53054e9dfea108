package storage

import (
	"crypto/md5"
	"encoding/binary"
)

// mapEntry is 24 bytes, as many as Kafka's SkimpyOffsetMap takes for a key.
type mapEntry struct {
	hi, lo uint64 // MD5 of the key
	next   int64  // offset + 1, 0: free
}

const mapEntrySize = 24

// offsetMap holds the last offset of each key, by the key's MD5: memory is
// bounded whatever the keys are. It begins small and grows to its limit.
type offsetMap struct {
	entries []mapEntry
	most    int // entries at most
	used    int
	load    float64
	latest  int64 // up to here (inclusive) offsets were looked at, -1
}

func newOffsetMap(bytes int64, load float64) *offsetMap {
	if load <= 0 || load >= 1 {
		load = 0.9
	}
	return &offsetMap{most: max(int(bytes/mapEntrySize), 16), load: load, latest: -1}
}

// clear forgets the keys, and memory that only a large log needed.
func (m *offsetMap) clear() {
	if len(m.entries) > 1<<16 {
		m.entries = nil
	}
	clear(m.entries)
	m.used, m.latest = 0, -1
}

func (m *offsetMap) find(hi, lo uint64) *mapEntry {
	for i := hi % uint64(len(m.entries)); ; {
		e := &m.entries[i]
		if e.next == 0 || e.hi == hi && e.lo == lo {
			return e
		}
		if i++; i == uint64(len(m.entries)) {
			i = 0
		}
	}
}

func hashKey(key []byte) (hi, lo uint64) {
	sum := md5.Sum(key)
	return binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])
}

// put notes the offset of a key; false when there is no room for another key.
func (m *offsetMap) put(key []byte, offset int64) bool {
	limit := float64(len(m.entries)) * m.load
	if float64(m.used+1) > limit {
		if len(m.entries) < m.most {
			m.grow()
		} else if e := m.find(hashKey(key)); e.next == 0 {
			return false
		}
	}
	hi, lo := hashKey(key)
	e := m.find(hi, lo)
	if e.next == 0 {
		m.used++
	}
	*e = mapEntry{hi, lo, offset + 1}
	return true
}

func (m *offsetMap) grow() {
	old := m.entries
	m.entries = make([]mapEntry, min(max(2*len(old), 256), m.most))
	for _, e := range old {
		if e.next != 0 {
			*m.find(e.hi, e.lo) = e
		}
	}
}

// get returns the last offset of a key, -1 when it is not in the map.
func (m *offsetMap) get(key []byte) int64 {
	if m.used == 0 {
		return -1
	}
	return m.find(hashKey(key)).next - 1
}
