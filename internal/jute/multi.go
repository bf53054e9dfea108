package jute

// MultiHeader goes before each operation and each result of a multi; one with
// Done set ends the list.
type MultiHeader struct {
	Op   Op // OpError in a result that is an error, and in the last header
	Done bool
	Err  Error // -1 in requests and in the last header
}

func (r *MultiHeader) Encode(e *Encoder) {
	e.Int(int32(r.Op))
	e.Bool(r.Done)
	e.Int(int32(r.Err))
}

func (r *MultiHeader) Decode(d *Decoder) { *r = MultiHeader{Op(d.Int()), d.Bool(), Error(d.Int())} }

// MultiOp is one operation of a multi (create, create2, createContainer,
// createTTL, delete, setData, check) or of a multiRead (getData, getChildren).
type MultiOp struct {
	Op      Op
	Request Record
}

// MultiRequest is the request of multi and multiRead.
type MultiRequest struct{ Ops []MultiOp }

func (r *MultiRequest) Encode(e *Encoder) {
	for _, op := range r.Ops {
		(&MultiHeader{op.Op, false, -1}).Encode(e)
		op.Request.Encode(e)
	}
	(&MultiHeader{OpError, true, -1}).Encode(e)
}

func (r *MultiRequest) Decode(d *Decoder) {
	r.Ops = nil
	for {
		var h MultiHeader
		h.Decode(d)
		if d.err != nil || h.Done {
			return
		}
		switch h.Op {
		case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpSetData, OpCheck, OpGetData, OpGetChildren:
		default:
			d.Fail()
			return
		}
		body := NewRequest(h.Op)
		body.Decode(d)
		r.Ops = append(r.Ops, MultiOp{h.Op, body})
	}
}

// MultiResult is the result of one operation. Op is OpError when it failed, or
// when another of the same multi failed: Err is then the code, OK for those
// before the one that failed and ErrRuntimeInconsistency for those after it.
type MultiResult struct {
	Op       Op
	Err      Error
	Path     string   // create, create2, createContainer, createTTL
	Stat     Stat     // create2, createContainer, createTTL, setData, getData
	Data     []byte   // getData
	Children []string // getChildren
}

// MultiResponse answers multi and multiRead.
type MultiResponse struct{ Results []MultiResult }

func (r *MultiResponse) Encode(e *Encoder) {
	for i := range r.Results {
		m := &r.Results[i]
		h := MultiHeader{Op: m.Op}
		if m.Op == OpError {
			h.Err = m.Err
		}
		h.Encode(e)
		switch m.Op {
		case OpError:
			e.Int(int32(m.Err))
		case OpCreate:
			e.String(m.Path)
		case OpCreate2, OpCreateContainer, OpCreateTTL:
			e.String(m.Path)
			m.Stat.Encode(e)
		case OpSetData:
			m.Stat.Encode(e)
		case OpGetData:
			e.Buffer(m.Data)
			m.Stat.Encode(e)
		case OpGetChildren:
			e.Strings(m.Children)
		}
	}
	(&MultiHeader{OpError, true, -1}).Encode(e)
}

func (r *MultiResponse) Decode(d *Decoder) {
	r.Results = nil
	for {
		var h MultiHeader
		h.Decode(d)
		if d.err != nil || h.Done {
			return
		}
		m := MultiResult{Op: h.Op}
		switch h.Op {
		case OpError:
			m.Err = Error(d.Int())
		case OpCreate:
			m.Path = d.String()
		case OpCreate2, OpCreateContainer, OpCreateTTL:
			m.Path = d.String()
			m.Stat.Decode(d)
		case OpSetData:
			m.Stat.Decode(d)
		case OpGetData:
			m.Data = d.Buffer()
			m.Stat.Decode(d)
		case OpGetChildren:
			m.Children = d.Strings()
		case OpDelete, OpCheck:
		default:
			d.Fail()
			return
		}
		r.Results = append(r.Results, m)
	}
}
