package storage

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"barnabas/internal/record"
	"barnabas/internal/vfs"
)

// cleanerChunk is how much is gathered before it is written.
const cleanerChunk = 1 << 20

// copying is a new segment that is being written.
type copying struct {
	file     vfs.File
	base     int64
	size     int64
	index    *indexer
	modified time.Time
}

// copyGroup writes the .cleaned files of a group of segments, synced.
func (r *cleanerRun) copyGroup(group []*segment) (*segment, error) {
	l := r.job.log
	base := group[0].base
	name := func(suffix string) string {
		return filepath.Join(l.folder(), offsetName(base, suffix)+cleanedSuffix)
	}
	file, err := l.dir().fs.OpenFile(name(logSuffix), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	c := &copying{file: file, base: base, index: newIndexer(int(l.config.Load().IndexIntervalBytes))}
	r.txns.keep = nil
	for _, s := range group {
		if err := r.copySegment(c, s); err != nil {
			return nil, err
		}
	}
	if err := r.write(c); err != nil {
		return nil, err
	}
	if err := file.Sync(); err != nil {
		return nil, err
	}
	c.index.finish(base)
	for suffix, data := range map[string][]byte{
		indexSuffix: c.index.offsets, timeIndexSuffix: c.index.times, txnIndexSuffix: formatTxnIndex(nil, r.txns.keep),
	} {
		if suffix == txnIndexSuffix && len(data) == 0 {
			continue
		}
		if err := writeSynced(l.dir().fs, name(suffix), data); err != nil {
			return nil, err
		}
	}
	if err := l.dir().fs.SetModTime(name(logSuffix), c.modified); err != nil {
		return nil, err
	}
	s := newSegment(l.home.Load(), base, l.dir().now().UnixMilli())
	s.size.Store(c.size)
	s.maxTimestamp.Store(c.index.maxTs)
	s.maxOffset.Store(c.index.maxOff)
	s.lastTimeEntry = c.index.lastTs
	s.knownMax.Store(true)
	s.txns.reset(false)
	s.txns.mu.all, s.txns.mu.saved = slices.Clone(r.txns.keep), len(r.txns.keep)
	return s, l.dir().fs.SyncDir(l.folder())
}

func writeSynced(fsys vfs.FS, name string, data []byte) error {
	f, err := fsys.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if len(data) > 0 {
		_, err = f.WriteAt(data, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (r *cleanerRun) copySegment(c *copying, s *segment) error {
	l := r.job.log
	info, err := l.dir().fs.Stat(s.path())
	if err != nil {
		return stale(err)
	}
	c.modified = info.ModTime()
	legacy := info.ModTime().UnixMilli() > r.legacyMs
	r.txns.add(r.job.segments, s.base, r.endOf(s))
	return r.each(s, func(b record.Batch) error {
		kept, err := r.filter(b, legacy)
		if err != nil || len(kept) == 0 {
			return err
		}
		r.out = append(r.out, kept...)
		if len(r.out) < cleanerChunk {
			return nil
		}
		return r.write(c)
	})
}

// write appends what was gathered to the new segment.
func (r *cleanerRun) write(c *copying) error {
	if len(r.out) == 0 {
		return nil
	}
	if _, err := c.file.WriteAt(r.out, c.size); err != nil {
		return err
	}
	at := c.size
	for sp := record.Split(r.out); sp.Next(); {
		b := sp.Batch()
		c.index.add(c.base, b, at, int64(len(b)))
		at += int64(len(b))
	}
	n := int64(len(r.out))
	c.size = at
	r.out = r.out[:0]
	return r.throttle(n)
}

// filter returns what stays of a batch, nil for nothing (Kafka's
// Cleaner.cleanInto and MemoryRecords.filterTo). The result may alias b or
// buffers that are used again.
func (r *cleanerRun) filter(b record.Batch, legacyTombstones bool) (record.Batch, error) {
	idle := false // nothing speaks for the batch as a whole
	if b.Control() {
		idle = r.txns.control(b)
	} else {
		idle = r.txns.data(b)
	}
	horizon, has := b.DeleteHorizon()
	drop := idle
	if b.Control() {
		drop = idle && has && horizon <= r.now
	}
	kept, all, tombstones, err := r.survivors(b, drop, legacyTombstones)
	if err != nil {
		return nil, err
	}
	setHorizon := b.Magic() >= 2 && !has && (tombstones || idle && b.Control())
	switch {
	case kept == 0 && b.HasProducerID() && r.lastOfProducer(b):
		return r.empty(b)
	case kept == 0:
		return nil, nil
	case all && !setHorizon:
		return b, nil
	}
	if setHorizon {
		horizon = r.now + r.deleteMs
	}
	return r.rebuild(b, horizon, legacyTombstones)
}

// survivors counts the records that stay.
func (r *cleanerRun) survivors(b record.Batch, drop, legacyTombstones bool) (kept int, all, tombstones bool, err error) {
	if drop {
		return 0, false, false, nil
	}
	all = true
	err = b.Each(0, func(x *record.Record) error {
		if r.keep(b, x, legacyTombstones) {
			kept++
			tombstones = tombstones || x.Value == nil
		} else {
			all = false
		}
		return nil
	})
	return kept, all, tombstones, err
}

// keep decides over one record.
func (r *cleanerRun) keep(b record.Batch, x *record.Record, legacyTombstones bool) bool {
	if b.Control() || x.Offset > r.keys.latest {
		return true
	}
	if x.Key == nil || x.Offset < r.keys.get(x.Key) {
		return false
	}
	if x.Value != nil {
		return true
	}
	if b.Magic() < 2 {
		return legacyTombstones
	}
	horizon, has := b.DeleteHorizon()
	return !has || r.now < horizon
}

// lastOfProducer tells whether the batch must leave its header behind, since it
// is the last of a producer that is still remembered.
func (r *cleanerRun) lastOfProducer(b record.Batch) bool {
	at, ok := r.last[b.ProducerID()]
	if !ok {
		return false
	}
	if at.offset >= 0 {
		return b.LastOffset() == at.offset
	}
	return b.Control() && b.ProducerEpoch() == at.epoch
}

func headerOf(b record.Batch) record.BatchOptions {
	o := record.BatchOptions{BaseOffset: b.BaseOffset(), LeaderEpoch: b.LeaderEpoch(), Transactional: b.Transactional(), Control: b.Control()}
	if b.HasProducerID() {
		o.Producer = &record.Producer{ID: b.ProducerID(), Epoch: b.ProducerEpoch(), Sequence: b.BaseSequence()}
	}
	return o
}

// empty makes a batch without records that keeps offsets and sequence.
func (r *cleanerRun) empty(b record.Batch) (record.Batch, error) {
	r.build.Reset(headerOf(b))
	r.build.KeepLastOffset(b.LastOffset())
	out, err := r.build.Build()
	if err == nil {
		out.SetMaxTimestamp(b.TimestampType(), b.MaxTimestamp())
	}
	return out, err
}

// rebuild makes the batch anew with the records that stay. One of an old format
// is a compressed message: its offset becomes that of the last that stays.
func (r *cleanerRun) rebuild(b record.Batch, horizon int64, legacyTombstones bool) (record.Batch, error) {
	o := headerOf(b)
	o.Codec = b.Codec()
	o.DeleteHorizon = horizon
	if b.TimestampType() == record.LogAppendTime {
		o.AppendTime = b.MaxTimestamp()
	}
	first := true
	err := b.Each(0, func(x *record.Record) error {
		if !r.keep(b, x, legacyTombstones) {
			return nil
		}
		if first && b.Magic() < 2 {
			o.BaseOffset = x.Offset
		}
		if first {
			r.build.Reset(o)
			first = false
		}
		r.build.AppendRecord(x)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if b.Magic() >= 2 {
		r.build.KeepLastOffset(b.LastOffset())
		return r.build.Build()
	}
	modern, err := r.build.Build()
	if err != nil {
		return nil, err
	}
	return record.ConvertDown(modern, record.ConvertOptions{Magic: b.Magic()})
}

// install puts the new segment in place of its group. It holds maintenance, and
// readers who find an old segment closed wait for it and look again.
func (r *cleanerRun) install(group []*segment, made *segment) error {
	l := r.job.log
	l.maintenance.Lock()
	defer l.maintenance.Unlock()
	if err := r.moved(); err != nil {
		return err
	}
	segs := *l.segments.Load()
	at := slices.Index(segs, group[0])
	if at < 0 || at+len(group) >= len(segs) || !slices.Equal(segs[at:at+len(group)], group) {
		return errMoved // retention was faster
	}
	err := l.swapIn(group, made)
	if err != nil {
		l.dir().fail(err)
		return err
	}
	l.mu.Lock()
	segs = *l.segments.Load() // appends may have rolled meanwhile: at stays
	next := append(slices.Clone(segs[:at]), made)
	l.publish(append(next, segs[at+len(group):]...))
	l.mu.Unlock()
	return nil
}

// swapIn does the renames; see the type cleaner.
func (l *Log) swapIn(group []*segment, made *segment) error {
	base := filepath.Join(l.folder(), offsetName(made.base, ""))
	kinds := []string{txnIndexSuffix, indexSuffix, timeIndexSuffix, logSuffix} // the log last
	rename := func(from, to string) error {
		for _, kind := range kinds {
			err := l.dir().fs.Rename(base+kind+from, base+kind+to)
			if err != nil && !(kind == txnIndexSuffix && errors.Is(err, fs.ErrNotExist)) {
				return err
			}
		}
		return nil
	}
	if err := rename(cleanedSuffix, swapSuffix); err != nil {
		return err
	}
	if err := l.dir().fs.SyncDir(l.folder()); err != nil {
		return err
	}
	for _, s := range group {
		s.close()
	}
	names, err := markAll(l.dir().fs, group)
	if err != nil {
		return err
	}
	if err := rename(swapSuffix, ""); err != nil {
		return err
	}
	l.dir().removeLater(names, l.config.Load().FileDeleteDelayMs)
	return l.dir().fs.SyncDir(l.folder())
}
