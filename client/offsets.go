package client

import (
	"context"
	"errors"
	"fmt"

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

func (s *offsetStore) storeInZooKeeper(ctx context.Context, offsets map[wire.TopicPartition]int64) error {
	var ops []zookeeper.Op
	var parts []wire.TopicPartition
	for tp, offset := range offsets {
		ops = append(ops, zookeeper.SetOp(znode.ConsumerOffsetPath(s.group, tp.Topic, tp.Partition), znode.EncodeConsumerOffset(offset), zookeeper.AnyVersion))
		parts = append(parts, tp)
	}
	for i, call := range s.zk.GoAll(ops) {
		_, err := call.Wait(ctx)
		if errors.Is(err, jute.ErrNoNode) {
			path, data := znode.ConsumerOffsetPath(s.group, parts[i].Topic, parts[i].Partition), znode.EncodeConsumerOffset(offsets[parts[i]])
			_, _, err = s.zk.CreateRecursive(ctx, path, data, zookeeper.Persistent)
			if errors.Is(err, jute.ErrNodeExists) {
				_, err = s.zk.Set(ctx, path, data, zookeeper.AnyVersion)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
