package replica

import (
	"context"
	"errors"
	"fmt"

	"barnabas/internal/storage"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// truncate asks the leader where the latest epoch of each partition in todo
// ended, and truncates to that: what Fetch itself tells from inter-broker
// protocol version 2.7-IV1 on.
func (f *fetcher) truncate(ctx context.Context) {
	for len(f.todo) > 0 && ctx.Err() == nil {
		ends, err := f.epochEnds(ctx, f.todo)
		if err != nil {
			f.failed(err)
			for _, c := range f.takeTodo() {
				f.rest(c)
			}
			return
		}
		for i, c := range f.takeTodo() {
			switch e := ends[i]; e.code {
			case wire.None:
				if !f.diverged(c, e.end) {
					f.todo = append(f.todo, c)
				}
			case wire.FencedLeaderEpoch:
				f.park(c)
			default:
				f.rest(c)
			}
		}
	}
}

func (f *fetcher) takeTodo() []*followed {
	list := f.todo
	f.todo = nil
	return list
}

type epochEnd struct {
	code wire.Code
	end  storage.EpochEnd
}

func (f *fetcher) epochEnds(ctx context.Context, list []*followed) ([]epochEnd, error) {
	request := kmsg.NewPtrOffsetForLeaderEpochRequest()
	request.SetVersion(f.m.cluster.IBP.OffsetsForLeaderEpoch())
	request.ReplicaID = f.m.o.BrokerID
	topics := map[string]int{}
	for _, c := range list {
		i, ok := topics[c.p.Topic]
		if !ok {
			i = len(request.Topics)
			topics[c.p.Topic] = i
			t := kmsg.NewOffsetForLeaderEpochRequestTopic()
			t.Topic = c.p.Topic
			request.Topics = append(request.Topics, t)
		}
		p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		p.Partition, p.CurrentLeaderEpoch, p.LeaderEpoch = c.p.Index, c.epoch, c.at.epoch
		request.Topics[i].Partitions = append(request.Topics[i].Partitions, p)
	}
	answer, err := f.conn.Request(ctx, request)
	if err != nil {
		return nil, err
	}
	found := map[wire.TopicPartition]epochEnd{}
	for _, t := range answer.(*kmsg.OffsetForLeaderEpochResponse).Topics {
		for _, p := range t.Partitions {
			found[wire.TopicPartition{Topic: t.Topic, Partition: p.Partition}] = epochEnd{wire.Code(p.ErrorCode), storage.EpochEnd{Epoch: p.LeaderEpoch, EndOffset: p.EndOffset}}
		}
	}
	ends := make([]epochEnd, len(list))
	for i, c := range list {
		e, ok := found[c.p.TopicPartition]
		if !ok {
			e.code = wire.UnknownServerError
		}
		ends[i] = e
	}
	return ends, nil
}

// findRanges finds a new place for partitions whose end the leader does not
// have (AbstractFetcherThread.fetchOffsetAndTruncate).
func (f *fetcher) findRanges(ctx context.Context) {
	list := f.beyond
	f.beyond = nil
	for _, c := range list {
		if err := f.findRange(ctx, c); err != nil {
			f.failedRange(c, err)
		}
	}
}

func (f *fetcher) failedRange(c *followed, err error) {
	switch {
	case errors.Is(err, errNotFollowing), errors.Is(err, storage.ErrOffline), errors.Is(err, storage.ErrClosed), errors.Is(err, wire.FencedLeaderEpoch):
		f.park(c)
	default:
		f.m.o.Logger.Warn("cannot find out what the leader has", "partition", c.p.TopicPartition.String(), "leader", f.key.leader, "err", err)
		f.rest(c)
	}
}

const (
	latestOffset   = -1
	earliestOffset = -2
)

func (f *fetcher) findRange(ctx context.Context, c *followed) error {
	end, err := f.listOffset(ctx, c, latestOffset)
	if err != nil {
		return err
	}
	if end < c.at.end {
		f.m.o.Logger.Warn("the leader's log ends before this one", "partition", c.p.TopicPartition.String(),
			"leader", f.key.leader, "leader's end", end, "end", c.at.end)
		f.cut(c, end)
		return nil
	}
	start, err := f.listOffset(ctx, c, earliestOffset)
	if err != nil {
		return err
	}
	if start > c.at.end {
		if c.at, err = c.p.restart(c.epoch, start); err != nil {
			return err
		}
	}
	f.ready(c)
	return nil
}

func (f *fetcher) listOffset(ctx context.Context, c *followed, timestamp int64) (int64, error) {
	request := kmsg.NewPtrListOffsetsRequest()
	request.SetVersion(f.m.cluster.IBP.ListOffsets())
	request.ReplicaID = f.m.o.BrokerID
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = c.p.Topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.CurrentLeaderEpoch, p.Timestamp = c.p.Index, c.epoch, timestamp
	t.Partitions = append(t.Partitions, p)
	request.Topics = append(request.Topics, t)
	answer, err := f.conn.Request(ctx, request)
	if err != nil {
		return 0, err
	}
	topics := answer.(*kmsg.ListOffsetsResponse).Topics
	if len(topics) != 1 || len(topics[0].Partitions) != 1 {
		return 0, fmt.Errorf("ListOffsets: %d topics in the answer for one", len(topics))
	}
	if code := wire.Code(topics[0].Partitions[0].ErrorCode); code != wire.None {
		return 0, code
	}
	return topics[0].Partitions[0].Offset, nil
}
