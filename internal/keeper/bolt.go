package keeper

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"barnabas/internal/jute"
)

// ErrLocked says that another process has the store open.
var ErrLocked = errors.New("keeper: another process holds the store")

// boltFile is the store's file in Options.Dir.
const boltFile = "keeper.db"

// boltStore keeps the state in one bbolt file:
//
//	bucket meta      "format" -> 1; "zxid", "session" -> 8 bytes; "secret"
//	bucket nodes     id, 8 bytes -> record (see appendRecord)
//	bucket sessions  id, 8 bytes -> timeout in milliseconds, 4 bytes
//
// All integers are big-endian. Nodes are keyed by a number that counts up, not
// by path: creates append, keys stay short whatever the path, and reading in
// key order gives parents before children.
type boltStore struct{ db *bbolt.DB }

var (
	metaBucket    = []byte("meta")
	nodesBucket   = []byte("nodes")
	sessionBucket = []byte("sessions")
	formatKey     = []byte("format")
	zxidKey       = []byte("zxid")
	sessionKey    = []byte("session")
	secretKey     = []byte("secret")
)

const storeFormat = 1

// openBolt opens or makes the store in dir.
func openBolt(dir string) (*boltStore, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("keeper: %w", err)
	}
	path := filepath.Join(dir, boltFile)
	_, err := os.Stat(path)
	fresh := errors.Is(err, os.ErrNotExist)
	var db *bbolt.DB
	err = guard(func() (err error) {
		db, err = bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout: 10 * time.Millisecond, FreelistType: bbolt.FreelistMapType, InitialMmapSize: 1 << 20, NoStatistics: true,
		})
		return err
	})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("%w: %s", ErrLocked, path)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, path, err)
	case err != nil:
		return nil, fmt.Errorf("keeper: %s: %w", path, err)
	}
	if fresh { // bbolt syncs the file, not its name
		if err := syncDir(dir); err != nil {
			return nil, errors.Join(fmt.Errorf("keeper: %w", err), db.Close())
		}
	}
	return &boltStore{db}, nil
}

// guard runs f and makes an error of what bbolt does on a damaged file: it
// panics on pages that make no sense, and a page beyond the file's end faults.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrCorrupt, p)
		}
	}()
	return f()
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (s *boltStore) close() error { return s.db.Close() }

func (s *boltStore) commit(b *batch) error {
	return guard(func() error { return s.put(b) })
}

func (s *boltStore) put(b *batch) error {
	return s.db.Update(func(tx *bbolt.Tx) error {
		meta, err := tx.CreateBucketIfNotExists(metaBucket)
		if err != nil {
			return err
		}
		if b.secret != nil {
			if err := errors.Join(meta.Put(formatKey, []byte{storeFormat}), meta.Put(secretKey, b.secret)); err != nil {
				return err
			}
		}
		if err := meta.Put(zxidKey, key(uint64(b.zxid))); err != nil {
			return err
		}
		if b.lastSession != 0 {
			if err := meta.Put(sessionKey, key(uint64(b.lastSession))); err != nil {
				return err
			}
		}
		nodes, err := tx.CreateBucketIfNotExists(nodesBucket)
		if err != nil {
			return err
		}
		for _, id := range slices.Sorted(maps.Keys(b.nodes)) {
			if r := b.nodes[id]; r == nil {
				err = nodes.Delete(key(id))
			} else {
				err = nodes.Put(key(id), appendRecord(nil, r))
			}
			if err != nil {
				return err
			}
		}
		sessions, err := tx.CreateBucketIfNotExists(sessionBucket)
		if err != nil {
			return err
		}
		for id, timeout := range b.sessions {
			if timeout == 0 {
				err = sessions.Delete(key(uint64(id)))
			} else {
				err = sessions.Put(key(uint64(id)), binary.BigEndian.AppendUint32(nil, uint32(timeout)))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func key(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }

func (s *boltStore) load() (img image, err error) {
	err = guard(func() error {
		img, err = s.read()
		return err
	})
	return img, err
}

func (s *boltStore) read() (image, error) {
	img := image{sessions: map[int64]int32{}}
	err := s.db.View(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(metaBucket)
		if meta == nil {
			return nil
		}
		if f := meta.Get(formatKey); len(f) != 1 || f[0] != storeFormat {
			return fmt.Errorf("%w: format %x, this program knows %d", ErrCorrupt, f, storeFormat)
		}
		img.secret = slices.Clone(meta.Get(secretKey))
		zxid, session := meta.Get(zxidKey), meta.Get(sessionKey)
		if len(zxid) != 8 || len(session) != 0 && len(session) != 8 || len(img.secret) == 0 {
			return fmt.Errorf("%w: bucket meta", ErrCorrupt)
		}
		img.zxid = int64(binary.BigEndian.Uint64(zxid))
		if len(session) == 8 {
			img.lastSession = int64(binary.BigEndian.Uint64(session))
		}
		nodes, sessions := tx.Bucket(nodesBucket), tx.Bucket(sessionBucket)
		if nodes == nil || sessions == nil {
			return fmt.Errorf("%w: a bucket is missing", ErrCorrupt)
		}
		if err := nodes.ForEach(func(k, v []byte) error {
			r, ok := decodeRecord(v)
			if !ok || len(k) != 8 {
				return fmt.Errorf("%w: node %x", ErrCorrupt, k)
			}
			r.id = binary.BigEndian.Uint64(k)
			img.records = append(img.records, r)
			return nil
		}); err != nil {
			return err
		}
		return sessions.ForEach(func(k, v []byte) error {
			if len(k) != 8 || len(v) != 4 {
				return fmt.Errorf("%w: session %x", ErrCorrupt, k)
			}
			img.sessions[int64(binary.BigEndian.Uint64(k))] = int32(binary.BigEndian.Uint32(v))
			return nil
		})
	})
	return img, err
}

// appendRecord appends a record as the store has it, in ZooKeeper's primitives:
//
//	ustring path, buffer data, vector<ACL> (null: world:anyone with everything),
//	long czxid, mzxid, pzxid, ctime, mtime, int version, cversion, aversion, long owner
func appendRecord(b []byte, r *record) []byte {
	e := jute.Encoder{B: b}
	e.String(r.path)
	e.Buffer(r.data)
	e.ACLs(r.acl)
	for _, v := range []int64{r.czxid, r.mzxid, r.pzxid, r.ctime, r.mtime} {
		e.Long(v)
	}
	for _, v := range []int32{r.version, r.cversion, r.aversion} {
		e.Int(v)
	}
	e.Long(r.owner)
	return e.B
}

func decodeRecord(b []byte) (*record, bool) {
	d := jute.NewDecoder(b)
	r := &record{path: d.String(), data: d.Buffer(), acl: d.ACLs()}
	for _, v := range []*int64{&r.czxid, &r.mzxid, &r.pzxid, &r.ctime, &r.mtime} {
		*v = d.Long()
	}
	for _, v := range []*int32{&r.version, &r.cversion, &r.aversion} {
		*v = d.Int()
	}
	r.owner = d.Long()
	r.data = cloneBytes(r.data) // the file's pages do not outlive the read
	return r, d.Err() == nil && len(d.Rest()) == 0
}
