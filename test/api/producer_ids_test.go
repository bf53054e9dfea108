package api

import (
	"fmt"
	"strings"
	"testing"

	"barnabas/internal/znode"
	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func takeID(t *testing.T, conn *raw.Conn) int64 {
	r := kmsg.NewPtrInitProducerIDRequest()
	r.SetVersion(4)
	r.TransactionTimeoutMillis = 1000
	answer := raw.Do[*kmsg.InitProducerIDResponse](conn, r)
	if answer.ErrorCode != 0 || answer.ProducerEpoch != 0 {
		t.Fatalf("%+v", answer)
	}
	return answer.ProducerID
}

// From inter-broker protocol 3.0 on the controller hands out the blocks, below
// it each broker takes its own; Kafka, which is the controller here, logs it.
func TestTheControllerHandsOutBlocksOfProducerIDs(t *testing.T) {
	for _, ibp := range []string{"3.9", "2.8"} {
		zk, protocol := real.ZooKeeper(t), "inter.broker.protocol.version="+ibp
		kafka := real.Kafka(t, "3.9.1", 1, zk, protocol)
		ours := real.Barnabas(t, 2, "zookeeper.connect="+zk, protocol)
		id := takeID(t, raw.Dial(t, ours.Addr))
		if block := tree(t, zk, znode.ProducerIDBlock)[znode.ProducerIDBlock]; !strings.Contains(block, `"broker":2`) {
			t.Errorf("IBP %s: %s", ibp, block)
		}
		mine := fmt.Sprintf("Acquired new producerId block ProducerIdsBlock(assignedBrokerId=2, firstProducerId=%d", id)
		if asked := strings.Contains(kafka.Output(), mine); asked != (ibp == "3.9") {
			t.Errorf("IBP %s: the controller was asked: %t", ibp, asked)
		}
		kafka.Kill()
		ours.Kill()
	}
}

func TestProducerIDsAreHandedOutOnceAndInOrder(t *testing.T) {
	b := real.Barnabas(t, 1)
	take := func(conn *raw.Conn) int64 { return takeID(t, conn) }
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
