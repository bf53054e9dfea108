package keeper

import (
	"errors"
	"testing"

	"barnabas/internal/jute"
)

func TestTheTreeAndSessionsSurviveAReopen(t *testing.T) {
	o := quiet()
	o.Dir = t.TempDir()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, s)
	call(t, c, jute.OpCreate, create("/a", "x", jute.Persistent), jute.OK)
	call(t, c, jute.OpCreate, create("/a/e-", "y", jute.EphemeralSequential), jute.OK)
	call(t, c, jute.OpSetData, &jute.SetDataRequest{Path: "/a", Data: nil, Version: 0}, jute.OK)
	call(t, c, jute.OpCreate, create("/gone", "", jute.Persistent), jute.OK)
	call(t, c, jute.OpDelete, &jute.PathVersionRequest{Path: "/gone", Version: -1}, jute.OK)
	call(t, c, jute.OpSetACL, &jute.SetACLRequest{Path: "/a/e-0000000000", ACL: []jute.ACL{{Perms: jute.PermRead, ID: jute.ID{Scheme: "world", ID: "anyone"}}}, Version: -1}, jute.OK)
	last := call(t, c, jute.OpDelete, &jute.PathVersionRequest{Path: "/none", Version: -1}, jute.ErrNoNode)
	before := map[string]jute.Record{}
	for _, p := range []string{"/", "/zookeeper", "/zookeeper/config", "/a", "/a/e-0000000000"} {
		before[p] = call(t, c, jute.OpGetData, &jute.PathWatchRequest{Path: p}, jute.OK).Body
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, o)
	c = attach(t, s, jute.ConnectRequest{Timeout: 10000, SessionID: c.Resp.SessionID, Password: c.Resp.Password, LastZxidSeen: last.Zxid})
	for p, want := range before {
		if got := call(t, c, jute.OpGetData, &jute.PathWatchRequest{Path: p}, jute.OK).Body; string(jute.Marshal(got)) != string(jute.Marshal(want)) {
			t.Errorf("%s: %+v, before %+v", p, got, want)
		}
	}
	call(t, c, jute.OpExists, &jute.PathWatchRequest{Path: "/gone"}, jute.ErrNoNode)
	if f := call(t, c, jute.OpCreate, create("/a/s-", "", jute.PersistentSequential), jute.OK); f.Body.(*jute.CreateResponse).Path != "/a/s-0000000001" || f.Zxid <= last.Zxid {
		t.Errorf("%+v after %+v", f, last)
	}
	call(t, c, jute.OpCloseSession, nil, jute.OK)
	c = connect(t, s)
	call(t, c, jute.OpExists, &jute.PathWatchRequest{Path: "/a/e-0000000000"}, jute.ErrNoNode)
}

func TestAStoreIsHeldByOneProcess(t *testing.T) {
	o := quiet()
	o.Dir = t.TempDir()
	open(t, o)
	if _, err := Open(o); !errors.Is(err, ErrLocked) {
		t.Fatal(err)
	}
}
