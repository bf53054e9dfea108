package controller

import (
	"context"
	"sync"
	"time"

	"barnabas/internal/controller/core"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// retryAfter is how long a sender waits before it repeats a request that got no
// answer (RequestSendThread of Kafka's ControllerChannelManager).
const retryAfter = 100 * time.Millisecond

// sender sends the requests for one broker in order, one in flight, until the
// broker's registration goes or the term ends.
type sender struct {
	t      *term
	broker int32
	epoch  int64
	target Target
	ctx    context.Context
	cancel context.CancelFunc
	wake   chan struct{} // room for one: the queue is not empty

	mu struct {
		sync.Mutex
		queue   []kmsg.Request
		busy    bool            // requests that left the queue are not all answered
		waiting []chan struct{} // closed when all is answered, or the sender ends
	}
}

// delivered returns a channel that is closed when the broker has answered all
// that there is for it, or the sender has ended.
func (s *sender) delivered() <-chan struct{} {
	ch := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.queue) == 0 && !s.mu.busy || s.ctx.Err() != nil {
		close(ch)
	} else {
		s.mu.waiting = append(s.mu.waiting, ch)
	}
	return ch
}

// rest notes that what was taken from the queue is answered, or that the sender
// ends.
func (s *sender) rest(ends bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.busy = false; len(s.mu.queue) == 0 || ends {
		for _, ch := range s.mu.waiting {
			close(ch)
		}
		s.mu.waiting = nil
	}
}

func (t *term) connect(e core.Connect) {
	endpoints := make([]Endpoint, len(e.Endpoints))
	for i, n := range e.Endpoints {
		endpoints[i] = Endpoint{Listener: n.Listener, SecurityProtocol: n.Protocol, Host: n.Host, Port: n.Port}
	}
	s := &sender{t: t, broker: e.Broker, epoch: e.Epoch, target: t.c.opts.Targets(e.Broker, endpoints), wake: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancel(t.ctx)
	t.senders[e.Broker] = s
	t.work.Add(1)
	go func() { defer t.work.Done(); s.run() }()
	if t.c.opts.Identify != nil && e.Broker != t.c.opts.BrokerID {
		t.work.Add(1)
		go func() { defer t.work.Done(); s.identify(endpoints) }()
	}
}

// identify asks a broker whether it is Barnabas, until it answers.
func (s *sender) identify(endpoints []Endpoint) {
	for {
		ours, err := s.t.c.opts.Identify(s.ctx, endpoints)
		if err == nil {
			if ours {
				s.t.c.push(fromTerm{s.t, core.Identified{Broker: s.broker, Epoch: s.epoch}})
			}
			return
		}
		if !s.pause() {
			return
		}
	}
}

// pause waits before another try; false when the sender has to end.
func (s *sender) pause() bool {
	timer := time.NewTimer(retryAfter)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

func (t *term) disconnect(broker int32) {
	if s := t.senders[broker]; s != nil {
		s.cancel()
		delete(t.senders, broker)
	}
}

func (t *term) send(e core.Send) {
	s := t.senders[e.Broker]
	if s == nil {
		return
	}
	s.mu.Lock()
	s.mu.queue = append(s.mu.queue, e.Request)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *sender) run() {
	defer s.rest(true)
	defer s.cancel()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.wake:
		}
		s.mu.Lock()
		queue := s.mu.queue
		s.mu.queue, s.mu.busy = nil, true
		s.mu.Unlock()
		for _, r := range queue {
			resp := s.deliver(r)
			if resp == nil {
				return
			}
			s.t.c.push(fromTerm{s.t, core.Answered{Broker: s.broker, Epoch: s.epoch, Request: r, Response: resp}})
		}
		s.rest(false)
	}
}

// deliver repeats a request until it is answered; nil when the sender has to
// end first.
func (s *sender) deliver(r kmsg.Request) kmsg.Response {
	for tries := 0; ; tries++ {
		resp, err := s.call(r)
		if err == nil {
			if tries > 0 {
				s.t.c.opts.Logger.Info("the broker answers the controller again", "broker", s.broker, "tries", tries)
			}
			return resp
		}
		if s.ctx.Err() != nil {
			return nil
		}
		if tries == 0 {
			s.t.c.opts.Logger.Warn("the broker does not answer the controller; trying again until it does or its registration goes",
				"broker", s.broker, "err", err)
		}
		if !s.pause() {
			return nil
		}
	}
}

func (s *sender) call(r kmsg.Request) (kmsg.Response, error) {
	switch r := r.(type) {
	case *kmsg.LeaderAndISRRequest:
		return answerOf(s.target.LeaderAndISR(s.ctx, r))
	case *kmsg.UpdateMetadataRequest:
		return answerOf(s.target.UpdateMetadata(s.ctx, r))
	default:
		return answerOf(s.target.StopReplica(s.ctx, r.(*kmsg.StopReplicaRequest)))
	}
}

// answerOf keeps a nil pointer from becoming an answer.
func answerOf[T any, P interface {
	*T
	kmsg.Response
}](resp P, err error) (kmsg.Response, error) {
	if err != nil {
		return nil, err
	}
	if resp == nil {
		return nil, errNoAnswer
	}
	return resp, nil
}
