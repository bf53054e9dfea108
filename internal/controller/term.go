package controller

import (
	"context"
	"errors"
	"sync"

	"barnabas/internal/controller/core"
	"barnabas/internal/jute"
	"barnabas/internal/zookeeper"
)

// term is what belongs to one time of being the active controller: the fence of
// its writes and the ways to the brokers. The loop's goroutine owns it.
type term struct {
	c            *Controller
	epochVersion int32 // data version of /controller_epoch, the fence
	ctx          context.Context
	cancel       context.CancelFunc
	work         sync.WaitGroup // reads, writes and senders
	senders      map[int32]*sender
}

func newTerm(c *Controller, epochVersion int32) *term {
	t := &term{c: c, epochVersion: epochVersion, senders: map[int32]*sender{}}
	t.ctx, t.cancel = context.WithCancel(c.ctx)
	return t
}

// end stops everything of the term and waits for it.
func (t *term) end() {
	t.cancel()
	t.work.Wait()
}

// read carries out reads and gives the results to the loop.
func (t *term) read(e core.Reads) {
	t.work.Add(1)
	go func() {
		defer t.work.Done()
		results, err := readAll(t.ctx, t.c.opts.ZooKeeper, e.Ops)
		t.done(core.ReadsDone{Tag: e.Tag, Results: results}, err)
	}()
}

// write carries out writes and gives the results to the loop.
func (t *term) write(e core.Writes) {
	t.work.Add(1)
	go func() {
		defer t.work.Done()
		w := writer{zk: t.c.opts.ZooKeeper, epochVersion: t.epochVersion, maxOps: t.c.opts.MaxOps, maxBytes: t.c.opts.MaxBytes}
		results, moved, err := w.write(t.ctx, e.Units)
		t.done(core.WritesDone{Tag: e.Tag, Results: results, Moved: moved}, err)
	}()
}

func (t *term) done(ev core.Event, err error) {
	switch {
	case err == nil:
		t.c.push(fromTerm{t, ev})
	case t.ctx.Err() == nil:
		t.c.push(termFailed{t, err})
	}
}

// readAll sends all reads at once; those that a lost connection left
// unanswered are sent again on the next one.
func readAll(ctx context.Context, zk *zookeeper.Client, reads []core.Read) ([]core.ReadResult, error) {
	results := make([]core.ReadResult, 0, len(reads))
	err := zk.Retry(ctx, func() error {
		rest := reads[len(results):]
		calls := make([]*zookeeper.Call, len(rest))
		for i, r := range rest {
			calls[i] = zk.Go(readOp(r))
		}
		for _, call := range calls {
			r, err := call.Wait(ctx)
			code, ok := nodeError(err)
			if !ok {
				return err
			}
			results = append(results, core.ReadResult{Data: r.Data, Children: r.Children, Stat: r.Stat, Err: code})
		}
		return nil
	})
	return results, err
}

func readOp(r core.Read) zookeeper.Op {
	switch r.Kind {
	case core.ReadChildren:
		return zookeeper.ChildrenOp(r.Path, r.Watch)
	case core.ReadExists:
		return zookeeper.ExistsOp(r.Path, r.Watch)
	}
	return zookeeper.GetOp(r.Path, r.Watch)
}

// nodeError is the error of an operation on a node, OK for none; false for
// errors that are no answer about the node.
func nodeError(err error) (code jute.Error, ok bool) {
	if err == nil {
		return jute.OK, true
	}
	return code, errors.As(err, &code) && zookeeper.OfNode(err)
}
