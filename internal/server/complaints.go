package server

import (
	"log/slog"
	"sync"
	"time"
)

const (
	complaintEvery = 10 * time.Second // for one address
	complaintHosts = 1024             // addresses remembered
)

// complaints logs what clients do wrong, at most one line for an address in
// complaintEvery, so that one of them can't fill the disk with lines.
type complaints struct {
	log *slog.Logger
	mu  struct {
		sync.Mutex
		hosts map[string]*complaint
	}
}

type complaint struct {
	last   time.Time
	hidden int
}

func newComplaints(log *slog.Logger) *complaints {
	c := &complaints{log: log}
	c.mu.hosts = make(map[string]*complaint)
	return c
}

func (c *complaints) add(host string, now time.Time, text string, args ...any) {
	hidden, say := c.due(host, now)
	if !say {
		return
	}
	if hidden > 0 {
		args = append(args, "not_logged_before", hidden)
	}
	c.log.Warn(text, args...)
}

func (c *complaints) due(host string, now time.Time) (hidden int, say bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.mu.hosts[host]
	if h == nil {
		if len(c.mu.hosts) >= complaintHosts {
			clear(c.mu.hosts) // better a few lines too many than memory without bound
		}
		h = &complaint{}
		c.mu.hosts[host] = h
	} else if now.Sub(h.last) < complaintEvery {
		h.hidden++
		return 0, false
	}
	hidden, h.hidden, h.last = h.hidden, 0, now
	return hidden, true
}
