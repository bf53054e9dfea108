package api

import (
	"io"

	"barnabas/internal/record"
	"barnabas/internal/replica"
	"barnabas/internal/storage"
	"barnabas/internal/wire"
)

// read looks at the partitions that may have something and fills results.
func (f *fetching) read() {
	f.dropResults()
	left, minOne := f.maxBytes, f.q.Version >= 3
	for _, p := range f.set.take(f.incremental) {
		if f.incremental && left <= 0 && !minOne {
			f.set.mark(p) // next time
			continue
		}
		d := newFetched(p)
		f.readPartitionOf(&d, left, minOne)
		if f.incremental && !d.worthTelling() {
			if d.again() {
				f.set.mark(p)
			}
			continue
		}
		if n := d.size() + d.slice.Spared; n > 0 {
			left -= n
			f.bytes += n
			minOne = false
		}
		f.failed = f.failed || d.code != wire.None || d.diverging.Epoch >= 0 || d.preferred >= 0
		f.results = append(f.results, d)
	}
	if f.set.standing {
		for i := range f.results { // behind those that had no turn
			if d := &f.results[i]; d.again() {
				f.set.mark(d.of)
			}
		}
	}
}

// dropResults forgets what an earlier look found.
func (f *fetching) dropResults() {
	for i := range f.results {
		f.results[i].slice.Release()
	}
	clear(f.results)
	f.results, f.bytes, f.failed = f.results[:0], 0, false
}

// worthTelling tells whether an incremental answer has to name the partition
// (CachedPartition.maybeUpdateResponseData).
func (d *fetched) worthTelling() bool {
	p := d.of
	return !p.told || d.size() > 0 || d.code != wire.None || d.diverging.Epoch >= 0 || d.preferred >= 0 ||
		d.hw != p.hw || d.lso != p.lso || d.start != p.start
}

// again tells whether the partition has to be looked at in the next fetch of
// the session also when nothing changes: there is more, or an error is told
// until it is over.
func (d *fetched) again() bool {
	return d.code != wire.None || d.diverging.Epoch >= 0 || d.preferred >= 0 || d.of.offset < d.bound
}

// find looks a partition up that was not here before, or is not any more.
func (f *fetching) find(p *fetchPartition) wire.Code {
	if p.part != nil && p.part.View().Role != replica.Gone {
		return wire.None
	}
	p.sub.Unsubscribe()
	p.part = nil
	t, topic := f.findTopic([]byte(p.topic), p.id)
	if f.q.Version >= 13 && topic == "" {
		return wire.UnknownTopicID
	}
	if p.topic = topic; t != nil {
		p.part = t.Partition(p.index)
	}
	if p.part == nil {
		return f.b.missing([]byte(topic), p.index)
	}
	if f.set.standing {
		p.sub.Follower = f.replica >= 0
		p.part.Subscribe(&p.sub)
	}
	return wire.None
}

func (f *fetching) readPartitionOf(d *fetched, left int, minOne bool) {
	p := d.of
	if d.code = f.find(p); d.code != wire.None {
		d.withAborted = d.code != wire.NotLeaderOrFollower // Kafka's answer has an empty list here, and null elsewhere
		return
	}
	log, code := f.serving(p)
	switch {
	case code != wire.None:
	case f.replica >= 0:
		code = f.readForFollower(d, log, left, minOne)
	default:
		code = f.readLog(d, log, left, minOne)
	}
	if code == wire.None {
		code = f.convert(d, log)
	}
	if code == wire.KafkaStorageError && f.q.Version <= 5 {
		code = wire.NotLeaderOrFollower // old clients don't know it, and must look for another leader
	}
	if d.code = code; code != wire.None {
		d.slice.Release()
		*d = newFetched(p)
		d.code = code
	}
}

// diverges tells whether the log holds something else at the epoch that was
// fetched last (KIP-595).
func (d *fetched) diverges(log *storage.Log) wire.Code {
	p := d.of
	if p.fetchEpoch < 0 {
		return wire.None
	}
	end := log.EndOffsetForEpoch(p.fetchEpoch)
	switch {
	case end.EndOffset < 0 || p.offset < log.StartOffset(): // no epoch is known that far back
		return wire.OffsetOutOfRange
	case end.Epoch < p.fetchEpoch || end.EndOffset < p.offset:
		d.diverging = end
	}
	return wire.None
}

// readForFollower reads up to the end of the log, and notes where the follower
// stands when it asks: not when it is looked at again because something came.
func (f *fetching) readForFollower(d *fetched, log *storage.Log, left int, minOne bool) wire.Code {
	p := d.of
	at := replica.FollowerFetch{Replica: f.replica, BrokerEpoch: f.brokerEpoch, Offset: p.offset, LogStart: p.logStart, LeaderEpoch: p.leaderEpoch}
	if f.session != nil {
		at.Asker = f.session.asked
	}
	if code := p.part.Follows(&at); code != wire.None {
		return code
	}
	if code := d.diverges(log); code != wire.None {
		return code
	}
	d.hw, d.lso, d.start = p.part.HighWatermark(), p.part.LastStableOffset(), log.StartOffset()
	leo := log.EndOffset()
	d.bound = leo
	if d.diverging.Epoch >= 0 {
		return wire.None
	}
	if p.offset != leo && !p.part.HoldsBack(f.replica) {
		slice, err := log.Read(p.offset, min(max(p.maxBytes, 0), max(left, 0)), leo, minOne)
		if err != nil {
			return storage.Code(err)
		}
		if slice.FirstIncomplete {
			slice.Release()
			slice = storage.Slice{}
		}
		d.slice = slice
	}
	if !f.wait.parked {
		p.part.Fetched(&at, leo)
		d.hw = p.part.HighWatermark() // which this fetch may have moved
	}
	return wire.None
}

func (f *fetching) readLog(d *fetched, log *storage.Log, left int, minOne bool) wire.Code {
	p := d.of
	if d.preferred = f.nearest(p); d.preferred >= 0 {
		d.hw, d.lso, d.start = p.part.HighWatermark(), p.part.LastStableOffset(), log.StartOffset()
		d.withAborted = f.isolation == readCommitted
		return wire.None
	}
	if code := d.diverges(log); code != wire.None {
		return code
	}
	d.hw, d.lso, d.start = p.part.HighWatermark(), p.part.LastStableOffset(), log.StartOffset()
	upTo := d.hw
	if f.isolation == readCommitted {
		upTo = d.lso
		d.withAborted = true
	}
	d.bound = upTo
	if d.diverging.Epoch >= 0 || p.offset == upTo {
		return wire.None
	}
	slice, err := log.Read(p.offset, min(max(p.maxBytes, 0), max(left, 0)), upTo, minOne)
	if err != nil {
		return storage.Code(err)
	}
	if slice.FirstIncomplete && f.q.Version >= 3 {
		// From version 3 on clients get by without a piece of a batch.
		slice.Release()
		slice = storage.Slice{}
	}
	d.slice = slice
	if d.withAborted && slice.Len > 0 {
		if d.aborted, err = log.AbortedTransactions(p.offset, upTo); err != nil {
			return storage.Code(err)
		}
	}
	return wire.None
}

// convert turns what was read into the format that the client knows
// (KafkaApis.maybeConvertFetchedData).
func (f *fetching) convert(d *fetched, log *storage.Log) wire.Code {
	v, c := f.q.Version, log.Config()
	if v < 10 && record.Codec(c.Compression) == record.Zstd {
		return wire.UnsupportedCompressionType
	}
	if v > 3 || d.slice.Len == 0 {
		return wire.None
	}
	magic := int8(1)
	if v <= 1 {
		magic = 0
	}
	set := make([]byte, d.slice.Len)
	if n, err := d.slice.ReadAt(set, 0); n < len(set) && err != nil && err != io.EOF {
		return storage.Code(err)
	}
	d.slice.Release()
	d.slice = storage.Slice{Spared: d.slice.Spared}
	if !c.MessageDownconversionEnable && newerThan(set, magic) {
		return wire.UnsupportedVersion
	}
	converted, err := record.ConvertDown(set, record.ConvertOptions{Magic: magic, FirstOffset: d.of.offset})
	if err != nil && len(converted) == 0 {
		return record.CodeOf(err)
	}
	d.converted = converted
	return wire.None
}

// newerThan tells whether a set has an entry of a newer format than magic.
func newerThan(set []byte, magic int8) bool {
	s := record.Split(set)
	for s.Next() {
		if s.Batch().Magic() > magic {
			return true
		}
	}
	return false
}
