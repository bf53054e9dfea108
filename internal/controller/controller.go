package controller

import "context"

// Controller is this broker's part in the cluster's controller.
type Controller struct {
	opts Options
}

// New returns a Controller that does nothing until Start.
func New(o Options) *Controller { return &Controller{opts: o} }

// Start begins to watch /controller and to run for it. The broker's own znode
// must be registered before. It returns at once; the work ends with Close.
func (c *Controller) Start() {}

// Elect makes the controller read /controller again and run if it is free. The
// broker calls it after it has registered in a new session.
func (c *Controller) Elect() {}

// SessionExpired ends the term, if this broker is the active controller, and
// returns when nothing more of it can reach ZooKeeper. The broker calls it
// between the session's expiry and the client's Renew.
func (c *Controller) SessionExpired(ctx context.Context) error { return nil }

// Close ends the term and every goroutine. /controller is left to the close of
// the session, which deletes it.
func (c *Controller) Close() error { return nil }

// ActiveID returns the broker that /controller names, -1 when none is known.
// Clients are told the id that the last UpdateMetadata carried instead.
func (c *Controller) ActiveID() int32 { return -1 }

// IsActive tells whether this broker is the active controller.
func (c *Controller) IsActive() bool { return false }

// Epoch returns the epoch of this broker's term, 0 when it is not active.
func (c *Controller) Epoch() int32 { return 0 }
