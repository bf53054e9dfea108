package storage

import (
	"encoding/binary"
	"fmt"
)

// dump shows the segments and producers of a log, for a failed run.
func (l *Log) dump() string {
	out := ""
	for id, e := range l.mu.producers.byID {
		out += fmt.Sprintf("producer %d %+v\n", id, *e)
	}
	offs, _ := l.snapshotOffsets()
	out += fmt.Sprintf("snapshots %v recovery %d\n", offs, l.recovery.Load())
	for _, s := range *l.segments.Load() {
		out += fmt.Sprintf("seg %d size %d max %d@%d known %v lastTime %d active %v\n", s.base, s.size.Load(), s.maxTimestamp.Load(), s.maxOffset.Load(), s.knownMax.Load(), s.lastTimeEntry, s.active.Load())
		var e [timeEntry]byte
		st := s.times.state.Load()
		for i := 0; i < s.times.count(); i++ {
			s.times.entry(st, i, e[:])
			out += fmt.Sprintf("  time %d@%d\n", binary.BigEndian.Uint64(e[:]), s.base+int64(binary.BigEndian.Uint32(e[8:])))
		}
		st = s.offsets.state.Load()
		for i := 0; i < s.offsets.count(); i++ {
			s.offsets.entry(st, i, e[:])
			out += fmt.Sprintf("  offset %d@%d\n", s.base+int64(binary.BigEndian.Uint32(e[:])), binary.BigEndian.Uint32(e[4:]))
		}
	}
	return out
}
