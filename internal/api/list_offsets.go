package api

import (
	"barnabas/internal/replica"
	"barnabas/internal/storage"
	"barnabas/internal/wire"
)

var _ = register(API{
	Key: 2, Name: "ListOffsets", Min: 0, Max: 9, Reuse: true,
	Versions: []string{
		"several offsets at once, by segment",
		"one offset, with its timestamp",
		"isolation level; throttle time",
		"throttled after the answer, not before it (KIP-219)",
		"leader epochs (KIP-320)",
		"OFFSET_NOT_AVAILABLE may be answered (KIP-207)",
		"flexible",
		"the offset of the largest timestamp, -3 (KIP-734)",
		"the earliest local offset, -4 (KIP-405)",
		"the latest tiered offset, -5 (KIP-1005)",
	},
	Handle: handleListOffsets,
})

// The timestamps that mean something else (ListOffsetsRequest).
const (
	latestOffset       = -1
	earliestOffset     = -2
	maxTimestampOffset = -3 // since version 7
	earliestLocal      = -4 // since version 8
	latestTiered       = -5 // since version 9
)

const consumerReplica = -1

// listing is one ListOffsets request under way.
type listing struct {
	b         *Broker
	q         *Request
	replica   int32
	isolation int8
	seen      map[wire.TopicPartition]bool
}

// handleListOffsets finds offsets by time (KafkaApis.handleListOffsetRequest).
func handleListOffsets(b *Broker, q *Request) {
	l := listing{b: b, q: q, seen: make(map[wire.TopicPartition]bool)}
	r := wire.NewReader(q.Body)
	flexible := q.Flexible
	l.replica = r.Int32()
	if q.Version >= 2 {
		l.isolation = r.Int8()
		q.W.Int32(0) // throttle time
	}
	twice := l.repeated(r)
	topics := r.Array(flexible, 3)
	q.W.Length(flexible, topics)
	for ; topics > 0 && r.Err() == nil; topics-- {
		name := r.String(flexible)
		parts := r.Array(flexible, 12)
		q.W.StringBytes(flexible, name)
		q.W.Length(flexible, parts)
		t := b.Replicas.Topic(name)
		for ; parts > 0 && r.Err() == nil; parts-- {
			l.partition(&r, name, t, twice)
		}
		r.Tags(flexible)
		q.W.Tags(flexible)
	}
	r.Tags(flexible)
	q.W.Tags(flexible)
	if r.Err() != nil {
		q.malformed()
		return
	}
	q.Done()
}

// repeated returns the partitions that are named more than once, which is an
// error for each of them from version 1 on.
func (l *listing) repeated(r wire.Reader) map[wire.TopicPartition]bool {
	if l.q.Version == 0 {
		return nil
	}
	var twice map[wire.TopicPartition]bool
	for topics := r.Array(l.q.Flexible, 3); topics > 0 && r.Err() == nil; topics-- {
		name := string(r.String(l.q.Flexible))
		for parts := r.Array(l.q.Flexible, 12); parts > 0 && r.Err() == nil; parts-- {
			index, _, _, _ := l.read(&r)
			tp := wire.TopicPartition{Topic: name, Partition: index}
			if l.seen[tp] {
				if twice == nil {
					twice = make(map[wire.TopicPartition]bool)
				}
				twice[tp] = true
			}
			l.seen[tp] = true
		}
		r.Tags(l.q.Flexible)
	}
	return twice
}

func (l *listing) read(r *wire.Reader) (index, epoch int32, timestamp int64, most int32) {
	index, epoch, most = r.Int32(), -1, 1
	if l.q.Version >= 4 {
		epoch = r.Int32()
	}
	timestamp = r.Int64()
	if l.q.Version == 0 {
		most = r.Int32()
	}
	r.Tags(l.q.Flexible)
	return index, epoch, timestamp, most
}

func (l *listing) partition(r *wire.Reader, name []byte, t *replica.Topic, twice map[wire.TopicPartition]bool) {
	index, epoch, timestamp, most := l.read(r)
	w, v := &l.q.W, l.q.Version
	if r.Err() != nil {
		return
	}
	var p *replica.Partition
	if t != nil {
		p = t.Partition(index)
	}
	w.Int32(index)
	if v == 0 {
		l.old(p, name, index, timestamp, most)
		return
	}
	found, code := storage.TimestampOffset{Timestamp: -1, Offset: -1, LeaderEpoch: -1}, wire.InvalidRequest
	if len(twice) == 0 || !twice[wire.TopicPartition{Topic: string(name), Partition: index}] {
		found, code = l.find(p, name, index, epoch, timestamp)
	}
	if code != wire.None {
		found = storage.TimestampOffset{Timestamp: -1, Offset: -1, LeaderEpoch: -1}
	}
	w.Int16(int16(code))
	w.Int64(found.Timestamp)
	w.Int64(found.Offset)
	if v >= 4 {
		w.Int32(found.LeaderEpoch)
	}
	w.Tags(l.q.Flexible)
}

// supported tells whether a negative timestamp means something in this version.
func supported(timestamp int64, version int16) bool {
	switch timestamp {
	case latestOffset, earliestOffset:
		return true
	case maxTimestampOffset:
		return version >= 7
	case earliestLocal:
		return version >= 8
	case latestTiered:
		return version >= 9
	default:
		return timestamp >= 0
	}
}

func (l *listing) find(p *replica.Partition, name []byte, index, epoch int32, timestamp int64) (storage.TimestampOffset, wire.Code) {
	none := storage.TimestampOffset{Timestamp: -1, Offset: -1, LeaderEpoch: -1}
	if !supported(timestamp, l.q.Version) {
		return none, wire.UnsupportedVersion
	}
	if p == nil {
		return none, l.b.missing(name, index)
	}
	log, code := p.Leading(epoch)
	if code != wire.None {
		return none, code
	}
	view, last := p.View(), log.EndOffset()
	if l.replica == consumerReplica {
		if last = p.HighWatermark(); l.isolation == readCommitted {
			last = p.LastStableOffset()
		}
	}
	// After an election the high watermark may lag behind what the last leader
	// told clients: better no answer than one that goes back (KIP-207).
	lagging := wire.None
	if l.replica == consumerReplica && view.EpochStart > last {
		if lagging = wire.LeaderNotAvailable; l.q.Version >= 5 {
			lagging = wire.OffsetNotAvailable
		}
	}
	switch timestamp {
	case latestOffset:
		return storage.TimestampOffset{Timestamp: -1, Offset: last, LeaderEpoch: view.LeaderEpoch}, lagging
	case earliestOffset, earliestLocal:
		start := log.StartOffset()
		return storage.TimestampOffset{Timestamp: -1, Offset: start, LeaderEpoch: log.EpochForOffset(start)}, wire.None
	case latestTiered: // nothing is tiered
		return none, wire.None
	}
	return byTime(log, timestamp, last, lagging)
}

func byTime(log *storage.Log, timestamp, last int64, lagging wire.Code) (storage.TimestampOffset, wire.Code) {
	search := func() (storage.TimestampOffset, bool, error) { return log.OffsetForTimestamp(timestamp) }
	if timestamp == maxTimestampOffset {
		search = log.MaxTimestamp
	}
	at, found, err := search()
	switch {
	case err != nil:
		return at, storage.Code(err)
	case found && at.Offset < last:
		return at, wire.None
	case found && lagging != wire.None:
		return at, lagging
	}
	return storage.TimestampOffset{Timestamp: -1, Offset: -1, LeaderEpoch: -1}, wire.None
}

// old answers version 0: the starts of the segments that were last written by
// the given time, the newest first (UnifiedLog.legacyFetchOffsetsBefore).
func (l *listing) old(p *replica.Partition, name []byte, index int32, timestamp int64, most int32) {
	w := &l.q.W
	offsets, code := l.findOld(p, name, index, timestamp, int(max(most, 0)))
	w.Int16(int16(code))
	w.Int32(int32(len(offsets)))
	for _, o := range offsets {
		w.Int64(o)
	}
}

func (l *listing) findOld(p *replica.Partition, name []byte, index int32, timestamp int64, most int) ([]int64, wire.Code) {
	if !supported(timestamp, l.q.Version) {
		return nil, wire.UnsupportedVersion
	}
	if p == nil {
		return nil, l.b.missing(name, index)
	}
	log, code := p.Leading(-1)
	if code != wire.None {
		return nil, code
	}
	end := log.EndOffset()
	segments, err := log.SegmentTimes()
	if err != nil {
		return nil, storage.Code(err)
	}
	offsets := offsetsBefore(segments, end, timestamp, l.q.Received.UnixMilli(), most)
	if l.replica == consumerReplica {
		offsets = belowWatermark(offsets, p.HighWatermark())
	}
	return offsets, wire.None
}

// offsetsBefore returns at most that many segment starts, the newest first,
// from the last segment that was written by the given time. The end of the log
// counts as the start of one that is written now.
func offsetsBefore(segments []storage.SegmentTime, end, timestamp, now int64, most int) []int64 {
	if n := len(segments); n == 0 || end > segments[n-1].Start {
		segments = append(segments, storage.SegmentTime{Start: end, Modified: now})
	}
	from := len(segments) - 1
	switch timestamp {
	case latestOffset:
	case earliestOffset:
		from = 0
	default:
		for from >= 0 && segments[from].Modified > timestamp {
			from--
		}
	}
	newest := make([]int64, 0, min(most, from+1))
	for i := from; i >= 0 && len(newest) < most; i-- {
		newest = append(newest, segments[i].Start)
	}
	return newest
}

// belowWatermark replaces what lies beyond the high watermark by it.
func belowWatermark(offsets []int64, hw int64) []int64 {
	i := 0
	for i < len(offsets) && offsets[i] > hw {
		i++
	}
	if i == 0 {
		return offsets
	}
	return append([]int64{hw}, offsets[i:]...)
}
