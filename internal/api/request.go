package api

import (
	"fmt"
	"time"

	"barnabas/internal/security"
	"barnabas/internal/storage"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Outcome says what becomes of a request's place in its connection's answers.
type Outcome int8

// The outcomes. The zero value is a request that is still being worked on.
const (
	Pending    Outcome = iota
	Answer             // the bytes of W, with Inserts between them
	NoAnswer           // Produce with acks=0
	CloseConn          // the connection closes once the earlier answers are out
	LastAnswer         // an Answer after which the connection closes
)

// Conn is what handlers may know of the connection that a request came on.
type Conn struct {
	ID         int64
	Listener   string        // the listener's name, such as PLAINTEXT
	RemoteAddr string        // host:port of the client
	RemoteHost string        // the same without port, as quotas and groups name it
	Done       chan struct{} // closed when the connection is gone: nobody reads the answer

	// SASL is the connection's authentication, nil on a listener without;
	// owned by the connection's reading goroutine.
	SASL *security.Session

	// Set by ApiVersions v3+ (KIP-511), owned by the connection's reading goroutine.
	SoftwareName, SoftwareVersion string

	// background is closed when the last request that works in the background
	// has ended; owned by the connection's reading goroutine.
	background chan struct{}
}

// Insert is a run of file bytes that is sent in the middle of an answer. The
// server sends it without copying where it can, then releases it.
type Insert struct {
	At    int // how many bytes of W come before
	Slice storage.Slice
}

// Request is one request of a client and the place of its answer.
//
// Exactly one of Done, Skip, Fail or last is called on it, from any goroutine; from
// then on the handler must not touch it. Until then Body stays valid, or until
// ReleaseFrame, which a handler calls before it waits long.
type Request struct {
	wire.Header
	Body     []byte // what follows the header; aliases the frame
	Conn     *Conn
	Received time.Time

	W       wire.Writer // the answer: the server has put length and header there already
	Inserts []Insert    // in order of At
	Outcome Outcome
	Reason  error // why the connection closes, or closes after the answer; logged once

	// Cancel, when a handler sets it before it returns with the request still
	// pending, is called once when the connection is gone or the server stops
	// while the request still waits. It makes the request end soon.
	Cancel func()

	Finish func(*Request)                 // the server's: takes the finished request
	Frame  func(*Request)                 // the server's: takes the frame's memory back early; may be nil
	Resume func(*Request, func(*Request)) // the server's: see Later; may be nil
}

// Done sends what W and Inserts hold.
func (q *Request) Done() { q.end(Answer) }

// Skip ends a request that has no answer (acks=0).
func (q *Request) Skip() { q.end(NoAnswer) }

// Fail closes the connection, after the earlier answers are out, and logs why.
func (q *Request) Fail(reason error) {
	q.Reason = reason
	q.end(CloseConn)
}

// last sends what W holds and then closes the connection.
func (q *Request) last(reason error) {
	q.Reason = reason
	q.end(LastAnswer)
}

func (q *Request) end(o Outcome) {
	q.Outcome = o
	q.Finish(q)
}

// Later has f called on the goroutine that writes this connection's answers,
// so that whoever ends a wait (another connection's append, a timer) spends no
// time on the answer. f must end the request.
func (q *Request) Later(f func(*Request)) {
	if q.Resume == nil {
		f(q)
		return
	}
	q.Resume(q, f)
}

// InsertSlice puts file bytes at this point of the answer.
func (q *Request) InsertSlice(s storage.Slice) {
	if s.Len > 0 {
		q.Inserts = append(q.Inserts, Insert{At: len(q.W.B), Slice: s})
	}
}

// Reply sends a kmsg response at the request's version.
func (q *Request) Reply(r kmsg.Response) {
	q.write(r)
	q.Done()
}

func (q *Request) write(r kmsg.Response) {
	r.SetVersion(q.Version)
	q.W.B = r.AppendTo(q.W.B)
}

// Decode reads the body into r at the request's version. If it can't, or null
// stands where Kafka has none, it ends the request by closing the connection
// and returns false. Bytes after the body are ignored, as Kafka does.
func (q *Request) Decode(r kmsg.Request) bool {
	r.SetVersion(q.Version)
	if err := r.ReadFrom(q.Body); err != nil || hasForbiddenNull(r, q.Body) {
		q.malformed()
		return false
	}
	return true
}

// hasForbiddenNull tells whether an array that must not be null was null in the
// body that r was read from. kmsg reads it as an empty one, and so writes it
// back as one: that is how it shows.
func hasForbiddenNull(r kmsg.Request, body []byte) bool {
	again := r.AppendTo(make([]byte, 0, len(body)))
	for i := 0; i < len(again) && i < len(body); i++ {
		if again[i] == body[i] {
			continue
		}
		if r.IsFlexible() {
			return body[i] == 0 && again[i] == 1
		}
		return body[i] == 0xff && again[i] == 0
	}
	return false
}

// malformed ends a request whose body is not what its key and version say.
func (q *Request) malformed() {
	q.Fail(fmt.Errorf("%s v%d: %w", kmsg.NameForKey(q.Key), q.Version, wire.ErrMalformed))
}

// ReleaseFrame gives the frame's memory back before the request is finished.
// Body and all that aliases it must not be read any more.
func (q *Request) ReleaseFrame() {
	q.Body = nil
	if q.Frame != nil {
		q.Frame(q)
		q.Frame = nil
	}
}
