package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"barnabas/internal/controller/core"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// recorder is a Target that fails some calls and notes when each came.
type recorder struct {
	mu    sync.Mutex
	began time.Time
	calls []string
	fails int  // how many of the next calls fail
	hang  bool // calls wait for their context
}

func (r *recorder) call(ctx context.Context, what string) error {
	r.mu.Lock()
	r.calls = append(r.calls, fmt.Sprintf("%s@%d", what, time.Since(r.began).Milliseconds()))
	fail, hang := r.fails > 0, r.hang
	r.fails--
	r.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	if fail {
		return errors.New("no")
	}
	return nil
}

func (r *recorder) LeaderAndISR(ctx context.Context, q *kmsg.LeaderAndISRRequest) (*kmsg.LeaderAndISRResponse, error) {
	return &kmsg.LeaderAndISRResponse{}, r.call(ctx, fmt.Sprintf("lead%d", q.ControllerEpoch))
}

func (r *recorder) UpdateMetadata(ctx context.Context, q *kmsg.UpdateMetadataRequest) (*kmsg.UpdateMetadataResponse, error) {
	return &kmsg.UpdateMetadataResponse{}, r.call(ctx, fmt.Sprintf("update%d", q.ControllerEpoch))
}

func (r *recorder) StopReplica(ctx context.Context, q *kmsg.StopReplicaRequest) (*kmsg.StopReplicaResponse, error) {
	return &kmsg.StopReplicaResponse{}, r.call(ctx, fmt.Sprintf("stop%d", q.ControllerEpoch))
}

func senderTerm(r *recorder) *term {
	r.began = time.Now()
	c := New(Options{Targets: func(int32, []Endpoint) Target { return r }})
	return newTerm(c, 0)
}

func TestRequestsKeepTheirOrderAndAreRepeatedEach100ms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{fails: 2}
		term := senderTerm(r)
		term.connect(core.Connect{Broker: 1})
		term.send(core.Send{Broker: 1, Request: &kmsg.LeaderAndISRRequest{ControllerEpoch: 1}})
		term.send(core.Send{Broker: 1, Request: &kmsg.UpdateMetadataRequest{ControllerEpoch: 2}})
		term.send(core.Send{Broker: 1, Request: &kmsg.StopReplicaRequest{ControllerEpoch: 3}})
		term.send(core.Send{Broker: 2, Request: &kmsg.StopReplicaRequest{ControllerEpoch: 4}}) // nobody is there
		wait(time.Second)
		term.end()
		if want := []string{"lead1@0", "lead1@100", "lead1@200", "update2@200", "stop3@200"}; !slices.Equal(r.calls, want) {
			t.Errorf("%v, want %v", r.calls, want)
		}
	})
}

func TestABrokerThatGoesTakesItsRequestsAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{hang: true}
		term := senderTerm(r)
		term.connect(core.Connect{Broker: 1})
		for i := range int32(3) {
			term.send(core.Send{Broker: 1, Request: &kmsg.UpdateMetadataRequest{ControllerEpoch: i}})
		}
		synctest.Wait()
		term.disconnect(1)
		r.mu.Lock()
		r.hang = false
		r.mu.Unlock()
		term.connect(core.Connect{Broker: 1, Epoch: 2})
		term.send(core.Send{Broker: 1, Request: &kmsg.UpdateMetadataRequest{ControllerEpoch: 9}})
		synctest.Wait()
		term.end()
		if want := []string{"update0@0", "update9@0"}; !slices.Equal(r.calls, want) {
			t.Errorf("%v, want %v", r.calls, want)
		}
	})
}

// wait lets the fake clock go on.
func wait(d time.Duration) { <-time.After(d) }

func TestWhoWaitsForDeliveryWaitsForTheAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{fails: 2}
		tm := senderTerm(r)
		tm.connect(core.Connect{Broker: 2})
		s := tm.senders[2]
		<-s.delivered() // there is nothing to deliver
		began := time.Now()
		tm.send(core.Send{Broker: 2, Request: &kmsg.LeaderAndISRRequest{}})
		<-s.delivered()
		if waited := time.Since(began); waited != 2*retryAfter {
			t.Errorf("it waited %v", waited)
		}
		r.mu.Lock()
		r.hang = true
		r.mu.Unlock()
		tm.send(core.Send{Broker: 2, Request: &kmsg.LeaderAndISRRequest{}})
		ch := s.delivered()
		tm.end()
		<-ch // nobody waits for a sender that has ended
	})
}
