package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"

	"github.com/twmb/franz-go/pkg/kadm"
)

// offsetStore keeps a group's offsets in ZooKeeper, in Kafka, or in both.
type offsetStore struct {
	where Storage
	group string
	zk    *zookeeper.Client
	admin *kadm.Client
}

// load returns the offsets of partitions; those without any are missing.
func (s *offsetStore) load(ctx context.Context, parts []wire.TopicPartition) (map[wire.TopicPartition]int64, error) {
	found := map[wire.TopicPartition]int64{}
	if s.where != InKafka {
		paths := make([]string, len(parts))
		for i, tp := range parts {
			paths[i] = znode.ConsumerOffsetPath(s.group, tp.Topic, tp.Partition)
		}
		reads, err := s.zk.GetMany(ctx, paths, false)
		if err != nil {
			return nil, err
		}
		for i, r := range reads {
			if errors.Is(r.Err, jute.ErrNoNode) {
				continue
			}
			if r.Err != nil {
				return nil, r.Err
			}
			offset, err := znode.DecodeConsumerOffset(r.Data)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", paths[i], err)
			}
			found[parts[i]] = offset
		}
	}
	if s.where == InZooKeeper {
		return found, nil
	}
	all, err := s.admin.FetchOffsets(ctx, s.group)
	if err != nil {
		return nil, err
	}
	for _, tp := range parts {
		o, ok := all.Lookup(tp.Topic, tp.Partition)
		if !ok || o.At < 0 {
			continue
		}
		if o.Err != nil {
			return nil, o.Err
		}
		if before, ok := found[tp]; !ok || before < o.At {
			found[tp] = o.At
		}
	}
	return found, nil
}

// store writes offsets.
func (s *offsetStore) store(ctx context.Context, offsets map[wire.TopicPartition]int64) error {
	if len(offsets) == 0 {
		return nil
	}
	var errs []error
	if s.where != InZooKeeper {
		all := kadm.Offsets{}
		for tp, offset := range offsets {
			all.AddOffset(tp.Topic, tp.Partition, offset, -1)
		}
		if err := s.admin.CommitAllOffsets(ctx, s.group, all); err != nil {
			errs = append(errs, fmt.Errorf("commit to Kafka: %w", err))
		}
	}
	if s.where != InKafka {
		if err := s.zk.Retry(ctx, func() error { return s.storeInZooKeeper(ctx, offsets) }); err != nil {
			errs = append(errs, fmt.Errorf("commit to ZooKeeper: %w", err))
		}
	}
	return errors.Join(errs...)
}

// storeInZooKeeper writes all offsets at once, and the nodes that were not there
// in a second turn: the first commit of a group is one for each of its
// partitions.
func (s *offsetStore) storeInZooKeeper(ctx context.Context, offsets map[wire.TopicPartition]int64) error {
	set := func(path string, data []byte) zookeeper.Op { return zookeeper.SetOp(path, data, zookeeper.AnyVersion) }
	missing, err := s.write(ctx, offsets, set, jute.ErrNoNode)
	if err != nil || len(missing) == 0 {
		return err
	}
	var folders []string
	for tp := range missing {
		folders = append(folders, znode.ConsumerOffsetsPath(s.group, tp.Topic))
	}
	slices.Sort(folders)
	if err := s.zk.EnsurePaths(ctx, slices.Compact(folders)...); err != nil {
		return err
	}
	create := func(path string, data []byte) zookeeper.Op {
		return zookeeper.CreateOp(path, data, zookeeper.Persistent)
	}
	made, err := s.write(ctx, missing, create, jute.ErrNodeExists) // by an earlier try whose answer was lost
	if err == nil {
		_, err = s.write(ctx, made, set, nil)
	}
	return err
}

// write performs an operation for each offset. It returns the offsets whose
// operation failed with but.
func (s *offsetStore) write(ctx context.Context, offsets map[wire.TopicPartition]int64, op func(path string, data []byte) zookeeper.Op, but error) (rest map[wire.TopicPartition]int64, err error) {
	var ops []zookeeper.Op
	var parts []wire.TopicPartition
	for tp, offset := range offsets {
		ops = append(ops, op(znode.ConsumerOffsetPath(s.group, tp.Topic, tp.Partition), znode.EncodeConsumerOffset(offset)))
		parts = append(parts, tp)
	}
	rest = map[wire.TopicPartition]int64{}
	for i, call := range s.zk.GoAll(ops) {
		if _, err := call.Wait(ctx); but != nil && errors.Is(err, but) {
			rest[parts[i]] = offsets[parts[i]]
		} else if err != nil {
			return nil, err
		}
	}
	return rest, nil
}
