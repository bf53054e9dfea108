package jute

// WatchMode is the mode field of an addWatch (ZooDefs.AddWatchModes).
type WatchMode int32

// The modes of addWatch.
const (
	WatchPersistent          WatchMode = 0
	WatchPersistentRecursive WatchMode = 1
)

// WatchType is the type field of removeWatches and checkWatches
// (Watcher.WatcherType of ZooKeeper 3.8).
type WatchType int32

// The types of watches.
const (
	WatchTypeChildren WatchType = 1
	WatchTypeData     WatchType = 2
	WatchTypeAny      WatchType = 3
)

// AddWatchRequest is the request of addWatch: a watch that stays when it fires.
type AddWatchRequest struct {
	Path string
	Mode WatchMode
}

func (r *AddWatchRequest) Encode(e *Encoder) {
	e.String(r.Path)
	e.Int(int32(r.Mode))
}

func (r *AddWatchRequest) Decode(d *Decoder) { *r = AddWatchRequest{d.String(), WatchMode(d.Int())} }

// WatchTypeRequest is the request of removeWatches and checkWatches.
type WatchTypeRequest struct {
	Path string
	Type WatchType
}

func (r *WatchTypeRequest) Encode(e *Encoder) {
	e.String(r.Path)
	e.Int(int32(r.Type))
}

func (r *WatchTypeRequest) Decode(d *Decoder) { *r = WatchTypeRequest{d.String(), WatchType(d.Int())} }

// SetWatches2Request is the request of setWatches2 (xid XidSetWatches): that of
// setWatches, and the watches that stay.
type SetWatches2Request struct {
	SetWatchesRequest
	Persistent          []string
	PersistentRecursive []string
}

func (r *SetWatches2Request) Encode(e *Encoder) {
	r.SetWatchesRequest.Encode(e)
	e.Strings(r.Persistent)
	e.Strings(r.PersistentRecursive)
}

func (r *SetWatches2Request) Decode(d *Decoder) {
	r.SetWatchesRequest.Decode(d)
	r.Persistent, r.PersistentRecursive = d.Strings(), d.Strings()
}

// ErrorResponse answers addWatch; its code is 0.
type ErrorResponse struct{ Err Error }

func (r *ErrorResponse) Encode(e *Encoder) { e.Int(int32(r.Err)) }

func (r *ErrorResponse) Decode(d *Decoder) { r.Err = Error(d.Int()) }

// WhoAmIResponse answers whoAmI, which has no request record: the identities of
// the connection, with the user's name or the address in ID.
type WhoAmIResponse struct{ IDs []ID }

func (r *WhoAmIResponse) Encode(e *Encoder) {
	e.Int(int32(len(r.IDs)))
	for _, id := range r.IDs {
		e.String(id.Scheme)
		e.String(id.ID)
	}
}

func (r *WhoAmIResponse) Decode(d *Decoder) {
	r.IDs = nil
	for range max(0, d.Vector(8)) {
		r.IDs = append(r.IDs, ID{d.String(), d.String()})
	}
}

// ReconfigRequest is the request of reconfig, which only an ensemble knows.
type ReconfigRequest struct {
	Joining, Leaving, Members string
	Config                    int64
}

func (r *ReconfigRequest) Encode(e *Encoder) {
	e.String(r.Joining)
	e.String(r.Leaving)
	e.String(r.Members)
	e.Long(r.Config)
}

func (r *ReconfigRequest) Decode(d *Decoder) {
	*r = ReconfigRequest{d.String(), d.String(), d.String(), d.Long()}
}
