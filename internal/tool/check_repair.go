package tool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"barnabas/internal/record"
)

// repairing writes a copy of log directories that holds every whole batch and
// nothing else. What lies between goes to files of its own. Indexes, producer
// snapshots, the recovery points and the clean mark are left out: the broker that
// starts on the copy, of either kind, reads the segments through and makes them.
type repairing struct {
	k    *checking
	to   string
	lost int64 // bytes that no batch has
}

// newRepair makes the folder, which must be new or empty, and none of those that
// are read.
func newRepair(k *checking, to string, dirs []string) (*repairing, error) {
	absolute, err := filepath.Abs(to)
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		of, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		if within(absolute, of) || within(of, absolute) {
			return nil, usage("--repair-to %s: the copy can't lie in %s, nor that in it", to, dir)
		}
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(to)
	if err == nil && len(entries) > 0 {
		err = usage("--repair-to %s: the folder is not empty", to)
	}
	return &repairing{k: k, to: to}, err
}

func within(name, dir string) bool {
	rel, err := filepath.Rel(dir, name)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// dir returns where the copy of a log directory goes: one is the folder itself,
// several lie in it by number.
func (r *repairing) dir(dir string, i, of int) string {
	if of == 1 {
		return r.to
	}
	return filepath.Join(r.to, strconv.Itoa(i+1)+"-"+filepath.Base(dir))
}

// kept are the small files that the copy takes over, of a log directory and of a
// partition.
var kept = []string{"meta.properties", "log-start-offset-checkpoint", "replication-offset-checkpoint", "partition.metadata", "leader-epoch-checkpoint"}

func (r *repairing) files(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, name := range kept {
		b, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if strings.HasSuffix(name, "checkpoint") && !wholeCheckpoint(b) {
			r.k.bad(filepath.Join(from, name), "it is no whole checkpoint; the copy is without it")
			continue
		}
		if err := os.WriteFile(filepath.Join(to, name), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func wholeCheckpoint(b []byte) bool {
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	if len(b) == 0 {
		return true
	}
	if len(lines) < 2 || strings.TrimSpace(lines[0]) != "0" {
		return false
	}
	n, err := strconv.Atoi(strings.TrimSpace(lines[1]))
	if err != nil || n != len(lines)-2 {
		return false
	}
	for _, line := range lines[2:] {
		fields := strings.Fields(line)
		for _, f := range fields[max(0, len(fields)-2):] {
			if _, err := strconv.ParseInt(f, 10, 64); err != nil {
				return false
			}
		}
	}
	return true
}

// copying is the copy of one segment; nil where none is made.
type copying struct {
	r    *repairing
	out  *os.File
	name string
}

// open begins the copy of a segment.
func (r *repairing) open(name string) (*copying, error) {
	if r == nil {
		return nil, nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	return &copying{r: r, out: f, name: name}, err
}

func (c *copying) batch(b record.Batch) error {
	if c == nil {
		return nil
	}
	_, err := c.out.Write(b)
	return err
}

// setAside keeps bytes that are in no batch in a file beside the segment.
func (c *copying) setAside(from io.ReaderAt, pos, end int64) error {
	if c == nil {
		return nil
	}
	f, err := os.OpenFile(fmt.Sprintf("%s.%d.cut", c.name, pos), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, io.NewSectionReader(from, pos, end-pos))
	c.r.lost += end - pos
	return errors.Join(err, f.Close())
}

func (c *copying) close() error {
	if c == nil {
		return nil
	}
	return errors.Join(c.out.Sync(), c.out.Close())
}

// nextBatch finds the first position behind pos at which a whole batch begins that
// goes on from offset next; the end if there is none.
func nextBatch(f io.ReaderAt, pos, end, next int64, most int) (int64, error) {
	const window = 1 << 20
	buf := make([]byte, window+record.BatchHeaderSize)
	for pos++; pos < end; pos += window {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), end-pos)], pos)
		if err != nil && err != io.EOF {
			return end, err
		}
		for i := 0; i < min(n, window); i++ {
			head := buf[i:n]
			if len(head) < record.MinEntryPrefix || head[16] > 2 {
				continue
			}
			// Eight bytes that could be the offset are rare: few candidates are read.
			if offset := int64(binary.BigEndian.Uint64(head)); offset < next || offset > next+1<<31 {
				continue
			}
			size, err := record.EntrySize(head[:min(len(head), record.BatchHeaderSize)])
			at := pos + int64(i)
			if err != nil || size == 0 || size > most || at+int64(size) > end {
				continue
			}
			b := record.Batch(make([]byte, size))
			if _, err := f.ReadAt(b, at); err != nil {
				return end, err
			}
			if b.BaseOffset() >= next && b.LastOffset() >= next && b.Check() == nil {
				return at, nil
			}
		}
	}
	return end, nil
}
