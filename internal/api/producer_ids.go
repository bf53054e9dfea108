package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/jute"
	"barnabas/internal/znode"
)

// producerIDs hands out the producer ids of the blocks that this broker gets
// from the controller or, below inter-broker protocol 3.0, takes from
// /latest_producer_id_block. The next block is fetched when the present one is
// nine tenths used, so that nobody waits (kafka.coordinator.transaction
// .ProducerIdManager, KIP-730).
type producerIDs struct {
	mu struct {
		sync.Mutex
		next, end  int64 // what is left of the block in use: [next, end)
		spare      znode.ProducerIDs
		hasSpare   bool
		fetching   bool
		fetched    chan struct{} // closed when the fetch in flight has ended
		fetchError error         // how the last fetch ended
	}
}

// PrefetchProducerIDs takes a block of producer ids, so that the first
// InitProducerId need not wait. It returns at once.
func (b *Broker) PrefetchProducerIDs() {
	b.producerIDs.mu.Lock()
	defer b.producerIDs.mu.Unlock()
	b.fetchProducerIDsLocked()
}

// nextProducerID returns a producer id that nobody ever had. ok is false when
// none is at hand; the channel is then closed when it is worth asking again.
func (b *Broker) nextProducerID() (id int64, ok bool, wait <-chan struct{}) {
	m := &b.producerIDs.mu
	m.Lock()
	defer m.Unlock()
	if m.next == m.end && m.hasSpare {
		m.next, m.end, m.hasSpare = m.spare.Start, m.spare.End+1, false
	}
	if m.next == m.end {
		b.fetchProducerIDsLocked()
		return 0, false, m.fetched
	}
	id = m.next
	m.next++
	if m.end-m.next <= znode.ProducerIDBlockSize/10 && !m.hasSpare {
		b.fetchProducerIDsLocked()
	}
	return id, true, nil
}

// waitProducerID is nextProducerID that waits for a block.
func (b *Broker) waitProducerID(ctx context.Context) (int64, error) {
	for {
		id, ok, wait := b.nextProducerID()
		if ok {
			return id, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		b.producerIDs.mu.Lock()
		err := b.producerIDs.mu.fetchError
		b.producerIDs.mu.Unlock()
		if err != nil {
			return 0, err
		}
	}
}

func (b *Broker) fetchProducerIDsLocked() {
	m := &b.producerIDs.mu
	if m.fetching {
		return
	}
	m.fetching, m.fetched = true, make(chan struct{})
	ok := b.Go(func(ctx context.Context) {
		block, err := b.newProducerIDBlock(ctx)
		m.Lock()
		defer m.Unlock()
		if err == nil {
			m.spare, m.hasSpare = block, true
		} else if ctx.Err() == nil {
			b.Log.Warn("taking a block of producer ids", "err", err)
		}
		m.fetchError = err
		m.fetching = false
		close(m.fetched)
	})
	if !ok {
		m.fetchError = ErrClosing
		m.fetching = false
		close(m.fetched)
	}
}

var errProducerIDsUsedUp = errors.New("all producer ids are used up")

// allocationTimeout is how long the controller, or ZooKeeper, is asked for a
// block: then the client is told to come again.
const allocationTimeout = 5 * time.Second

func (b *Broker) newProducerIDBlock(ctx context.Context) (znode.ProducerIDs, error) {
	ctx, cancel := context.WithTimeout(ctx, allocationTimeout)
	defer cancel()
	if b.Config.Load().IBP() < config.V3_0IV0 {
		return b.takeProducerIDBlock(ctx)
	}
	start, count, err := b.AllocateProducerIDs(ctx)
	if err == nil && (start < 0 || count <= 0 || start > math.MaxInt64-int64(count)) {
		err = fmt.Errorf("the controller's answer is no block: %d ids from %d", count, start)
	}
	return znode.ProducerIDs{Broker: b.ID, Start: start, End: start + int64(count) - 1}, err
}

// takeProducerIDBlock takes the next block for this broker.
func (b *Broker) takeProducerIDBlock(ctx context.Context) (znode.ProducerIDs, error) {
	for {
		data, stat, err := b.ZooKeeper.Get(ctx, znode.ProducerIDBlock)
		if errors.Is(err, jute.ErrNoNode) {
			err = b.ZooKeeper.CreateRecursive(ctx, znode.ProducerIDBlock, nil)
			if err == nil || errors.Is(err, jute.ErrNodeExists) {
				continue
			}
		}
		if err != nil {
			return znode.ProducerIDs{}, err
		}
		next := znode.FirstProducerIDs(b.ID)
		if len(data) > 0 {
			last, err := znode.DecodeProducerIDs(data)
			if err != nil {
				return znode.ProducerIDs{}, fmt.Errorf("%s: %w", znode.ProducerIDBlock, err)
			}
			var ok bool
			if next, ok = last.Next(b.ID); !ok {
				return znode.ProducerIDs{}, errProducerIDsUsedUp
			}
		}
		_, err = b.ZooKeeper.Set(ctx, znode.ProducerIDBlock, next.Encode(), stat.Version)
		if !errors.Is(err, jute.ErrBadVersion) {
			return next, err
		}
		// Another broker was first, or it was our own write whose answer was
		// lost: then that block stays unused.
	}
}
