package zookeeper

import (
	"context"
	"errors"

	"barnabas/internal/jute"
)

// Retry calls f again, on the next connection, for as long as it fails with
// jute.ErrConnectionLoss. A write in f may have been carried out by a try that
// failed so: f must take that as success. It ends with f's other errors, with
// ctx's, or with WaitConnected's.
func (c *Client) Retry(ctx context.Context, f func() error) error {
	for {
		err := f()
		if !errors.Is(err, jute.ErrConnectionLoss) {
			return err
		}
		if err := c.WaitConnected(ctx); err != nil {
			return err
		}
	}
}

// CreateRecursive is Create which first makes the nodes above that are
// missing: persistent, null data. As with Create, a lost connection is an
// error.
func (c *Client) CreateRecursive(ctx context.Context, path string, data []byte, mode CreateMode, acl ...jute.ACL) (string, jute.Stat, error) {
	made, stat, err := c.Create(ctx, path, data, mode, acl...)
	if !errors.Is(err, jute.ErrNoNode) {
		return made, stat, err
	}
	above := withParents([]string{parent(path)})
	ops := make([]Op, len(above), len(above)+1)
	for i, p := range above {
		ops[i] = CreateOp(p, nil, Persistent)
	}
	if err := ctx.Err(); err != nil {
		return "", jute.Stat{}, err
	}
	calls := c.GoAll(append(ops, CreateOp(path, data, mode, acl...)))
	for _, call := range calls[:len(above)] {
		if _, err := call.Wait(ctx); err != nil && !errors.Is(err, jute.ErrNodeExists) {
			return "", jute.Stat{}, err
		}
	}
	r, err := calls[len(above)].Wait(ctx)
	return r.Path, r.Stat, err
}

// EnsurePaths makes those of the nodes, and of the nodes above them, that are
// missing: persistent, null data, in the given order. It takes two round
// trips, writes nothing when nothing is missing, and repeats itself over lost
// connections.
func (c *Client) EnsurePaths(ctx context.Context, paths ...string) error {
	all := withParents(paths)
	return c.Retry(ctx, func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		ops := make([]Op, len(all))
		for i, path := range all {
			ops[i] = ExistsOp(path, false)
		}
		var missing []Op
		for i, call := range c.GoAll(ops) {
			switch _, err := call.Wait(ctx); {
			case errors.Is(err, jute.ErrNoNode):
				missing = append(missing, CreateOp(all[i], nil, Persistent))
			case err != nil:
				return err
			}
		}
		for _, call := range c.GoAll(missing) {
			if _, err := call.Wait(ctx); err != nil && !errors.Is(err, jute.ErrNodeExists) {
				return err
			}
		}
		return nil
	})
}

// Read is one result of GetMany or ChildrenMany.
type Read struct {
	Data     []byte
	Children []string
	Stat     jute.Stat
	Err      error // the node's own, see OfNode
}

// OfNode tells whether the error of a read says something of the node: that it
// is not there, or not to be read. Others are of the server, the session or the
// connection, and leave open what there is.
func OfNode(err error) bool {
	return errors.Is(err, jute.ErrNoNode) || errors.Is(err, jute.ErrNoAuth) || errors.Is(err, jute.ErrBadArguments)
}

// GetMany reads the data of all paths, pipelined, in order, and leaves a watch
// on each that exists if watch is set. A lost connection is bridged by reading
// on; the error is what ended the whole.
func (c *Client) GetMany(ctx context.Context, paths []string, watch bool) ([]Read, error) {
	return c.readMany(ctx, paths, func(path string) Op { return GetOp(path, watch) })
}

// ChildrenMany is GetMany for the names of children.
func (c *Client) ChildrenMany(ctx context.Context, paths []string, watch bool) ([]Read, error) {
	return c.readMany(ctx, paths, func(path string) Op { return ChildrenOp(path, watch) })
}

func (c *Client) readMany(ctx context.Context, paths []string, op func(string) Op) ([]Read, error) {
	reads := make([]Read, len(paths))
	done := 0
	err := c.Retry(ctx, func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		calls := make([]*Call, len(paths)-done)
		for i, path := range paths[done:] {
			calls[i] = c.Go(op(path))
		}
		for _, call := range calls {
			r, err := call.Wait(ctx)
			if err != nil && !OfNode(err) {
				return err
			}
			reads[done] = Read{r.Data, r.Children, r.Stat, err}
			done++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return reads, nil
}
