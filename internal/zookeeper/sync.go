package zookeeper

import (
	"context"
	"errors"

	"barnabas/internal/jute"
)

// Do sends op and waits for its result. Once ctx is over nothing is sent.
func (c *Client) Do(ctx context.Context, op Op) (*Result, error) {
	if err := ctx.Err(); err != nil {
		return &Result{}, err
	}
	return c.Go(op).Wait(ctx)
}

// Create makes a node and returns its path, with the counter if it is
// sequential. See CreateOp.
func (c *Client) Create(ctx context.Context, path string, data []byte, mode CreateMode, acl ...jute.ACL) (string, jute.Stat, error) {
	r, err := c.Do(ctx, CreateOp(path, data, mode, acl...))
	return r.Path, r.Stat, err
}

// Delete deletes a node of this data version.
func (c *Client) Delete(ctx context.Context, path string, version int32) error {
	_, err := c.Do(ctx, DeleteOp(path, version))
	return err
}

// Get reads a node's data; nil if it is null.
func (c *Client) Get(ctx context.Context, path string) ([]byte, jute.Stat, error) {
	r, err := c.Do(ctx, GetOp(path, false))
	return r.Data, r.Stat, err
}

// GetW is Get and leaves a watch if the node exists.
func (c *Client) GetW(ctx context.Context, path string) ([]byte, jute.Stat, error) {
	r, err := c.Do(ctx, GetOp(path, true))
	return r.Data, r.Stat, err
}

// Exists tells whether a node exists. That it does not is no error.
func (c *Client) Exists(ctx context.Context, path string) (jute.Stat, bool, error) {
	return c.exists(ctx, path, false)
}

// ExistsW is Exists and leaves a watch in either case.
func (c *Client) ExistsW(ctx context.Context, path string) (jute.Stat, bool, error) {
	return c.exists(ctx, path, true)
}

func (c *Client) exists(ctx context.Context, path string, watch bool) (jute.Stat, bool, error) {
	r, err := c.Do(ctx, ExistsOp(path, watch))
	if errors.Is(err, jute.ErrNoNode) {
		return jute.Stat{}, false, nil
	}
	return r.Stat, err == nil, err
}

// Children lists the names of a node's children, in no order.
func (c *Client) Children(ctx context.Context, path string) ([]string, jute.Stat, error) {
	r, err := c.Do(ctx, ChildrenOp(path, false))
	return r.Children, r.Stat, err
}

// ChildrenW is Children and leaves a watch if the node exists.
func (c *Client) ChildrenW(ctx context.Context, path string) ([]string, jute.Stat, error) {
	r, err := c.Do(ctx, ChildrenOp(path, true))
	return r.Children, r.Stat, err
}

// Set sets the data of a node of this data version.
func (c *Client) Set(ctx context.Context, path string, data []byte, version int32) (jute.Stat, error) {
	r, err := c.Do(ctx, SetOp(path, data, version))
	return r.Stat, err
}

// Multi does all ops or none. If one fails, the error is a *MultiError, which
// names it, and the results hold each op's code.
func (c *Client) Multi(ctx context.Context, ops ...Op) ([]MultiResult, error) {
	r, err := c.Do(ctx, MultiOp(ops...))
	return r.Multi, err
}

// MultiRead does gets and children reads at one point in time; each result has
// its own Err.
func (c *Client) MultiRead(ctx context.Context, ops ...Op) ([]MultiResult, error) {
	r, err := c.Do(ctx, MultiReadOp(ops...))
	return r.Multi, err
}

// Sync lets the server catch up with its ensemble.
func (c *Client) Sync(ctx context.Context, path string) error {
	_, err := c.Do(ctx, SyncOp(path))
	return err
}

// GetACL reads a node's access list.
func (c *Client) GetACL(ctx context.Context, path string) ([]jute.ACL, jute.Stat, error) {
	r, err := c.Do(ctx, GetACLOp(path))
	return r.ACL, r.Stat, err
}

// SetACL sets the access list of a node of this ACL version.
func (c *Client) SetACL(ctx context.Context, path string, acl []jute.ACL, version int32) (jute.Stat, error) {
	r, err := c.Do(ctx, SetACLOp(path, acl, version))
	return r.Stat, err
}
