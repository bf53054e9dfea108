package jute

// PathWatchRequest is the request of exists, getData, getChildren and getChildren2.
type PathWatchRequest struct {
	Path  string
	Watch bool // leave a one-shot watch
}

func (r *PathWatchRequest) Encode(e *Encoder) {
	e.String(r.Path)
	e.Bool(r.Watch)
}

func (r *PathWatchRequest) Decode(d *Decoder) { *r = PathWatchRequest{d.String(), d.Bool()} }

// PathRequest is the request of sync, getACL, getAllChildrenNumber and
// getEphemerals, and the response of sync and create.
type PathRequest struct{ Path string }

func (r *PathRequest) Encode(e *Encoder) { e.String(r.Path) }

func (r *PathRequest) Decode(d *Decoder) { r.Path = d.String() }

// PathVersionRequest is the request of delete and check.
type PathVersionRequest struct {
	Path    string
	Version int32 // -1: any
}

func (r *PathVersionRequest) Encode(e *Encoder) {
	e.String(r.Path)
	e.Int(r.Version)
}

func (r *PathVersionRequest) Decode(d *Decoder) { *r = PathVersionRequest{d.String(), d.Int()} }

// CreateRequest is the request of create, create2 and createContainer.
type CreateRequest struct {
	Path string
	Data []byte // nil and empty differ: nil is read back as null
	ACL  []ACL
	Mode CreateMode
}

func (r *CreateRequest) Encode(e *Encoder) {
	e.String(r.Path)
	e.Buffer(r.Data)
	e.ACLs(r.ACL)
	e.Int(int32(r.Mode))
}

func (r *CreateRequest) Decode(d *Decoder) {
	*r = CreateRequest{d.String(), d.Buffer(), d.ACLs(), CreateMode(d.Int())}
}

// CreateTTLRequest is the request of createTTL.
type CreateTTLRequest struct {
	CreateRequest
	TTL int64 // milliseconds
}

func (r *CreateTTLRequest) Encode(e *Encoder) {
	r.CreateRequest.Encode(e)
	e.Long(r.TTL)
}

func (r *CreateTTLRequest) Decode(d *Decoder) {
	r.CreateRequest.Decode(d)
	r.TTL = d.Long()
}

// SetDataRequest is the request of setData.
type SetDataRequest struct {
	Path    string
	Data    []byte
	Version int32 // -1: any
}

func (r *SetDataRequest) Encode(e *Encoder) {
	e.String(r.Path)
	e.Buffer(r.Data)
	e.Int(r.Version)
}

func (r *SetDataRequest) Decode(d *Decoder) { *r = SetDataRequest{d.String(), d.Buffer(), d.Int()} }

// SetACLRequest is the request of setACL.
type SetACLRequest struct {
	Path    string
	ACL     []ACL
	Version int32 // of the ACL (Stat.Aversion); -1: any
}

func (r *SetACLRequest) Encode(e *Encoder) {
	e.String(r.Path)
	e.ACLs(r.ACL)
	e.Int(r.Version)
}

func (r *SetACLRequest) Decode(d *Decoder) { *r = SetACLRequest{d.String(), d.ACLs(), d.Int()} }

// CreateResponse answers create.
type CreateResponse = PathRequest

// SyncResponse answers sync.
type SyncResponse = PathRequest

// StatResponse answers exists, setData and setACL.
type StatResponse = Stat

// Create2Response answers create2, createContainer and createTTL.
type Create2Response struct {
	Path string
	Stat Stat
}

func (r *Create2Response) Encode(e *Encoder) {
	e.String(r.Path)
	r.Stat.Encode(e)
}

func (r *Create2Response) Decode(d *Decoder) {
	r.Path = d.String()
	r.Stat.Decode(d)
}

// GetDataResponse answers getData.
type GetDataResponse struct {
	Data []byte
	Stat Stat
}

func (r *GetDataResponse) Encode(e *Encoder) {
	e.Buffer(r.Data)
	r.Stat.Encode(e)
}

func (r *GetDataResponse) Decode(d *Decoder) {
	r.Data = d.Buffer()
	r.Stat.Decode(d)
}

// GetChildrenResponse answers getChildren: names, not paths, in no order.
type GetChildrenResponse struct{ Children []string }

func (r *GetChildrenResponse) Encode(e *Encoder) { e.Strings(r.Children) }

func (r *GetChildrenResponse) Decode(d *Decoder) { r.Children = d.Strings() }

// GetChildren2Response answers getChildren2.
type GetChildren2Response struct {
	Children []string
	Stat     Stat
}

func (r *GetChildren2Response) Encode(e *Encoder) {
	e.Strings(r.Children)
	r.Stat.Encode(e)
}

func (r *GetChildren2Response) Decode(d *Decoder) {
	r.Children = d.Strings()
	r.Stat.Decode(d)
}

// GetACLResponse answers getACL.
type GetACLResponse struct {
	ACL  []ACL
	Stat Stat
}

func (r *GetACLResponse) Encode(e *Encoder) {
	e.ACLs(r.ACL)
	r.Stat.Encode(e)
}

func (r *GetACLResponse) Decode(d *Decoder) {
	r.ACL = d.ACLs()
	r.Stat.Decode(d)
}

// NewRequest returns an empty record for an operation's request, or nil when
// the operation has none or is not known.
func NewRequest(op Op) Record {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer:
		return new(CreateRequest)
	case OpCreateTTL:
		return new(CreateTTLRequest)
	case OpDelete, OpCheck:
		return new(PathVersionRequest)
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2:
		return new(PathWatchRequest)
	case OpSetData:
		return new(SetDataRequest)
	case OpGetACL, OpSync, OpGetEphemerals, OpGetAllChildrenNumber:
		return new(PathRequest)
	case OpSetACL:
		return new(SetACLRequest)
	case OpMulti, OpMultiRead:
		return new(MultiRequest)
	case OpSetWatches:
		return new(SetWatchesRequest)
	case OpSetWatches2:
		return new(SetWatches2Request)
	case OpAddWatch:
		return new(AddWatchRequest)
	case OpCheckWatches, OpRemoveWatches:
		return new(WatchTypeRequest)
	case OpReconfig:
		return new(ReconfigRequest)
	case OpAuth:
		return new(AuthPacket)
	}
	return nil
}

// NewResponse returns an empty record for an operation's response, or nil when
// the operation has none or is not known.
func NewResponse(op Op) Record {
	switch op {
	case OpCreate:
		return new(CreateResponse)
	case OpCreate2, OpCreateContainer, OpCreateTTL:
		return new(Create2Response)
	case OpExists, OpSetData, OpSetACL:
		return new(StatResponse)
	case OpGetData:
		return new(GetDataResponse)
	case OpGetACL:
		return new(GetACLResponse)
	case OpGetChildren, OpGetEphemerals:
		return new(GetChildrenResponse)
	case OpGetAllChildrenNumber:
		return new(CountResponse)
	case OpGetChildren2:
		return new(GetChildren2Response)
	case OpSync:
		return new(SyncResponse)
	case OpMulti, OpMultiRead:
		return new(MultiResponse)
	case OpAddWatch:
		return new(ErrorResponse)
	case OpWhoAmI:
		return new(WhoAmIResponse)
	}
	return nil
}

// CountResponse answers getAllChildrenNumber.
type CountResponse struct{ Count int32 }

func (r *CountResponse) Encode(e *Encoder) { e.Int(r.Count) }

func (r *CountResponse) Decode(d *Decoder) { r.Count = d.Int() }
