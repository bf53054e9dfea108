package keeper

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"barnabas/internal/jute"
)

// FuzzRequests gives any frames to the core, from two clients with commits
// held back, and checks the tree. Of each frame the first two bytes are its
// length and the third says who sends it and what is done before.
func FuzzRequests(f *testing.F) {
	seed := func(requests ...[]byte) {
		var b []byte
		for i, r := range requests {
			b = append(b, byte(len(r)>>8), byte(len(r)), byte(i))
			b = append(b, r...)
		}
		f.Add(b)
	}
	request := func(op jute.Op, body jute.Record) []byte {
		if body == nil {
			return jute.Marshal(&jute.RequestHeader{Xid: 1, Op: op})
		}
		return jute.Marshal(&jute.RequestHeader{Xid: 1, Op: op}, body)
	}
	all := [][]byte{
		request(jute.OpCreate, create("/a", "x", jute.Persistent)), request(jute.OpCreate2, create("/a/s-", "x", jute.EphemeralSequential)),
		request(jute.OpGetData, &jute.PathWatchRequest{Path: "/a", Watch: true}), request(jute.OpSetData, &jute.SetDataRequest{Path: "/a", Version: -1}),
		request(jute.OpGetChildren2, &jute.PathWatchRequest{Path: "/a", Watch: true}), request(jute.OpDelete, &jute.PathVersionRequest{Path: "/a", Version: -1}),
		request(jute.OpMulti, &jute.MultiRequest{Ops: []jute.MultiOp{{Op: jute.OpCreate, Request: create("/m", "", jute.Ephemeral)}, {Op: jute.OpCheck, Request: &jute.PathVersionRequest{Path: "/m"}}, {Op: jute.OpDelete, Request: &jute.PathVersionRequest{Path: "/m"}}}}),
		request(jute.OpMultiRead, &jute.MultiRequest{Ops: []jute.MultiOp{{Op: jute.OpGetChildren, Request: &jute.PathWatchRequest{Path: "/"}}}}),
		request(jute.OpSetWatches, &jute.SetWatchesRequest{Data: []string{"/a"}, Exist: []string{"/b"}, Child: []string{"/"}}),
		request(jute.OpSetACL, &jute.SetACLRequest{Path: "/a", ACL: []jute.ACL{{Perms: 1, ID: jute.ID{Scheme: "auth"}}}, Version: -1}),
		request(jute.OpAuth, &jute.AuthPacket{Scheme: "digest", Auth: []byte("u:p")}), request(jute.OpGetACL, &jute.PathRequest{Path: "/a"}),
		request(jute.OpSync, &jute.PathRequest{Path: "/"}), request(jute.OpPing, nil), request(jute.OpCloseSession, nil),
	}
	seed(all...)
	for i := range all {
		seed(all[0], all[i], all[i])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := newSim()
		clients := []*client{s.c.connected("127.0.0.1", "127.0.0.1:1", s.now), s.c.connected("::1", "::1:1", s.now)}
		for _, cl := range clients {
			s.c.connect(cl, &jute.ConnectRequest{Timeout: 4000}, s.now)
		}
		s.commit()
		var held *batch
		for len(b) >= 3 {
			n, what := min(int(b[0])<<8|int(b[1]), len(b)-3), b[2]
			frame := b[3 : 3+n]
			b = b[3+n:]
			switch what >> 5 {
			case 0:
				if held == nil {
					held = s.hold()
				}
			case 1:
				s.let(held)
				held = nil
			case 2:
				s.now = s.now.Add(time.Second)
				s.c.expire(s.now)
			}
			if in, err := decodeRequest(frame); err == nil {
				s.c.request(clients[what&1], in, s.now)
			}
			s.c.dirty = nil
			for _, cl := range clients {
				cl.out, cl.dirty = nil, false
			}
		}
		s.let(held)
		s.commit()
		checkTree(t, s.c.tree)
		if s.c.bytes != 0 {
			t.Fatalf("%d bytes are counted as unanswered", s.c.bytes)
		}
		if len(s.c.overlay) != 0 || len(s.c.pending) != 0 {
			t.Fatalf("%d paths and %d writes are pending", len(s.c.overlay), len(s.c.pending))
		}
		before := dump(s.c.tree)
		s.reopen()
		if got := dump(s.c.tree); got != before {
			t.Fatalf("after a restart\n%s\nbefore\n%s", got, before)
		}
	})
}

// FuzzEntries reads any bytes as an entry of a log, and replays it.
func FuzzEntries(f *testing.F) {
	s := &session{id: 7}
	for _, t := range []*txn{
		{zxid: 1, session: s, op: jute.OpCreateSession}, {zxid: 2, session: s, op: jute.OpCloseSession},
		{zxid: 3, session: s, op: jute.OpCreate, steps: []step{{op: jute.OpCreate, path: "/a", writes: []write{{"/a", &record{path: "/a"}}, {"/", &record{path: "/"}}}}}},
		{zxid: 4, session: s, op: jute.OpDelete, steps: []step{{op: jute.OpDelete, path: "/a", writes: []write{{"/a", nil}}}}},
		{zxid: 5, session: s, op: jute.OpSetData, steps: []step{{op: jute.OpSetData, path: "/", writes: []write{{"/", &record{path: "/"}}}}}},
		{zxid: 6, session: s, op: jute.OpMulti, steps: []step{{op: jute.OpCheck, path: "/"}, {op: jute.OpSetACL, path: "/", writes: []write{{"/", &record{path: "/"}}}}}},
	} {
		entry := appendEntry(nil, t)
		f.Add(entry[12 : len(entry)-1])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, logged, ok := decodeEntry(b); ok {
			img := image{tree: firstTree(), sessions: map[int64]int32{}}
			img.replay(h, logged)
			checkTree(t, img.tree)
		}
	})
}

// FuzzSnapshots reads any bytes as a snapshot.
func FuzzSnapshots(f *testing.F) {
	var file memoryFile
	if err := writeSnapshot(&file, firstTree(), map[int64]int32{1: 2}, 3); err != nil {
		f.Fatal(err)
	}
	f.Add(file.b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if tree, _, err := readSnapshot(bytes.NewReader(b), int64(len(b))); err == nil {
			checkTree(t, tree)
		} else if !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
	})
}
