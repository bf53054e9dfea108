package keeper

import "time"

// stats counts what srvr and mntr show, of the server, and what cons shows, of
// a connection.
type stats struct {
	received, sent   int64 // frames
	expired          int64 // sessions
	authFailed       int64
	rejected         int64 // connections
	last             time.Duration
	answered         int64
	minTime, maxTime time.Duration
	sumTime          time.Duration
}

func (s *stats) latency(d time.Duration) {
	d = max(d, 0)
	s.last = d
	if s.answered == 0 || d < s.minTime {
		s.minTime = d
	}
	s.maxTime = max(s.maxTime, d)
	s.sumTime += d
	s.answered++
}

// average returns the average latency in milliseconds.
func (s *stats) average() float64 {
	if s.answered == 0 {
		return 0
	}
	return float64(s.sumTime) / float64(s.answered) / float64(time.Millisecond)
}
