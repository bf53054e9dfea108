package storage

import (
	"fmt"
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
		changes uint64 // counts changes
		saved   uint64 // changes that the file holds
		synced  uint64 // changes that it holds for good
		onDisk  bool   // there is a file
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
	e.mu.changes++
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
		e.mu.changes++
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
	e.mu.changes++
}

func (e *epochs) clear() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.mu.entries) > 0 {
		e.mu.entries = nil
		e.mu.changes++
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
	return nil
}

// exists notes that there is a file, whatever it holds.
func (e *epochs) exists() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.onDisk = true
}

// unsaved returns the file's content and a ticket for markSaved, or nil when the
// file is up to date (and, with durable, on the disk). An empty log has no use
// for the file before there is one: an epoch without records ends where it
// began, and whoever leads next notes its own.
func (e *epochs) unsaved(durable, empty bool) (data []byte, ticket uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.saved == e.mu.changes && (!durable || e.mu.synced == e.mu.changes) || empty && !e.mu.onDisk {
		return nil, 0
	}
	b := append([]byte(checkpointVersion+"\n"), strconv.Itoa(len(e.mu.entries))...)
	b = append(b, '\n')
	for _, entry := range e.mu.entries {
		b = append(strconv.AppendInt(b, int64(entry.epoch), 10), ' ')
		b = append(strconv.AppendInt(b, entry.start, 10), '\n')
	}
	return b, e.mu.changes
}

func (e *epochs) markSaved(ticket uint64, durable bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.saved = max(e.mu.saved, ticket)
	e.mu.onDisk = true
	if durable {
		e.mu.synced = max(e.mu.synced, ticket)
	}
}
