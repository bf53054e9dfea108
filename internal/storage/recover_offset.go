package storage

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
)

// The base offset of a batch lies outside of its checksum. A batch that is whole
// but for that would end the log when it begins below the end so far, and make the
// log jump when it begins above: recovery works out where it must begin, if the
// batch behind it leaves no doubt, or a single bit of it was changed. Apache Kafka
// keeps such a batch as it is.

// errRestored: a batch's offset was put right, the walk begins again.
var errRestored = errors.New("a batch's offset was restored")

// passed is a batch that a walk has passed.
type passed struct {
	pos, base, last int64
	before          int64 // the end of the log in front of it
}

// restore puts the offset right of the current batch, which does not follow end,
// or of the one before it, which left a gap; until is the base of the next
// segment, -1 for the last one. It returns errRestored if it did, nil if not.
func (l *Log) restore(s *segment, ref *FileRef, sc *scanner, p passed, end, until int64, scratch []byte) error {
	h := sc.header
	if p.pos >= 0 && p.base > p.before && h.BaseOffset() == p.before+p.last-p.base+1 {
		return l.restoreAt(s, ref, p.pos, p.before, scratch)
	}
	if h.Magic() < 2 || h.BaseOffset() >= end || h.LastOffsetDelta() < 0 {
		return nil
	}
	next := end + int64(h.LastOffsetDelta()) + 1
	behind := scan(ref.file, sc.next, s.size.Load(), scratch)
	ok, err := behind.step()
	sure := bits.OnesCount64(uint64(h.BaseOffset()^end)) == 1
	switch {
	case err == nil && ok:
		sure = behind.header.BaseOffset() == next
	case err == nil && until >= 0:
		sure = until == next
	}
	if !sure {
		return nil
	}
	return l.restoreAt(s, ref, sc.pos, end, scratch)
}

// restoreLast is restore for the last batch of a segment, which left a gap and
// ends beyond the next segment's base, or ends the log.
func (l *Log) restoreLast(s *segment, ref *FileRef, p passed, until int64, scratch []byte) error {
	if p.pos < 0 || p.base <= p.before {
		return nil
	}
	sure := p.last >= until && p.before+p.last-p.base+1 == until
	if until < 0 { // a smaller gap may be one that compaction left; no segment holds this
		sure = p.last-s.base > math.MaxInt32 && bits.OnesCount64(uint64(p.base^p.before)) == 1
	}
	if !sure {
		return nil
	}
	return l.restoreAt(s, ref, p.pos, p.before, scratch)
}

// restoreAt writes a batch's base offset, if its checksum is right.
func (l *Log) restoreAt(s *segment, ref *FileRef, pos, base int64, scratch []byte) error {
	sc := scan(ref.file, pos, s.size.Load(), make([]byte, lookupWindow))
	if ok, err := sc.step(); err != nil || !ok || sc.header.Magic() < 2 {
		return nil
	}
	if err := sc.check(scratch); err != nil {
		return nil // it is no batch, or the disk fails: the walk finds that out
	}
	l.dir().log.Warn("the offset of a batch was damaged; it is restored from the batches around it", "partition", l.tp.String(), "segment", s.base,
		"position", pos, "was", sc.header.BaseOffset(), "is", base)
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(base))
	if _, err := ref.file.WriteAt(b[:], pos); err != nil {
		return err
	}
	s.dirty.Store(true)
	return errRestored
}
