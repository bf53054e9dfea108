package raw

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// OnBoth asks the same of Barnabas and of Apache Kafka 3.9.1. Properties are
// name=value.
func OnBoth(t *testing.T, f func(t *testing.T, addr string), properties ...string) {
	t.Run("barnabas", func(t *testing.T) { f(t, real.Barnabas(t, 1, properties...).Addr) })
	t.Run("kafka-3.9.1", func(t *testing.T) {
		f(t, real.Kafka(t, "3.9.1", 1, real.ZooKeeper(t), append([]string{"inter.broker.protocol.version=3.9"}, properties...)...).Addr)
	})
}

var topics atomic.Int32

// NewTopic makes a topic with a name of its own and one replica.
func NewTopic(t testing.TB, addr string, partitions int32) string {
	t.Helper()
	name := fmt.Sprintf("topic-%d", topics.Add(1))
	CreateTopic(t, addr, name, partitions)
	return name
}

// CreateTopic makes a topic with one replica.
func CreateTopic(t testing.TB, addr, name string, partitions int32) {
	t.Helper()
	r := kmsg.NewPtrCreateTopicsRequest()
	r.Version, r.TimeoutMillis = 5, 30000
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, 1
	r.Topics = append(r.Topics, topic)
	if code := Do[*kmsg.CreateTopicsResponse](Dial(t, addr), r).Topics[0].ErrorCode; code != 0 {
		t.Fatalf("create %s: error %d", name, code)
	}
}

// Coordinated waits until a group has a coordinator that serves.
func Coordinated(t testing.TB, addr, group string) {
	t.Helper()
	coordinated(t, addr, group, 0, func(c *Conn) bool {
		h := kmsg.NewPtrHeartbeatRequest()
		h.Group, h.MemberID = group, "nobody"
		return Do[*kmsg.HeartbeatResponse](c, h).ErrorCode == 25
	})
}

// TransactionsCoordinated is Coordinated for a transactional id.
func TransactionsCoordinated(t testing.TB, addr, id string) {
	t.Helper()
	coordinated(t, addr, id, 1, func(c *Conn) bool {
		e := kmsg.NewPtrEndTxnRequest()
		e.Version, e.TransactionalID, e.ProducerID = 2, id, 1<<40
		return Do[*kmsg.EndTxnResponse](c, e).ErrorCode == 49
	})
}

func coordinated(t testing.TB, addr, key string, kind int8, serves func(*Conn) bool) {
	t.Helper()
	c := Dial(t, addr)
	real.Until(t, time.Minute, "a coordinator of "+key, func() bool {
		r := kmsg.NewPtrFindCoordinatorRequest()
		r.Version, r.CoordinatorKey, r.CoordinatorType = 2, key, kind
		return Do[*kmsg.FindCoordinatorResponse](c, r).ErrorCode == 0 && serves(c)
	})
}
