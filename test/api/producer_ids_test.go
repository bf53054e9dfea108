package api

import (
	"testing"

	"barnabas/internal/znode"
	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestProducerIDsAreHandedOutOnceAndInOrder(t *testing.T) {
	b := real.Barnabas(t, 1)
	take := func(conn *raw.Conn) int64 {
		r := kmsg.NewPtrInitProducerIDRequest()
		r.SetVersion(4)
		r.TransactionTimeoutMillis = 1000
		answer := raw.Do[*kmsg.InitProducerIDResponse](conn, r)
		if answer.ErrorCode != 0 || answer.ProducerEpoch != 0 {
			t.Fatalf("%+v", answer)
		}
		return answer.ProducerID
	}
	conn := raw.Dial(t, b.Addr)
	for want := range int64(2500) {
		if got := take(conn); got != want {
			t.Fatalf("got %d after %d", got, want-1)
		}
	}
	block := func() string { return tree(t, b.Keeper, znode.ProducerIDBlock)[znode.ProducerIDBlock] }
	if got := block(); got != `{"block_end":"2999","block_start":"2000","broker":1,"version":1}` {
		t.Error(got)
	}
	b.Stop()
	b.Restart(t)
	if got := take(raw.Dial(t, b.Addr)); got != 3000 {
		t.Errorf("after a restart the first id is %d: 2500 to 2999 may be in use", got)
	}
}
