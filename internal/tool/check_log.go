package tool

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"barnabas/internal/record"
)

// checkLogCommand has no counterpart among Kafka's scripts.
func checkLogCommand() *Command {
	return &Command{
		Name: "check-log", Short: "Verify the files of log directories while no broker runs on them",
		Purpose: "This tool reads every batch of every segment, and what the indexes and snapshots say of them. It changes nothing.",
		Example: []string{"barnabas check-log --log-dirs barnabas-data"},
		Options: []Option{
			{Name: "log-dirs", Arg: "String: dir1, dir2, ...", Required: true, Ours: true, Text: "The log directories, or single partitions' folders."},
			{Name: "quiet", Ours: true, Text: "Tell of what is wrong only."},
		},
		Run: runCheckLog,
	}
}

// checking is one run.
type checking struct {
	c        *Call
	problems int
	bytes    int64
	batches  int64
}

func runCheckLog(c *Call) error {
	if err := c.Args.needs("log-dirs"); err != nil {
		return err
	}
	k := &checking{c: c}
	var folders []string
	for _, dir := range strings.Split(c.Args.Text("log-dirs"), ",") {
		dir = strings.TrimSpace(dir)
		own, err := filepath.Glob(filepath.Join(dir, "*.log"))
		if err != nil {
			return err
		}
		if len(own) > 0 {
			folders = append(folders, dir)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.IsDir() && strings.Contains(e.Name(), "-") && !strings.HasSuffix(e.Name(), "-delete") {
				folders = append(folders, filepath.Join(dir, e.Name()))
			}
		}
	}
	for i, folder := range folders {
		if err := k.folder(folder); err != nil {
			return err
		}
		if !c.Args.Has("quiet") && (i+1)%100 == 0 {
			fmt.Fprintf(c.Err, "%d of %d partitions, %d MiB\n", i+1, len(folders), k.bytes>>20)
		}
	}
	if !c.Args.Has("quiet") {
		fmt.Fprintf(c.Out, "%d partitions, %d batches, %d bytes: %d problems\n", len(folders), k.batches, k.bytes, k.problems)
	}
	if k.problems > 0 {
		return ErrReported
	}
	return nil
}

func (k *checking) bad(file, format string, args ...any) {
	k.problems++
	fmt.Fprintf(k.c.Out, "%s: %s\n", file, fmt.Sprintf(format, args...))
}

func (k *checking) folder(dir string) error {
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return err
	}
	slices.Sort(logs)
	next := int64(0)
	for _, name := range logs {
		base, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(name), ".log"), 10, 64)
		if err != nil {
			continue
		}
		if base < next {
			k.bad(name, "begins at offset %d, the segment before it ends at %d", base, next)
		}
		at, err := k.segment(name, base)
		if err != nil {
			return err
		}
		next = max(at, base)
	}
	snapshots, err := filepath.Glob(filepath.Join(dir, "*.snapshot"))
	for _, name := range snapshots {
		k.snapshot(name)
	}
	return err
}

// segment walks the batches and returns the offset after the last one.
func (k *checking) segment(name string, base int64) (int64, error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	ends := map[int64]int64{} // position -> last offset
	next, pos := base, int64(0)
	var b record.Batch
	head := make([]byte, record.BatchHeaderSize)
	for pos < info.Size() {
		if err := k.c.Context.Err(); err != nil {
			return 0, err
		}
		n, err := f.ReadAt(head, pos)
		if err != nil && err != io.EOF {
			return 0, err
		}
		size, err := record.EntrySize(head[:n])
		if err != nil || size == 0 || pos+int64(size) > info.Size() {
			k.bad(name, "%d bytes from position %d on are no whole batch", info.Size()-pos, pos)
			break
		}
		b = slices.Grow(b[:0], size)[:size]
		if _, err := f.ReadAt(b, pos); err != nil {
			return 0, err
		}
		k.batch(name, b, pos, next)
		ends[pos] = b.LastOffset()
		next = max(next, b.NextOffset())
		k.batches++
		pos += int64(size)
	}
	k.bytes += pos
	k.index(strings.TrimSuffix(name, ".log")+".index", base, ends)
	return next, nil
}

func (k *checking) batch(name string, b record.Batch, pos, next int64) {
	switch err := b.Check(); {
	case err != nil:
		k.bad(name, "position %d, offset %d: %v", pos, b.LastOffset(), err)
		return
	case b.LastOffset() < next || b.Magic() >= 2 && b.BaseOffset() < next:
		k.bad(name, "position %d: offset %d comes after %d", pos, b.BaseOffset(), next-1)
	}
	if err := b.Each(0, func(*record.Record) error { return nil }); err != nil {
		k.bad(name, "position %d, offset %d: %v", pos, b.LastOffset(), err)
	}
}

// index checks that each entry names the batch at its position.
func (k *checking) index(name string, base int64, ends map[int64]int64) {
	data, err := os.ReadFile(name)
	if err != nil {
		return // it is made anew
	}
	for i := 0; i+8 <= len(data); i += 8 {
		offset, pos := base+int64(binary.BigEndian.Uint32(data[i:])), int64(binary.BigEndian.Uint32(data[i+4:]))
		if offset == base && pos == 0 {
			return // zeros that a crash left
		}
		// An entry names the last offset of what was appended at once, which may
		// be several batches from there on.
		if last, ok := ends[pos]; !ok || last > offset {
			k.bad(name, "entry %d says that offset %d lies at position %d", i/8, offset, pos)
			return
		}
	}
}

func (k *checking) snapshot(name string) {
	data, err := os.ReadFile(name)
	if err != nil || len(data) < 10 || (len(data)-10)%46 != 0 ||
		crc32.Checksum(data[6:], crc32.MakeTable(crc32.Castagnoli)) != binary.BigEndian.Uint32(data[2:]) {
		k.bad(name, "it is no whole producer snapshot")
	}
}
