package tool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
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
		Purpose: "This tool reads every batch of every segment, and what the indexes and snapshots say of them. It changes nothing; with --repair-to it writes a copy that holds every whole batch, for a broker to start on.",
		Example: []string{"barnabas check-log --log-dirs barnabas-data", "barnabas check-log --log-dirs barnabas-data --repair-to repaired"},
		Options: []Option{
			{Name: "log-dirs", Arg: "String: dir1, dir2, ...", Required: true, Ours: true, Text: "The log directories, or single partitions' folders."},
			{Name: "repair-to", Arg: "String: folder", Ours: true, Text: "A new or empty folder for a repaired copy: all batches that are whole, and what lies between them in files of its own. Of several log directories the copies lie in it by number."},
			{Name: "quiet", Ours: true, Text: "Tell of what is wrong only."},
		},
		Run: runCheckLog,
	}
}

// checking is one run.
type checking struct {
	c        *Call
	problems []problem
	bytes    int64
	batches  int64
	read     int64 // bytes of segments, also those in no batch
	said     int64 // read when progress was last told
	bar      *progress
	repair   *repairing // nil: nothing is written
}

// problem is something wrong with a file.
type problem struct {
	File    string `json:"file"`
	Problem string `json:"problem"`
}

func runCheckLog(c *Call) error {
	if err := c.Args.needs("log-dirs"); err != nil {
		return err
	}
	k := &checking{c: c}
	dirs := strings.Split(c.Args.Text("log-dirs"), ",")
	for i := range dirs {
		dirs[i] = strings.TrimSpace(dirs[i])
	}
	var err error
	if to := c.Args.Text("repair-to"); to != "" {
		if k.repair, err = newRepair(k, to, dirs); err != nil {
			return err
		}
	}
	k.bar = c.progress("bytes checked", segmentBytes(dirs))
	defer k.bar.end()
	done := 0
	for i, dir := range dirs {
		n, err := k.logDir(dir, i, len(dirs))
		if err != nil {
			return err
		}
		done += n
	}
	k.bar.end()
	if err := k.report(done); err != nil {
		return err
	}
	if len(k.problems) > 0 {
		return ErrReported
	}
	return nil
}

// segmentBytes is how much there is to check. Of what can't be read the check
// itself tells.
func segmentBytes(dirs []string) (sum int64) {
	for _, dir := range dirs {
		for _, pattern := range []string{"*.log", "*-*/*.log"} {
			files, _ := filepath.Glob(filepath.Join(dir, pattern)) // the patterns are good
			for _, name := range files {
				if info, err := os.Stat(name); err == nil {
					sum += info.Size()
				}
			}
		}
	}
	return sum
}

func (k *checking) report(partitions int) error {
	if k.c.JSON {
		document := map[string]any{"partitions": partitions, "batches": k.batches, "bytes": k.bytes, "problems": append([]problem{}, k.problems...)}
		if k.repair != nil {
			document["copy"], document["bytesInNoBatch"] = k.repair.to, k.repair.lost
		}
		return k.c.printJSON(document)
	}
	if !k.c.Args.Has("quiet") {
		fmt.Fprintf(k.c.Out, "%d partitions, %d batches, %d bytes: %d problems\n", partitions, k.batches, k.bytes, len(k.problems))
	}
	if k.repair != nil {
		fmt.Fprintf(k.c.Out, "the copy in %s has every whole batch; %d bytes that are in none lie in its *.cut files\n", k.repair.to, k.repair.lost)
	}
	return nil
}

// logDir checks a log directory, or a single partition's folder.
func (k *checking) logDir(dir string, i, of int) (partitions int, err error) {
	own, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return 0, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	var folders []string
	target := ""
	if k.repair != nil {
		target = k.repair.dir(dir, i, of)
	}
	if len(own) > 0 {
		folders = append(folders, dir)
	} else if k.repair != nil {
		if err := k.repair.files(dir, target); err != nil {
			return 0, err
		}
	}
	for _, e := range entries {
		if e.IsDir() && strings.Contains(e.Name(), "-") && !strings.HasSuffix(e.Name(), "-delete") {
			folders = append(folders, filepath.Join(dir, e.Name()))
		}
	}
	for j, folder := range folders {
		if err := k.folder(folder, filepath.Join(target, filepath.Base(folder))); err != nil {
			return 0, err
		}
		if (j+1)%100 == 0 {
			k.progress(fmt.Sprintf("%s: %d of %d partitions", dir, j+1, len(folders)))
		}
	}
	return len(folders), nil
}

// progress tells in lines what a bar shows on a screen.
func (k *checking) progress(what string) {
	if !k.c.Args.Has("quiet") && !k.c.Screen {
		fmt.Fprintf(k.c.Err, "%s, %d MiB\n", what, k.read>>20)
	}
	k.said = k.read
}

func (k *checking) bad(file, format string, args ...any) {
	p := problem{file, fmt.Sprintf(format, args...)}
	k.problems = append(k.problems, p)
	if !k.c.JSON {
		k.bar.end()
		fmt.Fprintf(k.c.Out, "%s: %s\n", p.File, p.Problem)
	}
}

// folder checks a partition; target is where the copy of it goes, if one is made.
func (k *checking) folder(dir, target string) error {
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return err
	}
	slices.Sort(logs)
	if k.repair != nil {
		if err := k.repair.files(dir, target); err != nil {
			return err
		}
	}
	var bases []int64
	for i := 0; i < len(logs); i++ {
		base, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(logs[i]), ".log"), 10, 64)
		if err != nil {
			logs = slices.Delete(logs, i, i+1)
			i--
			continue
		}
		bases = append(bases, base)
	}
	next := int64(0)
	for i, name := range logs {
		if bases[i] < next {
			k.bad(name, "begins at offset %d, the segment before it ends at %d", bases[i], next)
		}
		until := int64(math.MaxInt64)
		if i+1 < len(logs) {
			until = bases[i+1]
		}
		out, err := k.repair.open(filepath.Join(target, filepath.Base(name)))
		if err != nil {
			return err
		}
		at, err := k.segment(name, max(bases[i], next), bases[i], until, out)
		if err = errors.Join(err, out.close()); err != nil {
			return err
		}
		next = max(at, bases[i])
	}
	snapshots, err := filepath.Glob(filepath.Join(dir, "*.snapshot"))
	for _, name := range snapshots {
		k.snapshot(name)
	}
	return err
}

// mostOfBatch is larger than any batch that a broker takes.
const mostOfBatch = 256 << 20

// segment walks the batches from offset next on, which must lie below until, and
// returns the offset after the last one. Behind a damage it goes on with the next
// whole batch.
func (k *checking) segment(name string, next, base, until int64, out *copying) (int64, error) {
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
	var b record.Batch
	head := make([]byte, record.BatchHeaderSize)
	for pos := int64(0); pos < info.Size(); {
		if err := k.c.Context.Err(); err != nil {
			return 0, err
		}
		n, err := f.ReadAt(head, pos)
		if err != nil && err != io.EOF {
			return 0, err
		}
		size, err := record.EntrySize(head[:n])
		good := err == nil && size > 0 && size <= mostOfBatch && pos+int64(size) <= info.Size()
		if good {
			b = slices.Grow(b[:0], size)[:size]
			if _, err := f.ReadAt(b, pos); err != nil {
				return 0, err
			}
			good = k.batch(name, b, pos, next, until)
		}
		if good {
			ends[pos] = b.LastOffset()
			next = max(next, b.NextOffset())
			k.batches++
			if err := out.batch(b); err != nil {
				return 0, err
			}
			pos += int64(size)
			k.bytes += int64(size)
			k.advance(name, int64(size))
			continue
		}
		to, err := nextBatch(f, pos, info.Size(), next, mostOfBatch)
		if err != nil {
			return 0, err
		}
		k.bad(name, "%d bytes from position %d on are in no whole batch that follows offset %d", to-pos, pos, next-1)
		if err := out.setAside(f, pos, to); err != nil {
			return 0, err
		}
		k.advance(name, to-pos)
		pos = to
	}
	k.index(strings.TrimSuffix(name, ".log")+".index", base, ends)
	return next, nil
}

// advance tells of progress from time to time.
func (k *checking) advance(name string, bytes int64) {
	k.read += bytes
	k.bar.show(min(k.read, k.bar.total))
	if k.read-k.said > 1<<30 {
		k.progress(name)
	}
}

// batch tells whether a batch is whole, and in its place.
func (k *checking) batch(name string, b record.Batch, pos, next, until int64) bool {
	switch err := b.Check(); {
	case err != nil:
		k.bad(name, "position %d, offset %d: %v", pos, b.LastOffset(), err)
	case b.LastOffset() < next || b.Magic() >= 2 && b.BaseOffset() < next:
		k.bad(name, "position %d: offset %d comes after %d", pos, b.BaseOffset(), next-1)
	case b.LastOffset() >= until:
		k.bad(name, "position %d: offset %d is beyond the segment's end at %d", pos, b.LastOffset(), until)
	default:
		if err := b.Each(0, func(*record.Record) error { return nil }); err != nil {
			k.bad(name, "position %d, offset %d: %v", pos, b.LastOffset(), err)
		}
		return true
	}
	return false
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
