package keeper

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/adler32"
	"io"
	"os"
	"path/filepath"
	"unsafe"

	"barnabas/internal/jute"
	"barnabas/internal/vfs"
)

// A snapshot file is Apache ZooKeeper's (FileSnap, SerializeUtils):
//
//	int magic "ZKSN", int version 2, long dbid -1
//	int count of sessions, and of each: long id, int timeout
//	int count of ACLs, and of each: long index, vector<ACL>
//	of each node, parents first: ustring path ("" is the root), buffer data,
//	    long index of its ACL (-1: world:anyone with everything), StatPersisted
//	ustring "/"
//	long Adler-32 of everything before, ustring "/"
//
// Apache 3.6 and later add a digest of the tree, which is not read.

// statPersisted is the bytes of the counters of a node in a snapshot.
const statPersisted = 4*8 + 3*4 + 2*8

// snapshotFile writes one snapshot.
type snapshotFile struct {
	s    *fileStore
	snap *snapshot
	f    vfs.File
	at   int64
	sum  hash.Hash32
	e    jute.Encoder
}

func (s *fileStore) snapshot(snap *snapshot) (snapshotWriter, error) {
	w, err := s.openSnapshot(snap)
	if err != nil {
		return nil, err
	}
	return w, nil
}

func (s *fileStore) openSnapshot(snap *snapshot) (*snapshotFile, error) {
	s.logged.Store(0) // one that fails is tried again after as much more
	f, err := s.fs.OpenFile(filepath.Join(s.dir, newSnapshot), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	return newSnapshotFile(s, snap, f), nil
}

func newSnapshotFile(s *fileStore, snap *snapshot, f vfs.File) *snapshotFile {
	w := &snapshotFile{s: s, snap: snap, f: f, sum: adler32.New()}
	w.e.B = append(w.e.B, fileHeader(snapMagic, -1)...)
	w.e.Int(int32(len(snap.sessions)))
	for id, timeout := range snap.sessions {
		w.e.Long(id)
		w.e.Int(timeout)
	}
	w.e.Int(int32(len(snap.acls)))
	for i, a := range snap.acls {
		w.e.Long(int64(i + 1))
		w.e.ACLs(a.list)
	}
	return w
}

func (w *snapshotFile) write(records []*record) error {
	for _, r := range records {
		path := r.path
		if path == rootPath {
			path = ""
		}
		w.e.String(path)
		w.e.Buffer(r.data)
		acl := int64(-1)
		if r.acl != nil {
			acl = w.snap.indexes[aclKey(r.acl)]
		}
		for _, v := range []int64{acl, r.czxid, r.mzxid, r.ctime, r.mtime} {
			w.e.Long(v)
		}
		for _, v := range []int32{r.version, r.cversion, r.aversion} {
			w.e.Int(v)
		}
		w.e.Long(r.owner)
		w.e.Long(r.pzxid)
	}
	if len(w.e.B) < syncedPiece {
		return nil
	}
	return errors.Join(w.flush(), w.f.Sync())
}

// flush writes what is encoded.
func (w *snapshotFile) flush() error {
	_, _ = w.sum.Write(w.e.B) // never fails
	n, err := w.f.WriteAt(w.e.B, w.at)
	w.at += int64(n)
	w.e.B = w.e.B[:0]
	return err
}

// seal writes the end and makes the file durable.
func (w *snapshotFile) seal() error {
	w.e.String("/")
	if err := w.flush(); err != nil {
		return err
	}
	w.e.Long(int64(w.sum.Sum32()))
	w.e.String("/")
	if err := w.flush(); err != nil {
		return err
	}
	return w.f.Sync()
}

func (w *snapshotFile) finish() error {
	if err := errors.Join(w.seal(), w.f.Close()); err != nil {
		return err
	}
	s := w.s
	if err := s.fs.Rename(filepath.Join(s.dir, newSnapshot), s.path(snapshotName(w.snap.zxid))); err != nil {
		return err
	}
	if err := s.fs.SyncDir(filepath.Join(s.dir, dataFolder)); err != nil {
		return err
	}
	s.snapSize.Store(w.at)
	return s.tidy()
}

func (w *snapshotFile) drop() {
	_ = w.f.Close() // it is of no use any more
	_ = w.s.fs.Remove(filepath.Join(w.s.dir, newSnapshot))
}

// writeAll writes the records of a snapshot of a tree that nobody changes.
func (w *snapshotFile) writeAll(t *tree) error {
	for records := make([]*record, 0, batchOfNodes); ; {
		if records = t.take(batchOfNodes, records[:0]); len(records) == 0 {
			return nil
		}
		if err := w.write(records); err != nil {
			return err
		}
	}
}

// window reads a file in pieces and shows the bytes from at on.
type window struct {
	r    io.ReaderAt
	size int64
	at   int64  // of buf[0]
	buf  []byte // what is read and not yet skipped
	mem  []byte // what buf is a part of
}

// need returns at least n bytes, fewer only at the file's end.
func (w *window) need(n int) ([]byte, error) {
	if len(w.buf) >= n || w.at+int64(len(w.buf)) >= w.size {
		return w.buf, nil
	}
	want := int(min(int64(max(n, 1<<20)), w.size-w.at))
	if cap(w.mem) < want {
		w.mem = make([]byte, max(want, 2<<20))
	}
	have := copy(w.mem, w.buf)
	want = int(min(int64(cap(w.mem)), w.size-w.at))
	m, err := w.r.ReadAt(w.mem[have:want], w.at+int64(have))
	if err == io.EOF {
		err = nil
	}
	w.buf = w.mem[:have+m]
	return w.buf, err
}

func (w *window) skip(n int) {
	w.buf = w.buf[n:]
	w.at += int64(n)
}

// entry reads the next log entry's fixed part: the length of its header and
// record, which are then at buf[12:], and a check of their sum. ok is false
// where there is none.
func (w *window) entry() (n int, sum func([]byte) bool, ok bool, err error) {
	b, err := w.need(12)
	if err != nil || len(b) < 12 {
		return 0, nil, false, err
	}
	want, length := binary.BigEndian.Uint64(b), int32(binary.BigEndian.Uint32(b[8:]))
	if length <= 0 || length > maxEntry {
		return 0, nil, false, nil
	}
	n = int(length)
	if b, err = w.need(n + entryFixed); err != nil || len(b) < n+entryFixed {
		return 0, nil, false, err
	}
	return n, func(b []byte) bool { return uint64(adler32.Checksum(b)) == want }, true, nil
}

// zeros says whether nothing but zeros is left. It reads to the end.
func (w *window) zeros() bool {
	at := w.at
	defer func() { w.at = at }()
	for {
		b, err := w.need(1 << 20)
		if err != nil || len(bytes.TrimLeft(b, "\x00")) > 0 {
			return false
		}
		if len(b) == 0 {
			return true
		}
		w.skip(len(b))
	}
}

// batchOfNodes is how many nodes the reader of a snapshot gives on at a time.
const batchOfNodes = 1024

// readSnapshot reads a snapshot: one goroutine decodes, this one builds the tree.
func readSnapshot(f io.ReaderAt, size int64) (*tree, map[int64]int32, error) {
	p := &snapshotReader{w: window{r: f, size: size}, sum: adler32.New(), out: make(chan []*record, 8), stop: make(chan struct{})}
	sessions, err := p.begin()
	if err != nil {
		return nil, nil, err
	}
	go p.run()
	t := newTree(int(size / 256))
	err = p.build(t)
	close(p.stop)
	for range p.out { // until the goroutine has ended
	}
	if err == nil {
		err = p.err
	}
	if err != nil {
		return nil, nil, err
	}
	if t.nodes[rootPath] == nil {
		return nil, nil, fmt.Errorf("%w: no root", ErrCorrupt)
	}
	return t, sessions, nil
}

type snapshotReader struct {
	w    window
	sum  hash.Hash32
	acls map[int64][]jute.ACL
	out  chan []*record
	stop chan struct{}
	err  error // set before out is closed

	records []record // made beforehand
	bytes   []byte   // for paths and data
}

// take returns n bytes and counts them in; fewer are an error.
func (p *snapshotReader) take(n int) ([]byte, error) {
	if n < 0 {
		return nil, fmt.Errorf("%w: byte %d: a length of %d", ErrCorrupt, p.w.at, n)
	}
	b, err := p.w.need(n)
	if err != nil {
		return nil, err
	}
	if len(b) < n {
		return nil, fmt.Errorf("%w: it ends at byte %d, within something", ErrCorrupt, p.w.size)
	}
	_, _ = p.sum.Write(b[:n]) // never fails
	p.w.skip(n)
	return b[:n:n], nil
}

func (p *snapshotReader) int() (int32, error) {
	b, err := p.take(4)
	if err != nil {
		return 0, err
	}
	return int32(binary.BigEndian.Uint32(b)), nil
}

// begin reads what comes before the nodes.
func (p *snapshotReader) begin() (map[int64]int32, error) {
	head, err := p.take(headerSize)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(head[:8], fileHeader(snapMagic, 0)[:8]) {
		return nil, fmt.Errorf("%w: it does not begin as a snapshot of version %d (compressed ones can't be read)", ErrCorrupt, fileVersion)
	}
	sessions := map[int64]int32{}
	n, err := p.int()
	for ; err == nil && n > 0; n-- {
		var b []byte
		if b, err = p.take(12); err == nil {
			sessions[int64(binary.BigEndian.Uint64(b))] = int32(binary.BigEndian.Uint32(b[8:]))
		}
	}
	if err != nil {
		return nil, err
	}
	p.acls = map[int64][]jute.ACL{}
	n, err = p.int()
	for ; err == nil && n > 0; n-- {
		err = p.acl()
	}
	return sessions, err
}

func (p *snapshotReader) acl() error {
	b, err := p.take(12)
	if err != nil {
		return err
	}
	index, n := int64(binary.BigEndian.Uint64(b)), int32(binary.BigEndian.Uint32(b[8:]))
	acl := []jute.ACL{}
	for ; n > 0; n-- {
		b, err := p.take(4)
		if err != nil {
			return err
		}
		a := jute.ACL{Perms: int32(binary.BigEndian.Uint32(b))}
		for _, text := range []*string{&a.ID.Scheme, &a.ID.ID} {
			length, err := p.int()
			if err != nil {
				return err
			}
			if b, err = p.take(max(0, int(length))); err != nil {
				return err
			}
			*text = string(b)
		}
		acl = append(acl, a)
	}
	p.acls[index] = storedACL(acl)
	return nil
}

// run reads the nodes and gives them on.
func (p *snapshotReader) run() {
	defer close(p.out)
	for {
		batch := make([]*record, 0, batchOfNodes)
		for len(batch) < batchOfNodes {
			r, err := p.node()
			if err != nil {
				p.err = err
				return
			}
			if r == nil {
				p.err = p.end()
				select {
				case p.out <- batch:
				case <-p.stop:
				}
				return
			}
			batch = append(batch, r)
		}
		select {
		case p.out <- batch:
		case <-p.stop:
			return
		}
	}
}

// node reads one node; nil ends them.
func (p *snapshotReader) node() (*record, error) {
	n, err := p.int()
	if err != nil {
		return nil, err
	}
	b, err := p.take(max(0, int(n)))
	if err != nil || string(b) == rootPath {
		return nil, err
	}
	if len(p.records) == 0 {
		p.records = make([]record, 64)
	}
	r := &p.records[0]
	p.records = p.records[1:]
	if r.path = p.text(b); len(b) == 0 {
		r.path = rootPath
	}
	if n, err = p.int(); err != nil {
		return nil, err
	}
	if n >= 0 {
		if b, err = p.take(int(n)); err != nil {
			return nil, err
		}
		r.data = p.hold(b)
	}
	if b, err = p.take(8 + statPersisted); err != nil {
		return nil, err
	}
	d := jute.NewDecoder(b)
	acl := d.Long()
	r.czxid, r.mzxid, r.ctime, r.mtime = d.Long(), d.Long(), d.Long(), d.Long()
	r.version, r.cversion, r.aversion = d.Int(), d.Int(), d.Int()
	r.owner, r.pzxid = d.Long(), d.Long()
	if acl != -1 {
		list, ok := p.acls[acl]
		if !ok {
			return nil, fmt.Errorf("%w: %s: its ACL %d is not there", ErrCorrupt, r.path, acl)
		}
		r.acl = list
	}
	return r, nil
}

// end checks the sum at the end.
func (p *snapshotReader) end() error {
	sum := p.sum.Sum32()
	b, err := p.take(8 + 5)
	if err != nil {
		return err
	}
	if got := binary.BigEndian.Uint64(b); got != uint64(sum) || string(b[8:]) != "\x00\x00\x00\x01/" {
		return fmt.Errorf("%w: its checksum is %x, it says %x", ErrCorrupt, sum, got)
	}
	return nil
}

// hold copies b into a larger piece: a million nodes are a million allocations
// otherwise.
func (p *snapshotReader) hold(b []byte) []byte {
	if len(b) > 1024 {
		return bytes.Clone(b)
	}
	if len(p.bytes)+len(b) > cap(p.bytes) {
		p.bytes = make([]byte, 0, 16<<10)
	}
	at := len(p.bytes)
	p.bytes = append(p.bytes, b...)
	return p.bytes[at : at+len(b) : at+len(b)]
}

// text is hold for a path.
func (p *snapshotReader) text(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	b = p.hold(b)
	return unsafe.String(&b[0], len(b))
}

// build puts the records into the tree.
func (p *snapshotReader) build(t *tree) error {
	var parent *node
	nodes := []node{}
	for batch := range p.out {
		for _, r := range batch {
			path, _, ok := parentOf(r.path)
			if r.path != rootPath {
				if !ok {
					return fmt.Errorf("%w: %q: not a path", ErrCorrupt, r.path)
				}
				if parent == nil || parent.path != path {
					parent = t.nodes[path]
				}
				if parent == nil {
					return fmt.Errorf("%w: %q: no parent", ErrCorrupt, r.path)
				}
			}
			if len(nodes) == 0 {
				nodes = make([]node, 64)
			}
			n := &nodes[0]
			nodes = nodes[1:]
			r.acl = t.share(r.acl)
			n.record = r
			if t.add(n, parent); len(t.nodes) != len(t.slots) {
				return fmt.Errorf("%w: %q: twice", ErrCorrupt, r.path)
			}
		}
	}
	return nil
}
