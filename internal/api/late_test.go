package api

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"barnabas/internal/coordinator"
	groups "barnabas/internal/coordinator/group"
	"barnabas/internal/coordinator/memlog"
	"barnabas/internal/coordinator/txn"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// coordinators is a broker that coordinates all groups and transactions, in two
// logs that can be kept from being replicated.
type coordinators struct {
	*Broker
	offsets, transactions memlog.Partition
}

func newCoordinators(t *testing.T) *coordinators {
	c := &coordinators{Broker: handlersBroker(t, map[string]string{
		"group.coordinator.rebalance.protocols": "classic,consumer", "transaction.partition.verification.enable": "false",
	})}
	topic := func(name string) kmsg.UpdateMetadataRequestTopicState {
		return kmsg.UpdateMetadataRequestTopicState{Topic: name, TopicID: wire.NewUUID(), PartitionStates: []kmsg.UpdateMetadataRequestTopicPartition{
			{Leader: 1, ISR: []int32{1}, Replicas: []int32{1}}}}
	}
	c.Metadata.Update(&kmsg.UpdateMetadataRequest{Version: 8, ControllerID: 1,
		TopicStates: []kmsg.UpdateMetadataRequestTopicState{topic("t"), topic(OffsetsTopic), topic(TransactionsTopic)}})
	c.AllOurs = func() bool { return true }
	c.Groups = coordinator.New(coordinator.Options[*groups.Machine]{
		Topic: OffsetsTopic, Logger: slog.New(slog.DiscardHandler),
		New: func(int32, int32) *groups.Machine {
			return groups.New(groups.Config{
				MaxSession: time.Hour, MaxSize: 1000, ConsumerMaxSize: 1000, MaxMetadata: 100, MaxRecord: 10000, Retention: time.Hour, CheckInterval: time.Hour,
				ConsumerSession: time.Hour, NewID: func() string { return "new" }, Topics: func(func(string) bool) {}, TopicsCame: func() uint64 { return 0 },
				Topic: func(string) (wire.UUID, int32) { return wire.UUID{}, 0 },
			})
		},
	})
	t.Cleanup(c.Groups.Close)
	c.Transactions = coordinator.New(coordinator.Options[*txn.Machine]{
		Topic: TransactionsTopic, Logger: slog.New(slog.DiscardHandler), Perform: func(int32, any) {},
		New: func(_, epoch int32) *txn.Machine {
			return txn.New(txn.Config{IDExpiration: time.Hour, IDCheck: time.Hour}, epoch)
		},
	})
	t.Cleanup(c.Transactions.Close)
	c.Groups.Elected(0, c.offsets.Lead())
	c.Transactions.Elected(0, c.transactions.Lead())
	synctest.Wait()
	return c
}

func (c *coordinators) staticJoin(t *testing.T) *kmsg.JoinGroupResponse {
	r, instance := kmsg.NewPtrJoinGroupRequest(), "one"
	r.Group, r.InstanceID, r.ProtocolType = "static", &instance, "consumer"
	r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = 600000, 600000
	r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte{0, 0}}}
	return call[*kmsg.JoinGroupResponse](t, c.Broker, 9, r)
}

func (c *coordinators) sync(t *testing.T, joined *kmsg.JoinGroupResponse) int16 {
	r, instance := kmsg.NewPtrSyncGroupRequest(), "one"
	r.Group, r.MemberID, r.InstanceID, r.Generation, r.ProtocolType, r.Protocol = "static", joined.MemberID, &instance, joined.Generation, joined.ProtocolType, joined.Protocol
	return call[*kmsg.SyncGroupResponse](t, c.Broker, 5, r).ErrorCode
}

func (c *coordinators) commit(t *testing.T, group string) int16 {
	r := kmsg.NewPtrOffsetCommitRequest()
	r.Group, r.Generation = group, -1
	r.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{}}}}
	return call[*kmsg.OffsetCommitResponse](t, c.Broker, 8, r).Topics[0].Partitions[0].ErrorCode
}

func (c *coordinators) initProducer(t *testing.T) (producer int64, code int16) {
	r, id := kmsg.NewPtrInitProducerIDRequest(), "id"
	r.TransactionalID, r.TransactionTimeoutMillis, r.ProducerID, r.ProducerEpoch = &id, 60000, -1, -1
	answer := call[*kmsg.InitProducerIDResponse](t, c.Broker, 4, r)
	return answer.ProducerID, answer.ErrorCode
}

// What is not replicated in time is told as Kafka's coordinators tell it
// (GroupMetadataManager.storeGroup and maybeConvertOffsetCommitError,
// TransactionStateManager.appendTransactionToLog); where they do not wait, so
// that the client tries again.
func TestWhatIsNotReplicatedInTimeIsToldAsByKafka(t *testing.T) {
	const late, unavailable, rebalance = int16(wire.RequestTimedOut), int16(wire.CoordinatorNotAvailable), int16(wire.RebalanceInProgress)
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinators(t)
		c.producerIDs.mu.Lock()
		c.producerIDs.mu.next, c.producerIDs.mu.end = 1, 1000
		c.producerIDs.mu.Unlock()
		producer, code := c.initProducer(t)
		joined := c.staticJoin(t)
		if code != 0 || joined.ErrorCode != 0 || c.sync(t, joined) != 0 || c.commit(t, "empty") != 0 {
			t.Fatal("before: ", code, joined.ErrorCode)
		}
		c.offsets.Hold(true)
		c.transactions.Hold(true)
		want := func(what string, code, want int16) {
			t.Helper()
			if code != want {
				t.Errorf("%s: %v, want %v", what, wire.Code(code), wire.Code(want))
			}
		}
		want("OffsetCommit", c.commit(t, "another"), late)
		commit := kmsg.NewPtrTxnOffsetCommitRequest()
		commit.TransactionalID, commit.Group, commit.ProducerID, commit.Generation = "id", "another", producer, -1
		commit.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{{}}}}
		want("TxnOffsetCommit", call[*kmsg.TxnOffsetCommitResponse](t, c.Broker, 3, commit).Topics[0].Partitions[0].ErrorCode, late)
		want("SyncGroup", c.sync(t, joined), rebalance)
		want("JoinGroup", c.staticJoin(t).ErrorCode, rebalance)
		leave := kmsg.NewPtrLeaveGroupRequest()
		leave.Group, leave.Members = "static", []kmsg.LeaveGroupRequestMember{{MemberID: "nobody"}}
		want("LeaveGroup", call[*kmsg.LeaveGroupResponse](t, c.Broker, 4, leave).ErrorCode, unavailable)
		deletion := kmsg.NewPtrOffsetDeleteRequest()
		deletion.Group, deletion.Topics = "empty", []kmsg.OffsetDeleteRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 1}}}}
		want("OffsetDelete", call[*kmsg.OffsetDeleteResponse](t, c.Broker, 0, deletion).ErrorCode, unavailable)
		fetch := kmsg.NewPtrOffsetFetchRequest()
		fetch.Group = "empty"
		want("OffsetFetch", call[*kmsg.OffsetFetchResponse](t, c.Broker, 7, fetch).ErrorCode, unavailable)
		describe := kmsg.NewPtrDescribeGroupsRequest()
		describe.Groups = []string{"empty"}
		want("DescribeGroups", call[*kmsg.DescribeGroupsResponse](t, c.Broker, 5, describe).Groups[0].ErrorCode, unavailable)
		list := kmsg.NewPtrListGroupsRequest()
		want("ListGroups", call[*kmsg.ListGroupsResponse](t, c.Broker, 4, list).ErrorCode, unavailable)
		consumers := kmsg.NewPtrConsumerGroupDescribeRequest()
		consumers.Groups = []string{"empty"}
		want("ConsumerGroupDescribe", call[*kmsg.ConsumerGroupDescribeResponse](t, c.Broker, 0, consumers).Groups[0].ErrorCode, unavailable)
		beat := kmsg.NewPtrConsumerGroupHeartbeatRequest()
		beat.Group, beat.MemberID, beat.RebalanceTimeoutMillis = "consumers", "m", 60000
		beat.SubscribedTopicNames, beat.Topics = []string{"t"}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		want("ConsumerGroupHeartbeat", call[*kmsg.ConsumerGroupHeartbeatResponse](t, c.Broker, 0, beat).ErrorCode, unavailable)
		del := kmsg.NewPtrDeleteGroupsRequest()
		del.Groups = []string{"empty"}
		want("DeleteGroups", call[*kmsg.DeleteGroupsResponse](t, c.Broker, 2, del).Groups[0].ErrorCode, unavailable)

		_, code = c.initProducer(t)
		want("InitProducerId", code, unavailable)
		add := kmsg.NewPtrAddPartitionsToTxnRequest()
		add.TransactionalID, add.ProducerID, add.ProducerEpoch = "id", producer, 1
		add.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: "t", Partitions: []int32{0}}}
		want("AddPartitionsToTxn", call[*kmsg.AddPartitionsToTxnResponse](t, c.Broker, 3, add).Topics[0].Partitions[0].ErrorCode, unavailable)
		offsets := kmsg.NewPtrAddOffsetsToTxnRequest()
		offsets.TransactionalID, offsets.ProducerID, offsets.ProducerEpoch, offsets.Group = "id", producer, 1, "another"
		want("AddOffsetsToTxn", call[*kmsg.AddOffsetsToTxnResponse](t, c.Broker, 3, offsets).ErrorCode, unavailable)
		end := kmsg.NewPtrEndTxnRequest()
		end.TransactionalID, end.ProducerID, end.ProducerEpoch = "id", producer, 1
		want("EndTxn", call[*kmsg.EndTxnResponse](t, c.Broker, 3, end).ErrorCode, unavailable)
		transaction := kmsg.NewPtrDescribeTransactionsRequest()
		transaction.TransactionalIDs = []string{"id"}
		want("DescribeTransactions", call[*kmsg.DescribeTransactionsResponse](t, c.Broker, 0, transaction).TransactionStates[0].ErrorCode, unavailable)
		transactions := kmsg.NewPtrListTransactionsRequest()
		want("ListTransactions", call[*kmsg.ListTransactionsResponse](t, c.Broker, 0, transactions).ErrorCode, unavailable)
	})
}
