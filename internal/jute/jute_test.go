package jute

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
)

// frame is one line of testdata/kazoo.txt.
type frame struct {
	client bool
	b      []byte
}

func captured(t testing.TB) []frame {
	t.Helper()
	text, err := os.ReadFile("testdata/kazoo.txt")
	if err != nil {
		t.Fatal(err)
	}
	var frames []frame
	for line := range strings.Lines(string(text)) {
		who, digits, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || who == "#" {
			continue
		}
		b, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, frame{who == "C", b})
	}
	return frames
}

// decodeAll decodes a captured conversation: header and body of each frame.
func decodeAll(t testing.TB, each func(f frame, records []Record)) {
	t.Helper()
	ops := map[int32]Op{}
	for i, f := range captured(t) {
		d := NewDecoder(f.b)
		var records []Record
		switch {
		case i == 0:
			records = []Record{new(ConnectRequest)}
		case i == 1:
			records = []Record{new(ConnectResponse)}
		case f.client:
			h := new(RequestHeader)
			h.Decode(NewDecoder(f.b))
			ops[h.Xid] = h.Op
			if records = []Record{h}; h.Op != OpCloseSession {
				records = append(records, NewRequest(h.Op))
			}
		default:
			h := new(ReplyHeader)
			h.Decode(NewDecoder(f.b))
			records = []Record{h}
			if h.Xid == XidNotification {
				records = append(records, new(WatcherEvent))
			} else if r := NewResponse(ops[h.Xid]); r != nil && h.Err == OK {
				records = append(records, r)
			}
		}
		for _, r := range records {
			r.Decode(d)
		}
		if d.Err() != nil || len(d.Rest()) != 0 {
			t.Fatalf("frame %d: %v, %d bytes left", i, d.Err(), len(d.Rest()))
		}
		each(f, records)
	}
}

func TestCapturedFramesDecodeAndEncodeToTheSameBytes(t *testing.T) {
	n := 0
	decodeAll(t, func(f frame, records []Record) {
		n++
		if got := Marshal(records...); !bytes.Equal(got, f.b) {
			t.Errorf("frame %d: %T\n got %x\nwant %x", n, records[len(records)-1], got, f.b)
		}
	})
	if n < 40 {
		t.Fatalf("only %d frames", n)
	}
}

func TestCapturedFramesHaveTheirValues(t *testing.T) {
	var got []Record
	decodeAll(t, func(_ frame, records []Record) { got = append(got, records...) })
	has := func(want Record) {
		t.Helper()
		for _, r := range got {
			if reflect.DeepEqual(r, want) {
				return
			}
		}
		t.Errorf("no %T equal to %+v", want, want)
	}
	has(&ConnectRequest{Timeout: 10000, Password: make([]byte, 16)})
	has(&AuthPacket{Scheme: "digest", Auth: []byte("u:p")})
	has(&CreateRequest{Path: "/cap", Data: []byte("root"), ACL: WorldACL()})
	has(&CreateRequest{Path: "/cap/s-", Data: []byte{}, ACL: WorldACL(), Mode: EphemeralSequential})
	has(&CreateResponse{Path: "/cap"})
	has(&PathWatchRequest{Path: "/cap", Watch: true})
	has(&SetDataRequest{Path: "/cap", Data: []byte("new"), Version: 0})
	has(&WatcherEvent{EventNodeDataChanged, StateSyncConnected, "/cap"})
	has(&PathVersionRequest{Path: "/cap", Version: 9})
	has(&GetChildrenResponse{Children: []string{"s-0000000000"}})
	has(&SetACLRequest{Path: "/cap", Version: -1, ACL: []ACL{
		{PermAll, ID{"digest", "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ="}}, {PermAll, ID{"world", "anyone"}}}})
	has(&MultiRequest{[]MultiOp{
		{OpCreate, &CreateRequest{Path: "/cap/n", Data: []byte("1"), ACL: WorldACL()}},
		{OpCheck, &PathVersionRequest{Path: "/cap", Version: 77}},
		{OpDelete, &PathVersionRequest{Path: "/cap/n", Version: -1}}}})
	has(&MultiResponse{[]MultiResult{
		{Op: OpError, Err: OK}, {Op: OpError, Err: ErrBadVersion}, {Op: OpError, Err: ErrRuntimeInconsistency}}})
	for _, r := range got {
		switch r := r.(type) {
		case *ReplyHeader:
			if r.Err != OK && r.Err != ErrNoNode && r.Err != ErrNodeExists && r.Err != ErrBadVersion {
				t.Errorf("error %v", r.Err)
			}
		case *Create2Response:
			s := r.Stat
			if r.Path != "/cap/s-0000000000" || s.Czxid != s.Mzxid || s.Pzxid != s.Czxid || s.EphemeralOwner == 0 || s.Ctime < 1.7e12 {
				t.Errorf("%+v", r)
			}
		}
	}
}

func TestATruncatedRecordIsMalformedWhereverItIsCut(t *testing.T) {
	decodeAll(t, func(f frame, records []Record) {
		for cut := range f.b {
			d := NewDecoder(f.b[:cut])
			for _, r := range records {
				reflect.New(reflect.TypeOf(r).Elem()).Interface().(Record).Decode(d)
			}
			connect := false
			switch records[0].(type) {
			case *ConnectRequest, *ConnectResponse: // the last byte is missing in old clients' frames
				connect = cut == len(f.b)-1
			}
			if (d.Err() == nil) != connect {
				t.Fatalf("%T cut at %d of %d: %v", records[0], cut, len(f.b), d.Err())
			}
		}
	})
}

func TestLengthsThatTheFrameCannotHoldAllocateNothing(t *testing.T) {
	for _, n := range []int32{-2, 5, 1 << 30, 1<<31 - 1, -1 << 31} {
		var e Encoder
		e.Int(n)
		e.B = append(e.B, 1, 2, 3, 4)
		for name, read := range map[string]func(*Decoder){
			"buffer": func(d *Decoder) { d.Buffer() }, "string": func(d *Decoder) { _ = d.String() },
			"strings": func(d *Decoder) { d.Strings() }, "acls": func(d *Decoder) { d.ACLs() },
		} {
			d := Decoder{}
			allocated := testing.AllocsPerRun(1, func() {
				d = Decoder{b: e.B}
				read(&d)
			})
			if !errors.Is(d.Err(), ErrMalformed) || allocated > 0 {
				t.Errorf("%s of %d: %v, %v allocations", name, n, d.Err(), allocated)
			}
		}
	}
}

func TestNullAndEmptyDiffer(t *testing.T) {
	var e Encoder
	e.Buffer(nil)
	e.Buffer([]byte{})
	e.Strings(nil)
	e.Strings([]string{})
	if got := hex.EncodeToString(e.B); got != "ffffffff00000000ffffffff00000000" {
		t.Fatal(got)
	}
	d := NewDecoder(e.B)
	if d.Buffer() != nil || d.Buffer() == nil || d.Strings() != nil || d.Strings() == nil || d.Err() != nil {
		t.Fatal("null and empty are mixed up")
	}
}

func TestOldClientsConnectWithoutTheReadOnlyByte(t *testing.T) {
	b := captured(t)[0].b
	var r ConnectRequest
	if err := Unmarshal(b[:len(b)-1], &r); err != nil || !r.OldClient {
		t.Fatal(err, r)
	}
	if got := Marshal(&r); !bytes.Equal(got, b[:len(b)-1]) {
		t.Fatalf("%x", got)
	}
}

func FuzzRecords(f *testing.F) {
	for _, c := range captured(f) {
		f.Add(c.b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		records := []Record{new(ConnectRequest), new(ConnectResponse), new(RequestHeader), new(ReplyHeader), new(WatcherEvent)}
		for op := Op(0); op < 110; op++ {
			if r := NewRequest(op); r != nil {
				records = append(records, r)
			}
			if r := NewResponse(op); r != nil {
				records = append(records, r)
			}
		}
		for _, r := range records {
			for _, skip := range []int{0, 8, 16} { // bare, after a request's header, after a reply's
				if skip > len(b) {
					break
				}
				d := NewDecoder(b[skip:])
				r.Decode(d)
				if d.Err() != nil {
					continue
				}
				// What was decoded must survive its own encoding.
				again := reflect.New(reflect.TypeOf(r).Elem()).Interface().(Record)
				if err := Unmarshal(Marshal(r), again); err != nil {
					t.Fatalf("%T: %v", r, err)
				}
				if !reflect.DeepEqual(r, again) {
					t.Fatalf("%T: %+v became %+v", r, r, again)
				}
			}
		}
	})
}
