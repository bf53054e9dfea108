package zookeeper

import (
	"barnabas/internal/jute"
)

// CreateMode is the kind of node that a create makes.
type CreateMode = jute.CreateMode

// The kinds of nodes that Kafka uses.
const (
	Persistent           = jute.Persistent
	Ephemeral            = jute.Ephemeral
	PersistentSequential = jute.PersistentSequential
	EphemeralSequential  = jute.EphemeralSequential
)

// AnyVersion as an expected version matches every one.
const AnyVersion int32 = -1

// Op is one operation, made by the functions below and given to Go, GoAll,
// Multi or MultiRead.
type Op struct {
	code    jute.Op
	path    string
	data    []byte
	version int32
	mode    CreateMode
	acl     []jute.ACL
	watch   bool
	ops     []Op

	stays jute.WatchMode // of AddWatchOp
	which jute.WatchType // of RemoveWatchesOp

	raw               bool // of RawOp
	request, response jute.Record
}

// CreateOp makes a node. Null data is nil, which differs from empty. Without
// acl, Options.ACL decides. The result has Path and, outside a multi, Stat.
func CreateOp(path string, data []byte, mode CreateMode, acl ...jute.ACL) Op {
	return Op{code: jute.OpCreate2, path: path, data: data, mode: mode, acl: acl}
}

// DeleteOp deletes a node of this data version.
func DeleteOp(path string, version int32) Op {
	return Op{code: jute.OpDelete, path: path, version: version}
}

// SetOp sets the data of a node of this data version. The result has Stat.
func SetOp(path string, data []byte, version int32) Op {
	return Op{code: jute.OpSetData, path: path, data: data, version: version}
}

// CheckOp, in a multi only, fails it unless the node has this data version.
func CheckOp(path string, version int32) Op {
	return Op{code: jute.OpCheck, path: path, version: version}
}

// GetOp reads a node's data. The result has Data and Stat. The watch is for
// its next change of data or its deletion.
func GetOp(path string, watch bool) Op {
	return Op{code: jute.OpGetData, path: path, watch: watch}
}

// ExistsOp reads a node's Stat; jute.ErrNoNode if there is none. The watch is
// for its creation, next change of data, or deletion.
func ExistsOp(path string, watch bool) Op {
	return Op{code: jute.OpExists, path: path, watch: watch}
}

// ChildrenOp lists the names of a node's children, in no order. The result has
// Children and Stat (in a MultiRead no Stat). The watch is for the next change
// of the list, or the deletion of the node.
func ChildrenOp(path string, watch bool) Op {
	return Op{code: jute.OpGetChildren2, path: path, watch: watch}
}

// SyncOp lets the server catch up with the leader of its ensemble, so that
// later reads see what was done anywhere before.
func SyncOp(path string) Op { return Op{code: jute.OpSync, path: path} }

// GetACLOp reads a node's access list. The result has ACL and Stat.
func GetACLOp(path string) Op { return Op{code: jute.OpGetACL, path: path} }

// SetACLOp sets the access list of a node of this ACL version (Stat.Aversion).
// The result has Stat.
func SetACLOp(path string, acl []jute.ACL, version int32) Op {
	return Op{code: jute.OpSetACL, path: path, acl: acl, version: version}
}

// AddWatchOp leaves a watch that stays when it fires, and that the client sets
// anew on each connection of the session. Apache ZooKeeper has it since 3.6.
func AddWatchOp(path string, mode jute.WatchMode) Op {
	return Op{code: jute.OpAddWatch, path: path, stays: mode}
}

// RemoveWatchesOp takes the session's watches of a type off a node, those that
// stay with WatchTypeAny; jute.ErrNoWatcher if there is none.
func RemoveWatchesOp(path string, which jute.WatchType) Op {
	return Op{code: jute.OpRemoveWatches, path: path, which: which}
}

// RawOp is a request that has no function here. Its paths are the server's: see
// [AddChroot]. request and response may be nil; the response is there when the
// call is done without an error.
func RawOp(code jute.Op, request, response jute.Record) Op {
	return Op{code: code, raw: true, request: request, response: response}
}

// MultiOp does all of creates, deletes, sets and checks, or none. The result
// has Multi.
func MultiOp(ops ...Op) Op { return Op{code: jute.OpMulti, ops: ops} }

// MultiReadOp does gets and children reads at one point in time, without
// watches. The result has Multi, where each op has its own error. Apache
// ZooKeeper has it since 3.6.
func MultiReadOp(ops ...Op) Op { return Op{code: jute.OpMultiRead, ops: ops} }

// MultiResult is the result of one op of a multi.
type MultiResult = jute.MultiResult

// Result is what an op gave; which fields are set stands with each op.
type Result struct {
	Path     string
	Data     []byte
	Stat     jute.Stat
	Children []string
	ACL      []jute.ACL
	Multi    []MultiResult
}

// MultiError tells which op made a multi fail. It unwraps to Err.
type MultiError struct {
	Index int // of the op
	Path  string
	Err   jute.Error
}

// Error names the op and why it failed.
func (e *MultiError) Error() string { return "multi: " + e.Path + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e *MultiError) Unwrap() error { return e.Err }

// encode appends the request's record; an error is jute.ErrBadArguments.
func (c *Client) encode(e *jute.Encoder, op *Op) (path string, err error) {
	switch {
	case op.raw:
		if op.request != nil {
			op.request.Encode(e)
		}
		return "", nil
	case op.code == jute.OpMulti, op.code == jute.OpMultiRead:
		return "", c.encodeMulti(e, op)
	}
	sequential := op.code == jute.OpCreate2 && op.mode.Sequential()
	if path, err = c.serverPath(op.path, sequential); err != nil {
		return "", err
	}
	switch op.code {
	case jute.OpCreate2:
		(&jute.CreateRequest{Path: path, Data: op.data, ACL: c.aclOf(op), Mode: op.mode}).Encode(e)
	case jute.OpDelete:
		(&jute.PathVersionRequest{Path: path, Version: op.version}).Encode(e)
	case jute.OpSetData:
		(&jute.SetDataRequest{Path: path, Data: op.data, Version: op.version}).Encode(e)
	case jute.OpGetData, jute.OpExists, jute.OpGetChildren2:
		(&jute.PathWatchRequest{Path: path, Watch: op.watch}).Encode(e)
	case jute.OpSync, jute.OpGetACL:
		(&jute.PathRequest{Path: path}).Encode(e)
	case jute.OpSetACL:
		(&jute.SetACLRequest{Path: path, ACL: op.acl, Version: op.version}).Encode(e)
	case jute.OpAddWatch:
		(&jute.AddWatchRequest{Path: path, Mode: op.stays}).Encode(e)
	case jute.OpRemoveWatches:
		(&jute.WatchTypeRequest{Path: path, Type: op.which}).Encode(e)
	default: // a check outside a multi, or the zero Op
		return "", jute.ErrBadArguments
	}
	return path, nil
}

func (c *Client) aclOf(op *Op) []jute.ACL {
	if len(op.acl) > 0 {
		return op.acl
	}
	return c.options.ACL(op.path)
}

func (c *Client) encodeMulti(e *jute.Encoder, multi *Op) error {
	request := jute.MultiRequest{Ops: make([]jute.MultiOp, len(multi.ops))}
	for i := range multi.ops {
		op := &multi.ops[i]
		path, err := c.serverPath(op.path, op.mode.Sequential())
		if err != nil {
			return err
		}
		write := multi.code == jute.OpMulti
		to := &request.Ops[i]
		switch {
		case write && op.code == jute.OpCreate2:
			// create, which every server takes in a multi.
			*to = jute.MultiOp{Op: jute.OpCreate, Request: &jute.CreateRequest{Path: path, Data: op.data, ACL: c.aclOf(op), Mode: op.mode}}
		case write && (op.code == jute.OpDelete || op.code == jute.OpCheck):
			*to = jute.MultiOp{Op: op.code, Request: &jute.PathVersionRequest{Path: path, Version: op.version}}
		case write && op.code == jute.OpSetData:
			*to = jute.MultiOp{Op: op.code, Request: &jute.SetDataRequest{Path: path, Data: op.data, Version: op.version}}
		case !write && op.code == jute.OpGetData && !op.watch:
			*to = jute.MultiOp{Op: op.code, Request: &jute.PathWatchRequest{Path: path}}
		case !write && op.code == jute.OpGetChildren2 && !op.watch:
			*to = jute.MultiOp{Op: jute.OpGetChildren, Request: &jute.PathWatchRequest{Path: path}}
		default:
			return jute.ErrBadArguments
		}
	}
	request.Encode(e)
	return nil
}

// decode reads the response's record.
func (c *Client) decode(call *Call, d *jute.Decoder) {
	if call.raw {
		if call.response != nil {
			call.response.Decode(d)
		}
		return
	}
	r := &call.result
	switch call.code {
	case jute.OpCreate2:
		var m jute.Create2Response
		m.Decode(d)
		r.Path, r.Stat = c.clientPath(m.Path), m.Stat
	case jute.OpSetData, jute.OpExists, jute.OpSetACL:
		r.Stat.Decode(d)
	case jute.OpGetData:
		var m jute.GetDataResponse
		m.Decode(d)
		r.Data, r.Stat = m.Data, m.Stat
	case jute.OpGetChildren2:
		var m jute.GetChildren2Response
		m.Decode(d)
		r.Children, r.Stat = m.Children, m.Stat
	case jute.OpSync:
		var m jute.PathRequest
		m.Decode(d)
		r.Path = c.clientPath(m.Path)
	case jute.OpGetACL:
		var m jute.GetACLResponse
		m.Decode(d)
		r.ACL, r.Stat = m.ACL, m.Stat
	case jute.OpMulti, jute.OpMultiRead:
		var m jute.MultiResponse
		m.Decode(d)
		r.Multi = m.Results
		for i := range r.Multi {
			if r.Multi[i].Path != "" {
				r.Multi[i].Path = c.clientPath(r.Multi[i].Path)
			}
		}
	}
}

// multiError returns what made a multi fail, or nil.
func multiError(ops []string, results []MultiResult) error {
	failed := -1
	for i := range results {
		r := &results[i]
		if r.Op != jute.OpError || r.Err == jute.OK {
			continue
		}
		if failed < 0 || results[failed].Err == jute.ErrRuntimeInconsistency && r.Err != jute.ErrRuntimeInconsistency {
			failed = i
		}
	}
	if failed < 0 {
		return nil
	}
	e := &MultiError{Index: failed, Err: results[failed].Err}
	if failed < len(ops) {
		e.Path = ops[failed]
	}
	return e
}
