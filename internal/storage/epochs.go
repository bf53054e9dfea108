package storage

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
)

// epochStart: the leader epoch began at this offset.
type epochStart struct {
	epoch int32
	start int64
}

// epochs is a log's leader epochs (KIP-101; Kafka's LeaderEpochFileCache): which
// epoch wrote which offsets. Entries grow in both fields. Its mutex is a leaf.
type epochs struct {
	mu struct {
		sync.Mutex
		entries []epochStart
		saved   []epochStart // what the file holds; nothing when there is none
		synced  bool         // for good
	}
}

// assign notes that epoch begins at start. Entries that contradict it go: those
// at or beyond start, which had no records, and those of larger epochs, which
// remain when a cluster's metadata was lost and epochs begin anew.
func (e *epochs) assign(epoch int32, start int64) {
	if epoch < 0 || start < 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	entries := e.mu.entries
	n := len(entries)
	if n > 0 && entries[n-1].epoch == epoch && entries[n-1].start <= start {
		return
	}
	for n > 0 && (entries[n-1].start >= start || entries[n-1].epoch >= epoch) {
		n--
	}
	e.mu.entries = append(entries[:n], epochStart{epoch, start})
}

// recovered notes that recovery has passed a batch of epoch at base. Recovery may
// begin in the middle of an epoch: what agrees with the batch stays as it is, and
// so does the start of its epoch. What contradicts it goes.
func (e *epochs) recovered(epoch int32, base int64) {
	if epoch < 0 || e.forOffset(base) == epoch {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	entries := e.mu.entries
	n := len(entries)
	for n > 0 && (entries[n-1].start >= base || entries[n-1].epoch > epoch) {
		n--
	}
	entries = entries[:n]
	if n == 0 || entries[n-1].epoch != epoch {
		entries = append(entries, epochStart{epoch, base})
	}
	e.mu.entries = entries
}

func (e *epochs) latest() int32 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := len(e.mu.entries); n > 0 {
		return e.mu.entries[n-1].epoch
	}
	return -1
}

// forOffset returns the epoch that wrote an offset, or -1.
func (e *epochs) forOffset(offset int64) int32 {
	e.mu.Lock()
	defer e.mu.Unlock()
	entries := e.mu.entries
	i := sort.Search(len(entries), func(i int) bool { return entries[i].start > offset })
	if i == 0 {
		return -1
	}
	return entries[i-1].epoch
}

// endFor answers OffsetForLeaderEpoch; end is the log's end offset.
func (e *epochs) endFor(epoch int32, end int64) EpochEnd {
	undefined := EpochEnd{-1, -1}
	e.mu.Lock()
	defer e.mu.Unlock()
	entries := e.mu.entries
	n := len(entries)
	if epoch < 0 || n == 0 || epoch > entries[n-1].epoch {
		return undefined
	}
	if epoch == entries[n-1].epoch {
		return EpochEnd{epoch, end}
	}
	i := sort.Search(n, func(i int) bool { return entries[i].epoch > epoch }) // i < n
	if i == 0 {
		return EpochEnd{epoch, entries[0].start}
	}
	return EpochEnd{entries[i-1].epoch, entries[i].start}
}

// truncateFromEnd drops the epochs that begin at or beyond end.
func (e *epochs) truncateFromEnd(end int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(e.mu.entries)
	for n > 0 && e.mu.entries[n-1].start >= end {
		n--
	}
	if n < len(e.mu.entries) {
		e.mu.entries = e.mu.entries[:n]
	}
}

// truncateFromStart drops the epochs that lie wholly below start; the one that
// goes across begins at start from now on.
func (e *epochs) truncateFromStart(start int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	entries := e.mu.entries
	i := sort.Search(len(entries), func(i int) bool { return entries[i].start > start })
	if i == 0 || i == 1 && entries[0].start == start {
		return
	}
	kept := append([]epochStart(nil), entries[i-1:]...)
	kept[0].start = start
	e.mu.entries = kept
}

func (e *epochs) clear() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.mu.entries) > 0 {
		e.mu.entries = nil
	}
}

// parse reads the file's content; an error leaves e empty.
func (e *epochs) parse(data []byte) error {
	lines, err := checkpointLines(data)
	if err != nil {
		return err
	}
	var entries []epochStart
	for _, line := range lines {
		f := strings.Fields(line)
		if len(f) != 2 {
			return fmt.Errorf("%w: line %.100q", errCheckpoint, line)
		}
		epoch, eerr := strconv.ParseInt(f[0], 10, 32)
		start, serr := strconv.ParseInt(f[1], 10, 64)
		if eerr != nil || serr != nil || epoch < 0 || start < 0 {
			return fmt.Errorf("%w: line %.100q", errCheckpoint, line)
		}
		n := len(entries)
		if n > 0 && (int32(epoch) <= entries[n-1].epoch || start < entries[n-1].start) {
			return fmt.Errorf("%w: line %.100q is out of order", errCheckpoint, line)
		}
		entries = append(entries, epochStart{int32(epoch), start})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.entries = entries
	e.mu.saved, e.mu.synced = slices.Clone(entries), true
	return nil
}

// unsaved returns the file's content and the entries in it, for markSaved, or a
// nil content when the file is up to date (and, with durable, on the disk).
// Epochs without a record, at the log's end, are left out: a start drops them
// anyhow (as Kafka's LogLoader does), and whoever leads next notes its own. So a
// leader of many idle partitions writes nothing.
func (e *epochs) unsaved(durable bool, end int64) (data []byte, entries []epochStart) {
	e.mu.Lock()
	defer e.mu.Unlock()
	entries = e.mu.entries
	n := len(entries)
	for n > 0 && entries[n-1].start >= end {
		n--
	}
	entries = entries[:n:n]
	if slices.Equal(entries, e.mu.saved) && (!durable || e.mu.synced) {
		return nil, nil
	}
	b := append([]byte(checkpointVersion+"\n"), strconv.Itoa(n)...)
	b = append(b, '\n')
	for _, entry := range entries {
		b = append(strconv.AppendInt(b, int64(entry.epoch), 10), ' ')
		b = append(strconv.AppendInt(b, entry.start, 10), '\n')
	}
	return b, slices.Clone(entries)
}

// take makes the epochs those of another log.
func (e *epochs) take(from *epochs) {
	from.mu.Lock()
	entries := slices.Clone(from.mu.entries)
	from.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.entries = entries
}

// savedAs notes that the file is that of another log.
func (e *epochs) savedAs(from *epochs) {
	from.mu.Lock()
	saved, synced := from.mu.saved, from.mu.synced
	from.mu.Unlock()
	e.markSaved(saved, synced)
}

// markSaved notes what the file holds; synced tells whether for good.
func (e *epochs) markSaved(entries []epochStart, synced bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.saved, e.mu.synced = entries, synced
}
