package api

import "time"

// fetchWait is a fetch request's time between looking in vain and its answer
// (Kafka's DelayedFetch). Whoever takes fetchSet.mu.parked away wakes it.
type fetchWait struct {
	parked    bool // has been parked once: timers and others may hold it
	queued    bool // has been parked behind another request of its session
	timer     *time.Timer
	resume    func(*Request)
	expired   bool // guarded by set.mu: max_wait is over
	cancelled bool // guarded by session.mu until its turn, then by set.mu: nobody reads the answer
}

func (w *fetchWait) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// park leaves the request until a partition changes or max_wait is over. The
// caller must not touch f afterwards.
func (f *fetching) park() {
	if !f.wait.parked {
		f.wait.parked = true
		f.wait.resume = f.wakened
		if !f.wait.queued {
			f.q.Cancel = f.cancel
			f.q.ReleaseFrame()
		}
		f.wait.timer = time.AfterFunc(f.maxWait, f.expire)
		if !f.set.standing {
			f.set.subscribe()
			f.read() // what changed before is not told
		}
	}
	for {
		if f.enough() {
			f.answer()
			return
		}
		if f.incremental {
			for i := range f.results { // what was found is to be found again
				f.set.mark(f.results[i].of)
			}
		}
		found := f.bytes
		f.dropResults()
		if f.set.park(f, found) {
			return
		}
		f.read()
		if f.over() {
			f.answer()
			return
		}
	}
}

// park enters f as waiting, unless something has changed since it looked or
// its time is over.
func (s *fetchSet) park(f *fetching, found int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.told != s.mu.seen || f.wait.expired || f.wait.cancelled {
		return false
	}
	s.mu.parked, s.mu.bytes = f, found
	return true
}

func (f *fetching) over() bool {
	f.set.mu.Lock()
	defer f.set.mu.Unlock()
	return f.wait.expired || f.wait.cancelled
}

// wakened looks again, on the goroutine that writes the answers.
func (f *fetching) wakened(*Request) {
	f.read()
	if f.over() || f.enough() {
		f.answer()
		return
	}
	f.park()
}

// expire ends the wait with what there is.
func (f *fetching) expire() { f.end(&f.wait.expired) }

// cancel ends the wait, since nobody reads the answer.
func (f *fetching) cancel() { f.end(&f.wait.cancelled) }

// cancelQueued is cancel for a request that may still wait for its turn.
func (f *fetching) cancelQueued(s *fetchSession) {
	s.mu.Lock()
	begun := f.set != nil
	if !begun {
		f.wait.cancelled = true
	}
	s.mu.Unlock()
	if begun {
		f.cancel()
	}
}

func (f *fetching) end(why *bool) {
	s := f.set
	s.mu.Lock()
	*why = true
	mine := s.mu.parked == f
	if mine {
		s.mu.parked = nil
	}
	s.mu.Unlock()
	if mine {
		f.q.Later(f.wait.resume)
	}
}
