package jute

// Stat is what the server counts of a node. Zxids are transaction ids, times
// are milliseconds since 1970.
type Stat struct {
	Czxid          int64 // the transaction that created the node
	Mzxid          int64 // the last that changed its data
	Ctime          int64
	Mtime          int64
	Version        int32 // changes of the data
	Cversion       int32 // changes of the children
	Aversion       int32 // changes of the ACL
	EphemeralOwner int64 // session id, 0 for a persistent node
	DataLength     int32 // bytes
	NumChildren    int32
	Pzxid          int64 // the last transaction that changed the children
}

// statSize is a Stat's bytes on the wire.
const statSize = 68

func (s *Stat) Encode(e *Encoder) {
	e.Long(s.Czxid)
	e.Long(s.Mzxid)
	e.Long(s.Ctime)
	e.Long(s.Mtime)
	e.Int(s.Version)
	e.Int(s.Cversion)
	e.Int(s.Aversion)
	e.Long(s.EphemeralOwner)
	e.Int(s.DataLength)
	e.Int(s.NumChildren)
	e.Long(s.Pzxid)
}

func (s *Stat) Decode(d *Decoder) {
	if len(d.b) < statSize {
		d.Fail()
		return
	}
	*s = Stat{
		Czxid: d.Long(), Mzxid: d.Long(), Ctime: d.Long(), Mtime: d.Long(),
		Version: d.Int(), Cversion: d.Int(), Aversion: d.Int(), EphemeralOwner: d.Long(),
		DataLength: d.Int(), NumChildren: d.Int(), Pzxid: d.Long(),
	}
}

// ACL gives one identity a set of permissions (PermRead and its like, or-ed).
type ACL struct {
	Perms int32
	ID    ID
}

// ID is an identity under an authentication scheme: ("world", "anyone"),
// ("digest", "user:hash"), ("auth", ""), ("ip", "10.0.0.0/8").
type ID struct{ Scheme, ID string }

// WorldACL lets everybody do everything (ZooDefs.Ids.OPEN_ACL_UNSAFE).
func WorldACL() []ACL { return []ACL{{PermAll, ID{"world", "anyone"}}} }

// ACLs appends a vector of ACLs; nil is null.
func (e *Encoder) ACLs(acls []ACL) {
	if acls == nil {
		e.Int(-1)
		return
	}
	e.Int(int32(len(acls)))
	for _, a := range acls {
		e.Int(a.Perms)
		e.String(a.ID.Scheme)
		e.String(a.ID.ID)
	}
}

// ACLs reads a vector of ACLs; null is nil.
func (d *Decoder) ACLs() []ACL {
	n := d.Vector(12)
	if n < 0 || d.err != nil {
		return nil
	}
	acls := make([]ACL, 0, n)
	for range n {
		acls = append(acls, ACL{d.Int(), ID{d.String(), d.String()}})
	}
	if d.err != nil {
		return nil
	}
	return acls
}

// PasswordSize is the bytes of a session's password.
const PasswordSize = 16

// ConnectRequest is the first frame of a client.
type ConnectRequest struct {
	ProtocolVersion int32
	LastZxidSeen    int64
	Timeout         int32 // milliseconds, asked for
	SessionID       int64 // 0: a new session
	Password        []byte
	ReadOnly        bool // a read-only server would do
	OldClient       bool // the frame has no ReadOnly (clients before 3.4)
}

func (r *ConnectRequest) Encode(e *Encoder) {
	e.Int(r.ProtocolVersion)
	e.Long(r.LastZxidSeen)
	e.Int(r.Timeout)
	e.Long(r.SessionID)
	e.Buffer(r.Password)
	if !r.OldClient {
		e.Bool(r.ReadOnly)
	}
}

func (r *ConnectRequest) Decode(d *Decoder) {
	*r = ConnectRequest{ProtocolVersion: d.Int(), LastZxidSeen: d.Long(), Timeout: d.Int(), SessionID: d.Long(), Password: d.Buffer()}
	if r.OldClient = len(d.b) == 0; !r.OldClient {
		r.ReadOnly = d.Bool()
	}
}

// ConnectResponse is the first frame of a server. SessionID 0 with Timeout 0
// says that the session asked for is gone.
type ConnectResponse struct {
	ProtocolVersion int32
	Timeout         int32 // milliseconds, granted
	SessionID       int64
	Password        []byte
	ReadOnly        bool
	OldClient       bool // the frame has no ReadOnly
}

func (r *ConnectResponse) Encode(e *Encoder) {
	e.Int(r.ProtocolVersion)
	e.Int(r.Timeout)
	e.Long(r.SessionID)
	e.Buffer(r.Password)
	if !r.OldClient {
		e.Bool(r.ReadOnly)
	}
}

func (r *ConnectResponse) Decode(d *Decoder) {
	*r = ConnectResponse{ProtocolVersion: d.Int(), Timeout: d.Int(), SessionID: d.Long(), Password: d.Buffer()}
	if r.OldClient = len(d.b) == 0; !r.OldClient {
		r.ReadOnly = d.Bool()
	}
}

// RequestHeader goes before each request.
type RequestHeader struct {
	Xid int32 // counted by the client, or one of the Xid constants
	Op  Op
}

func (r *RequestHeader) Encode(e *Encoder) {
	e.Int(r.Xid)
	e.Int(int32(r.Op))
}

func (r *RequestHeader) Decode(d *Decoder) { *r = RequestHeader{d.Int(), Op(d.Int())} }

// ReplyHeader goes before each response and event.
type ReplyHeader struct {
	Xid  int32
	Zxid int64 // the server's last transaction as this reply sees it; -1 for an event
	Err  Error
}

func (r *ReplyHeader) Encode(e *Encoder) {
	e.Int(r.Xid)
	e.Long(r.Zxid)
	e.Int(int32(r.Err))
}

func (r *ReplyHeader) Decode(d *Decoder) { *r = ReplyHeader{d.Int(), d.Long(), Error(d.Int())} }

// WatcherEvent follows a ReplyHeader of XidNotification.
type WatcherEvent struct {
	Type  EventType
	State KeeperState
	Path  string
}

func (r *WatcherEvent) Encode(e *Encoder) {
	e.Int(int32(r.Type))
	e.Int(int32(r.State))
	e.String(r.Path)
}

func (r *WatcherEvent) Decode(d *Decoder) {
	*r = WatcherEvent{EventType(d.Int()), KeeperState(d.Int()), d.String()}
}

// AuthPacket is the request of OpAuth (xid XidAuth).
type AuthPacket struct {
	Type   int32 // 0
	Scheme string
	Auth   []byte
}

func (r *AuthPacket) Encode(e *Encoder) {
	e.Int(r.Type)
	e.String(r.Scheme)
	e.Buffer(r.Auth)
}

func (r *AuthPacket) Decode(d *Decoder) { *r = AuthPacket{d.Int(), d.String(), d.Buffer()} }

// SetWatchesRequest is the request of OpSetWatches (xid XidSetWatches): the
// one-shot watches that a client had before it lost its connection.
type SetWatchesRequest struct {
	RelativeZxid int64 // the last zxid that the client saw
	Data         []string
	Exist        []string
	Child        []string
}

func (r *SetWatchesRequest) Encode(e *Encoder) {
	e.Long(r.RelativeZxid)
	e.Strings(r.Data)
	e.Strings(r.Exist)
	e.Strings(r.Child)
}

func (r *SetWatchesRequest) Decode(d *Decoder) {
	*r = SetWatchesRequest{d.Long(), d.Strings(), d.Strings(), d.Strings()}
}
