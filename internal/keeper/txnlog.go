package keeper

import (
	"encoding/binary"
	"hash/adler32"

	"barnabas/internal/jute"
)

// The transaction log is Apache ZooKeeper's (FileTxnLog). A file begins with
//
//	int magic "ZKLG", int version 2, long dbid 0
//
// and has entries until zeros or the file's end:
//
//	long checksum   Adler-32 of what follows the length
//	int length
//	TxnHeader: long session, int cxid, long zxid, long time, int type
//	the transaction's record; Apache 3.6 and later add a digest, which is not read
//	byte 'B'
const (
	logMagic    = 0x5a4b4c47
	snapMagic   = 0x5a4b534e
	fileVersion = 2
	headerSize  = 16
	entryEnd    = 'B'
	entryFixed  = 8 + 4 + 1 // bytes of an entry beside the header and the record
	maxEntry    = 1 << 30   // jute.maxbuffer of whoever wrote it
)

// txnHeader goes before each transaction.
type txnHeader struct {
	session int64
	xid     int32
	zxid    int64
	time    int64
	op      jute.Op
}

// loggedTxn is a transaction as the log has it: which fields are set depends on
// the operation.
type loggedTxn struct {
	op            jute.Op
	path          string
	data          []byte
	acl           []jute.ACL
	ephemeral     bool
	parentVersion int32
	version       int32
	ttl           int64
	timeout       int32
	subs          []loggedTxn
}

func fileHeader(magic int32, dbid int64) []byte {
	var e jute.Encoder
	e.Int(magic)
	e.Int(fileVersion)
	e.Long(dbid)
	return e.B
}

// appendEntry appends the log's entry of a prepared write.
func appendEntry(b []byte, t *txn) []byte {
	e := jute.Encoder{B: append(b, 0, 0, 0, 0, 0, 0, 0, 0)}
	sum := len(b)
	start := e.BeginFrame()
	op := t.op
	if t.failed() && op != jute.OpMulti || t.err != jute.OK {
		op = jute.OpError
	}
	e.Long(t.session.id)
	e.Int(t.xid)
	e.Long(t.zxid)
	e.Long(t.at)
	e.Int(int32(op))
	switch op {
	case jute.OpError:
		e.Int(int32(t.err))
	case jute.OpCreateSession:
		e.Int(int32(t.session.timeout.Milliseconds()))
	case jute.OpCloseSession:
		e.Int(int32(len(t.steps)))
		for i := range t.steps {
			e.String(t.steps[i].path)
		}
	case jute.OpMulti:
		e.Int(int32(len(t.steps)))
		for i := range t.steps {
			e.Int(int32(t.steps[i].op))
			at := e.BeginFrame()
			appendStep(&e, &t.steps[i])
			e.EndFrame(at)
		}
	default:
		appendStep(&e, &t.steps[0])
	}
	e.EndFrame(start)
	binary.BigEndian.PutUint64(e.B[sum:], uint64(adler32.Checksum(e.B[start:])))
	return append(e.B, entryEnd)
}

func appendStep(e *jute.Encoder, st *step) {
	switch st.op {
	case jute.OpError:
		e.Int(int32(st.err))
		return
	case jute.OpCheck:
		e.String(st.path)
		e.Int(0)
		return
	}
	r := st.writes[0].r
	e.String(st.path)
	switch st.op {
	case jute.OpCreate, jute.OpCreate2, jute.OpCreateContainer, jute.OpCreateTTL:
		e.Buffer(r.data)
		e.ACLs(aclOf(r.acl))
		if st.op == jute.OpCreate || st.op == jute.OpCreate2 {
			e.Bool(kindOf(r.owner) == sessionOwner)
		}
		e.Int(st.writes[1].r.cversion)
		if st.op == jute.OpCreateTTL {
			e.Long(r.owner & maxTTL)
		}
	case jute.OpSetData:
		e.Buffer(r.data)
		e.Int(r.version)
	case jute.OpSetACL:
		e.ACLs(aclOf(r.acl))
		e.Int(r.aversion)
	}
}

// decodeEntry reads the header and the record of an entry. Data and ACLs are
// copied out of b.
func decodeEntry(b []byte) (h txnHeader, t loggedTxn, ok bool) {
	d := jute.NewDecoder(b)
	h = txnHeader{d.Long(), d.Int(), d.Long(), d.Long(), jute.Op(d.Int())}
	t, ok = decodeTxn(d, h.op)
	return h, t, ok && d.Err() == nil
}

func decodeTxn(d *jute.Decoder, op jute.Op) (t loggedTxn, ok bool) {
	t = loggedTxn{op: op}
	switch op {
	case jute.OpCreate, jute.OpCreate2:
		t.path, t.data, t.acl, t.ephemeral, t.parentVersion = d.String(), cloneBytes(d.Buffer()), storedACL(d.ACLs()), d.Bool(), d.Int()
	case jute.OpCreateContainer:
		t.path, t.data, t.acl, t.parentVersion = d.String(), cloneBytes(d.Buffer()), storedACL(d.ACLs()), d.Int()
	case jute.OpCreateTTL:
		t.path, t.data, t.acl, t.parentVersion, t.ttl = d.String(), cloneBytes(d.Buffer()), storedACL(d.ACLs()), d.Int(), d.Long()
	case jute.OpDelete, jute.OpDeleteContainer:
		t.path = d.String()
	case jute.OpSetData, jute.OpReconfig:
		t.path, t.data, t.version = d.String(), cloneBytes(d.Buffer()), d.Int()
	case jute.OpSetACL:
		t.path, t.acl, t.version = d.String(), storedACL(d.ACLs()), d.Int()
	case jute.OpCheck:
		t.path, t.version = d.String(), d.Int()
	case jute.OpCreateSession:
		t.timeout = d.Int()
	case jute.OpCloseSession: // its paths, if any, are those of the session anyway
	case jute.OpError:
		t.version = d.Int()
	case jute.OpMulti:
		for range max(0, d.Vector(8)) {
			kind := jute.Op(d.Int())
			sub, ok := decodeTxn(jute.NewDecoder(d.Buffer()), kind)
			if !ok || kind == jute.OpMulti {
				return t, false
			}
			t.subs = append(t.subs, sub)
		}
	default:
		return t, false
	}
	return t, d.Err() == nil
}

// storedACL is an ACL as records hold it.
func storedACL(acl []jute.ACL) []jute.ACL {
	if len(acl) == 1 && acl[0] == worldACL {
		return nil
	}
	return acl
}

var worldACL = jute.WorldACL()[0]
