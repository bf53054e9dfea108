package client

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// topicWait is how long the first records of a topic wait for it to be made and
// to get its leaders. (Java's producers wait max.block.ms.)
const topicWait = 10 * time.Second

// newTopics holds back the first records of each topic until the topic is
// there, which a broker with auto.create.topics.enable makes when it is asked.
// After that, a record costs one look into a map.
//
// Lock: mu, over what is held back; held while records are handed on, so that
// they stay in order.
type newTopics struct {
	kafka *kgo.Client
	// ready holds the topics that are there, and whether a record was
	// acknowledged: then the client below knows the topic too. It is replaced,
	// never changed.
	ready atomic.Pointer[map[string]bool]

	mu struct {
		sync.Mutex
		waiting map[string][]func() // what hands each record on
		idle    chan struct{}       // closed while nothing waits
	}
}

func newNewTopics(kafka *kgo.Client) *newTopics {
	n := &newTopics{kafka: kafka}
	n.ready.Store(&map[string]bool{})
	n.mu.waiting = map[string][]func(){}
	n.mu.idle = make(chan struct{})
	close(n.mu.idle)
	return n
}

func (n *newTopics) isReady(topic string) (ready, proven bool) {
	proven, ready = (*n.ready.Load())[topic]
	return ready, proven
}

// prove notes that a record was acknowledged.
func (n *newTopics) prove(topic string) {
	if _, proven := n.isReady(topic); !proven {
		n.mu.Lock()
		n.addLocked(topic, true)
		n.mu.Unlock()
	}
}

// whenReady calls hand at once if the topic is there, and otherwise, from
// another goroutine, as soon as it is, or has been waited for long enough.
func (n *newTopics) whenReady(ctx context.Context, topic string, hand func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ready, _ := n.isReady(topic); ready {
		hand()
		return
	}
	list, begun := n.mu.waiting[topic]
	if len(n.mu.waiting) == 0 {
		n.mu.idle = make(chan struct{})
	}
	n.mu.waiting[topic] = append(list, hand)
	if !begun {
		go n.await(ctx, topic)
	}
}

func (n *newTopics) await(ctx context.Context, topic string) {
	there := n.exists(ctx, topic)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, hand := range n.mu.waiting[topic] {
		hand()
	}
	delete(n.mu.waiting, topic)
	if there {
		n.addLocked(topic, false)
	}
	if len(n.mu.waiting) == 0 {
		close(n.mu.idle)
	}
}

func (n *newTopics) addLocked(topic string, proven bool) {
	ready := map[string]bool{topic: proven}
	for t, p := range *n.ready.Load() {
		ready[t] = ready[t] || p
	}
	n.ready.Store(&ready)
}

// wait is whenReady for a caller that waits.
func (n *newTopics) wait(ctx context.Context, topic string) {
	if ready, _ := n.isReady(topic); ready || !n.exists(ctx, topic) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addLocked(topic, false)
}

// drained returns when nothing is held back, or with ctx's error.
func (n *newTopics) drained(ctx context.Context) error {
	n.mu.Lock()
	idle := n.mu.idle
	n.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leaderWait is how long a topic that is there may lack leaders before its
// records are handed on: sending has its own retries.
const leaderWait = time.Second

// exists asks for a topic until it and its leaders are there. If no broker
// answers it gives up at once: sending has its own retries.
func (n *newTopics) exists(ctx context.Context, topic string) bool {
	ctx, cancel := context.WithTimeout(ctx, topicWait)
	defer cancel()
	var seen time.Time
	for {
		req := kmsg.NewPtrMetadataRequest()
		req.AllowAutoTopicCreation = true
		one := kmsg.NewMetadataRequestTopic()
		one.Topic = kmsg.StringPtr(topic)
		req.Topics = append(req.Topics, one)
		resp, err := req.RequestWith(ctx, n.kafka)
		if err != nil || len(resp.Topics) != 1 {
			return false
		}
		code := resp.Topics[0].ErrorCode
		if code == 0 && seen.IsZero() {
			seen = time.Now()
		}
		if !seen.IsZero() && time.Since(seen) > leaderWait {
			return true
		}
		for _, p := range resp.Topics[0].Partitions {
			code = max(code, p.ErrorCode)
		}
		switch kerr.ErrorForCode(code) {
		case nil:
			return true
		case kerr.UnknownTopicOrPartition, kerr.LeaderNotAvailable:
		default:
			return false
		}
		timer := time.NewTimer(50 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}
