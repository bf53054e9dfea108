package storage

import (
	"errors"
	"fmt"
	"maps"
	"sort"
	"strconv"
	"strings"

	"barnabas/internal/vfs"
	"barnabas/internal/wire"
)

// Kafka's checkpoint files are text (classes CheckpointFile, OffsetCheckpointFile,
// LeaderEpochCheckpointFile):
//
//	0                       the version
//	2                       how many entries follow
//	topic 0 42              topic, partition, offset
//	topic 1 17
//
// and leader-epoch-checkpoint has "epoch startOffset" for its entries.
const checkpointVersion = "0"

var errCheckpoint = errors.New("malformed checkpoint file")

// checkpointLines checks the frame of a checkpoint file and returns its entries.
// Kafka makes the files empty, which means no entries.
func checkpointLines(data []byte) ([]string, error) {
	if len(data) == 0 {
		return nil, nil
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	if len(lines) < 2 {
		return nil, fmt.Errorf("%w: %d lines", errCheckpoint, len(lines))
	}
	if strings.TrimSpace(lines[0]) != checkpointVersion {
		return nil, fmt.Errorf("%w: unknown version %.20q", errCheckpoint, lines[0])
	}
	n, err := strconv.Atoi(strings.TrimSpace(lines[1]))
	if err != nil || n != len(lines)-2 {
		return nil, fmt.Errorf("%w: %d entries where %.20q are announced", errCheckpoint, len(lines)-2, lines[1])
	}
	return lines[2:], nil
}

func parseOffsets(data []byte) (map[wire.TopicPartition]int64, error) {
	lines, err := checkpointLines(data)
	if err != nil {
		return nil, err
	}
	offsets := make(map[wire.TopicPartition]int64, len(lines))
	for _, line := range lines {
		f := strings.Fields(line)
		if len(f) != 3 {
			return nil, fmt.Errorf("%w: line %.100q", errCheckpoint, line)
		}
		p, perr := strconv.ParseInt(f[1], 10, 32)
		o, oerr := strconv.ParseInt(f[2], 10, 64)
		if perr != nil || oerr != nil || p < 0 || o < 0 {
			return nil, fmt.Errorf("%w: line %.100q", errCheckpoint, line)
		}
		offsets[wire.TopicPartition{Topic: f[0], Partition: int32(p)}] = o
	}
	return offsets, nil
}

func formatOffsets(offsets map[wire.TopicPartition]int64) []byte {
	keys := make([]wire.TopicPartition, 0, len(offsets))
	for tp := range offsets {
		keys = append(keys, tp)
	}
	sort.Slice(keys, func(i, j int) bool {
		a, b := keys[i], keys[j]
		return a.Topic < b.Topic || a.Topic == b.Topic && a.Partition < b.Partition
	})
	b := append([]byte(checkpointVersion+"\n"), strconv.Itoa(len(keys))...)
	b = append(b, '\n')
	for _, tp := range keys {
		b = append(append(b, tp.Topic...), ' ')
		b = append(strconv.AppendInt(b, int64(tp.Partition), 10), ' ')
		b = append(strconv.AppendInt(b, offsets[tp], 10), '\n')
	}
	return b
}

// offsetCheckpoint is one checkpoint file of a log directory. It belongs to one
// goroutine at a time (logDir.checkpoints).
type offsetCheckpoint struct {
	fs     vfs.FS
	path   string
	last   map[wire.TopicPartition]int64 // what the file holds, nil when not known
	synced bool                          // that is on the disk
}

// read returns the entries; none when the file is absent. A damaged file is an
// error that wraps errCheckpoint.
func (c *offsetCheckpoint) read() (map[wire.TopicPartition]int64, error) {
	ok, err := vfs.Exists(c.fs, c.path)
	if err != nil || !ok {
		return map[wire.TopicPartition]int64{}, err
	}
	data, err := vfs.ReadFile(c.fs, c.path, maxSmallFile)
	if err != nil {
		return nil, err
	}
	offsets, err := parseOffsets(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.path, err)
	}
	c.last = offsets
	return offsets, nil
}

// mayName tells whether the file has an entry for tp, or could have after lost
// power.
func (c *offsetCheckpoint) mayName(tp wire.TopicPartition) bool {
	_, ok := c.last[tp]
	return ok || c.last != nil && !c.synced
}

// write replaces the file unless it holds these entries already, on the disk if
// it is to be durable. It keeps offsets.
func (c *offsetCheckpoint) write(offsets map[wire.TopicPartition]int64, durable bool) error {
	if c.last != nil && maps.Equal(offsets, c.last) && (c.synced || !durable) {
		return nil
	}
	if err := vfs.WriteFileAtomic(c.fs, c.path, formatOffsets(offsets), 0o644, durable); err != nil {
		c.last = nil
		return err
	}
	c.last, c.synced = offsets, durable
	return nil
}
