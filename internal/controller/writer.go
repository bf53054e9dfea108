package controller

import (
	"context"
	"errors"

	"barnabas/internal/controller/core"
	"barnabas/internal/jute"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
)

// maxLosses is how often a unit may lose its connection, all but the first time
// sent alone, before it is taken for the cause: a server closes the connection of
// a request above its jute.maxbuffer.
const maxLosses = 8

// writer carries out units in order, in transactions of many, each of which
// checks the epoch first.
type writer struct {
	zk               *zookeeper.Client
	epochVersion     int32
	maxOps, maxBytes int
}

// batch is some units of the list being written, by index.
type batch struct{ units []int }

// write carries out units. A transaction that fails is done again without the
// unit that made it fail; if it then fails once more, unit by unit, so that what
// follows meets what would have been there. A later unit may therefore be done
// before an earlier one, unless it needs it. moved tells that the check failed.
// Transactions without an answer are done again on the next connection; what
// was carried out twice then fails, which the core understands.
func (w *writer) write(ctx context.Context, units []core.Unit) (results []core.UnitResult, moved bool, err error) {
	results = make([]core.UnitResult, len(units))
	all := make([]int, len(units))
	for i := range all {
		all[i] = i
	}
	maxOps, losses := w.maxOps, 0
	todo := w.split(units, all, maxOps)
	for round := 0; len(todo) > 0; round++ {
		now, later := todo, []*batch(nil)
		if losses > 0 {
			now, later = todo[:1], todo[1:]
		}
		left, lost, moved, err := w.send(ctx, units, now, results)
		if moved || err != nil {
			return nil, moved, err
		}
		switch {
		case lost && maxOps > 1:
			maxOps = max(1, maxOps/2)
		case lost:
			if losses++; losses >= maxLosses {
				results[left[0]] = core.UnitResult{Err: jute.ErrConnectionLoss}
				left, losses = left[1:], 0
			}
		default:
			losses = 0
			if round > 0 {
				maxOps = 1
			}
		}
		for _, b := range later {
			left = append(left, b.units...)
		}
		if lost {
			if err := w.zk.WaitConnected(ctx); err != nil {
				return nil, false, err
			}
		}
		todo = w.split(units, left, maxOps)
	}
	return results, false, nil
}

// split makes transactions of at most maxOps operations and maxBytes; a unit is
// never cut.
func (w *writer) split(units []core.Unit, which []int, maxOps int) []*batch {
	var list []*batch
	ops, bytes := 0, 0
	for _, i := range which {
		size := 0
		for _, op := range units[i] {
			size += len(op.Path) + len(op.Data) + 64
		}
		if len(list) == 0 || ops+len(units[i]) > maxOps || bytes+size > w.maxBytes {
			list = append(list, &batch{})
			ops, bytes = 0, 0
		}
		b := list[len(list)-1]
		b.units = append(b.units, i)
		ops, bytes = ops+len(units[i]), bytes+size
	}
	return list
}

// send sends the transactions as neighbours and takes their answers. left are
// the units that are to be sent again, in order.
func (w *writer) send(ctx context.Context, units []core.Unit, todo []*batch, results []core.UnitResult) (left []int, lost, moved bool, err error) {
	ops := make([]zookeeper.Op, len(todo))
	for i, b := range todo {
		multi := []zookeeper.Op{zookeeper.CheckOp(znode.ControllerEpochPath, w.epochVersion)}
		for _, u := range b.units {
			for _, op := range units[u] {
				multi = append(multi, writeOp(op))
			}
		}
		ops[i] = zookeeper.MultiOp(multi...)
	}
	if err := ctx.Err(); err != nil {
		return nil, false, false, err
	}
	calls := w.zk.GoAll(ops)
	failed := false // units of an earlier transaction are yet to be done: later failures may be its doing
	for i, b := range todo {
		r, err := calls[i].Wait(ctx)
		var multi *zookeeper.MultiError
		switch {
		case err == nil:
			w.succeeded(units, b, r.Multi, results)
		case errors.As(err, &multi) && multi.Index == 0:
			return nil, false, true, nil
		case errors.As(err, &multi):
			if failed {
				left = append(left, b.units...)
				continue
			}
			left = append(left, w.failed(units, b, multi, results)...)
			failed = len(b.units) > 1
		case errors.Is(err, zookeeper.ErrRequestTooLarge) && len(b.units) == 1:
			results[b.units[0]] = core.UnitResult{Err: jute.ErrBadArguments}
		case errors.Is(err, zookeeper.ErrRequestTooLarge):
			left, failed = append(left, b.units...), true
		case errors.Is(err, jute.ErrConnectionLoss):
			left, lost = append(left, b.units...), true
		default:
			return nil, false, false, err
		}
	}
	return left, lost, false, nil
}

func (w *writer) succeeded(units []core.Unit, b *batch, multi []zookeeper.MultiResult, results []core.UnitResult) {
	at := 1 // after the check
	for _, u := range b.units {
		for _, op := range units[u] {
			if op.Kind == core.OpSet {
				results[u].Version = multi[at].Stat.Version
			}
			at++
		}
	}
}

// failed notes which unit made a transaction fail, and returns the others.
func (w *writer) failed(units []core.Unit, b *batch, e *zookeeper.MultiError, results []core.UnitResult) (left []int) {
	at := 1
	for _, u := range b.units {
		if e.Index >= at && e.Index < at+len(units[u]) {
			results[u] = core.UnitResult{Err: e.Err, Op: e.Index - at}
		} else {
			left = append(left, u)
		}
		at += len(units[u])
	}
	return left
}

func writeOp(op core.Op) zookeeper.Op {
	switch op.Kind {
	case core.OpCreate:
		return zookeeper.CreateOp(op.Path, op.Data, zookeeper.Persistent)
	case core.OpSet:
		return zookeeper.SetOp(op.Path, op.Data, op.Version)
	}
	return zookeeper.DeleteOp(op.Path, op.Version)
}
