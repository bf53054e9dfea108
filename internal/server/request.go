package server

import (
	"barnabas/internal/api"
)

// largestKept is how large an answer's memory may be to be kept for the next.
const largestKept = 64 << 10

// request is a request of api with what the server needs to know of it. It is
// used again once its answer is out.
type request struct {
	api.Request
	s       *Server
	c       *conn
	frame   *buffer // nil once it was given back
	reuse   bool    // the frame's memory may serve again
	claim   claim
	next    *request
	inside  bool // its handler has not returned yet; guarded by conn.mu
	done    bool // guarded by conn.mu
	lost    bool // its handler panicked; guarded by conn.mu
	counted int  // bytes of it in conn.mu.bytes; guarded by conn.mu

	finish, release func(*api.Request)
	resume          func(*api.Request, func(*api.Request))
}

// releaseFrame gives the frame's memory back.
func (r *request) releaseFrame() {
	if r.frame == nil {
		return
	}
	if r.reuse {
		putBuffer(r.frame)
	}
	r.frame = nil
	r.s.budget.release(&r.claim)
	r.c.mu.Lock()
	r.c.mu.bytes -= r.counted
	r.counted = 0
	r.c.mu.Unlock()
}

// recycle ends the request's life: nobody may hold it any more.
func (r *request) recycle() {
	if r.frame != nil && r.reuse {
		putBuffer(r.frame)
	}
	r.frame = nil
	r.s.budget.release(&r.claim)
	for i := range r.Inserts {
		r.Inserts[i].Slice.Release()
	}
	clear(r.Inserts)
	w := r.W.B[:0]
	if cap(w) > largestKept {
		w = nil
	}
	inserts := r.Inserts[:0]
	r.Request = api.Request{Inserts: inserts}
	r.W.B = w
	s := r.s
	r.c, r.next, r.inside, r.done, r.reuse, r.counted = nil, nil, false, false, false, 0
	s.requests.Put(r)
}
