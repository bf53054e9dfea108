package api

import (
	"context"
	"testing"

	"barnabas/internal/controller"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// inactive is the controller of a broker that is not the active one.
type inactive struct{}

func (inactive) IsActive() bool { return false }
func (inactive) CreateTopics(context.Context, []controller.NewTopic) []error {
	panic("not the controller")
}
func (inactive) CreatePartitions(context.Context, string, int, [][]int32) error {
	panic("not the controller")
}
func (inactive) DeleteTopics(context.Context, []string) []error { panic("not the controller") }

func TestOnlyTheControllerChangesTopics(t *testing.T) {
	b := handlersBroker(t, nil)
	b.Controller = inactive{}
	name := "t"
	created := kmsg.NewPtrCreateTopicsRequest()
	created.Topics = []kmsg.CreateTopicsRequestTopic{{Topic: name}}
	if r := call[*kmsg.CreateTopicsResponse](t, b, 7, created); r.Topics[0].ErrorCode != int16(wire.NotController) || r.Topics[0].NumPartitions != -1 {
		t.Errorf("%+v", r)
	}
	grown := kmsg.NewPtrCreatePartitionsRequest()
	grown.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: name, Count: 2}}
	if r := call[*kmsg.CreatePartitionsResponse](t, b, 3, grown); r.Topics[0].ErrorCode != int16(wire.NotController) {
		t.Errorf("%+v", r)
	}
	deleted := kmsg.NewPtrDeleteTopicsRequest()
	deleted.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: &name}}
	if r := call[*kmsg.DeleteTopicsResponse](t, b, 6, deleted); r.Topics[0].ErrorCode != int16(wire.NotController) || *r.Topics[0].Topic != name {
		t.Errorf("%+v", r)
	}
	scram := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
	scram.Deletions = []kmsg.AlterUserSCRAMCredentialsRequestDeletion{{Name: "u", Mechanism: 1}}
	if r := call[*kmsg.AlterUserSCRAMCredentialsResponse](t, b, 0, scram); r.Results[0].ErrorCode != int16(wire.NotController) {
		t.Errorf("%+v", r)
	}
}

func TestAPanicInTheBackgroundClosesOneConnection(t *testing.T) {
	b := handlersBroker(t, nil)
	done := make(chan *Request, 1)
	q := &Request{Header: wire.Header{Key: 3}, Conn: &Conn{}, Finish: func(q *Request) { done <- q }}
	b.background(q, func(context.Context) { panic("oops") })
	if q := <-done; q.Outcome != CloseConn || q.Reason == nil {
		t.Errorf("outcome %d", q.Outcome)
	}
}

func TestBackgroundWorkOfAConnectionKeepsItsOrder(t *testing.T) {
	b, conn := handlersBroker(t, nil), &Conn{}
	done := make(chan *Request, 3)
	release := make(chan struct{})
	for i := range int32(3) {
		q := &Request{Header: wire.Header{Key: 3, CorrelationID: i}, Conn: conn, Finish: func(q *Request) { done <- q }}
		b.background(q, func(context.Context) {
			if i == 0 {
				<-release
			}
			q.Done()
		})
	}
	select {
	case q := <-done:
		t.Fatalf("request %d overtook the first", q.CorrelationID)
	default:
	}
	close(release)
	for i := range int32(3) {
		if q := <-done; q.CorrelationID != i {
			t.Fatalf("request %d in place %d", q.CorrelationID, i)
		}
	}
}
