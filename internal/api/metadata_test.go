package api

import (
	"bytes"
	"encoding/hex"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"barnabas/internal/metadata"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// cluster fills the cache: brokers 1 and 2 live (2 without PLAINTEXT), broker 3
// dead, topic t with one partition for each of them.
func cluster(c *metadata.Cache, id wire.UUID) {
	rack := "r"
	endpoint := func(name string, port int32) kmsg.UpdateMetadataRequestLiveBrokerEndpoint {
		return kmsg.UpdateMetadataRequestLiveBrokerEndpoint{ListenerName: name, Host: "h", Port: port}
	}
	part := func(i, leader int32, replicas ...int32) kmsg.UpdateMetadataRequestTopicPartition {
		return kmsg.UpdateMetadataRequestTopicPartition{Partition: i, Leader: leader, LeaderEpoch: 7, ISR: replicas[:1], Replicas: replicas, OfflineReplicas: replicas[1:]}
	}
	c.Update(&kmsg.UpdateMetadataRequest{Version: 8, ControllerID: 1,
		LiveBrokers: []kmsg.UpdateMetadataRequestLiveBroker{
			{ID: 1, Rack: &rack, Endpoints: []kmsg.UpdateMetadataRequestLiveBrokerEndpoint{endpoint("PLAINTEXT", 9092), endpoint("INSIDE", 9093)}},
			{ID: 2, Endpoints: []kmsg.UpdateMetadataRequestLiveBrokerEndpoint{endpoint("INSIDE", 9094)}},
		},
		TopicStates: []kmsg.UpdateMetadataRequestTopicState{{Topic: "t", TopicID: id, PartitionStates: []kmsg.UpdateMetadataRequestTopicPartition{
			part(0, 1, 1), part(1, 2, 2, 1), part(2, 3, 3), part(3, 1, 1, 3), part(4, -1, 1)}}}})
}

func TestMetadataInEveryVersion(t *testing.T) {
	b := handlersBroker(t, nil)
	id := wire.NewUUID()
	cluster(b.Metadata, id)
	for v := int16(0); v <= 12; v++ {
		in := kmsg.NewPtrMetadataRequest()
		if v > 0 {
			in.Topics = nil
		} else {
			in.Topics = []kmsg.MetadataRequestTopic{}
		}
		r := call[*kmsg.MetadataResponse](t, b, v, in)
		if len(r.Brokers) != 1 || r.Brokers[0].NodeID != 1 || r.Brokers[0].Port != 9092 || (v >= 1) != (r.Brokers[0].Rack != nil) {
			t.Fatalf("v%d: brokers %+v", v, r.Brokers)
		}
		if (v >= 2) != (r.ClusterID != nil) || v >= 1 && r.ControllerID != 1 || len(r.Topics) != 1 || *r.Topics[0].Topic != "t" {
			t.Fatalf("v%d: %+v", v, r)
		}
		if topic := r.Topics[0]; (v >= 10) != (wire.UUID(topic.TopicID) == id) || topic.IsInternal || topic.AuthorizedOperations != -1<<31 {
			t.Fatalf("v%d: %+v", v, topic)
		}
		noListener := wire.LeaderNotAvailable
		if v >= 6 {
			noListener = wire.ListenerNotFound
		}
		partial := wire.None
		if v == 0 {
			partial = wire.ReplicaNotAvailable
		}
		for i, want := range []struct {
			code     wire.Code
			leader   int32
			replicas int
		}{{wire.None, 1, 1}, {noListener, -1, 2}, {wire.LeaderNotAvailable, -1, 1}, {partial, 1, 2}, {wire.LeaderNotAvailable, -1, 1}} {
			if v == 0 && i >= 1 && i <= 3 {
				want.replicas-- // brokers 2 and 3 can't be reached on this listener
			}
			p := r.Topics[0].Partitions[i]
			if p.ErrorCode != int16(want.code) || p.Leader != want.leader || len(p.Replicas) != want.replicas || v >= 7 && p.LeaderEpoch != 7 || p.Partition != int32(i) {
				t.Errorf("v%d partition %d: %+v, want %+v", v, i, p, want)
			}
			if offline := len(p.OfflineReplicas); v >= 5 && offline != len(b.Metadata.Partition("t", int32(i)).Offline) || v < 5 && offline != 0 {
				t.Errorf("v%d partition %d: offline %v", v, i, p.OfflineReplicas)
			}
		}
	}
}

func TestMetadataOfUnknownTopics(t *testing.T) {
	b := handlersBroker(t, map[string]string{"auto.create.topics.enable": "false"})
	id := wire.NewUUID()
	cluster(b.Metadata, id)
	name := func(s string) kmsg.MetadataRequestTopic { return kmsg.MetadataRequestTopic{Topic: &s} }
	in := kmsg.NewPtrMetadataRequest()
	in.AllowAutoTopicCreation = true
	in.Topics = []kmsg.MetadataRequestTopic{name("nope"), name("t"), name("t"), name("a b"), name("nope")}
	r := call[*kmsg.MetadataResponse](t, b, 4, in)
	var got []string
	for _, topic := range r.Topics {
		got = append(got, *topic.Topic+" "+wire.Code(topic.ErrorCode).String())
	}
	if s := strings.Join(got, ", "); s != "t NONE, nope UNKNOWN_TOPIC_OR_PARTITION, a b INVALID_TOPIC_EXCEPTION" {
		t.Error(s)
	}
	in.Topics = []kmsg.MetadataRequestTopic{{TopicID: [16]byte{9}}, {TopicID: id}, {TopicID: id}}
	r = call[*kmsg.MetadataResponse](t, b, 12, in)
	if len(r.Topics) != 2 || r.Topics[0].ErrorCode != int16(wire.UnknownTopicID) || r.Topics[0].Topic != nil || *r.Topics[1].Topic != "t" {
		t.Errorf("%+v", r.Topics)
	}
	r = call[*kmsg.MetadataResponse](t, b, 10, in)
	if len(r.Brokers) != 0 || r.Topics[0].ErrorCode != int16(wire.InvalidRequest) {
		t.Errorf("ids in version 10: %+v", r)
	}
}

func TestABrokerThatKnowsNoBrokerWaitsForTheFirstWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := handlersBroker(t, nil)
		began := time.Now()
		r := call[*kmsg.MetadataResponse](t, b, 5, kmsg.NewPtrMetadataRequest())
		if len(r.Brokers) != 0 || r.ControllerID != -1 || len(r.Topics) != 0 || time.Since(began) != firstMetadata {
			t.Errorf("%+v after %v", r, time.Since(began))
		}
		time.AfterFunc(time.Second, func() { cluster(b.Metadata, wire.UUID{}) })
		if r = call[*kmsg.MetadataResponse](t, b, 5, kmsg.NewPtrMetadataRequest()); len(r.Brokers) != 1 {
			t.Errorf("%+v", r)
		}
		b.Close()
	})
}

func TestTheAddressOfAListenerIsLoggedOnce(t *testing.T) {
	b := handlersBroker(t, nil)
	var log bytes.Buffer
	b.Log = slog.New(slog.NewTextHandler(&log, nil))
	cluster(b.Metadata, wire.UUID{})
	for range 3 {
		call[*kmsg.MetadataResponse](t, b, 5, kmsg.NewPtrMetadataRequest())
	}
	if s := log.String(); strings.Count(s, "h:9092") != 1 || !strings.Contains(s, "advertised.listeners") {
		t.Errorf("logged %q", s)
	}
}

func TestAPIVersionsFromTheFuture(t *testing.T) {
	b := handlersBroker(t, nil)
	q := ask(b, 18, 99, []byte{2, 0x75, 0x77, 0, 4, 0x61, 0x62, 0x63, 4, 0x31, 0x2e, 0x30, 0})
	if got := hex.EncodeToString(q.W.B); got != "0023"+"00000001"+"0012"+"0000"+"0004" {
		t.Errorf("got %s", got)
	}
	r := call[*kmsg.ApiVersionsResponse](t, b, 0, kmsg.NewPtrApiVersionsRequest())
	if len(r.ApiKeys) != len(All()) || r.ErrorCode != 0 {
		t.Errorf("%+v", r)
	}
	for name, ok := range map[string]bool{"x": true, "a-b.c": true, "": false, "-a": false, "a-": false, "a b": false, "a_b": false, "é": false} {
		in := kmsg.NewPtrApiVersionsRequest()
		in.ClientSoftwareName, in.ClientSoftwareVersion = name, "1"
		want := int16(wire.InvalidRequest)
		if ok {
			want = 0
		}
		if r := call[*kmsg.ApiVersionsResponse](t, b, 3, in); r.ErrorCode != want {
			t.Errorf("software name %q: %d", name, r.ErrorCode)
		}
	}
}

func TestDescribeClusterNamesTheListenersBrokers(t *testing.T) {
	b := handlersBroker(t, nil)
	cluster(b.Metadata, wire.UUID{})
	in := kmsg.NewPtrDescribeClusterRequest()
	in.IncludeClusterAuthorizedOperations = true
	r := call[*kmsg.DescribeClusterResponse](t, b, 1, in)
	if r.ControllerID != 1 || len(r.Brokers) != 1 || r.ClusterAuthorizedOperations != 8096 || r.ClusterID != b.ClusterID {
		t.Errorf("%+v", r)
	}
}

func BenchmarkMetadataOfAllTopics(b *testing.B) {
	c := metadata.New()
	var topics []kmsg.UpdateMetadataRequestTopicState
	for i := range 5000 {
		topics = append(topics, kmsg.UpdateMetadataRequestTopicState{Topic: "topic-" + strconv.Itoa(i), TopicID: wire.NewUUID(),
			PartitionStates: []kmsg.UpdateMetadataRequestTopicPartition{{Leader: 1, ISR: []int32{1}, Replicas: []int32{1}}}})
	}
	c.Update(&kmsg.UpdateMetadataRequest{Version: 8, ControllerID: 1, TopicStates: topics, LiveBrokers: []kmsg.UpdateMetadataRequestLiveBroker{
		{ID: 1, Endpoints: []kmsg.UpdateMetadataRequestLiveBrokerEndpoint{{ListenerName: "PLAINTEXT", Host: "h", Port: 9092}}}}})
	broker := handlersBroker(b, nil)
	broker.Metadata = c
	b.ReportAllocs()
	for b.Loop() {
		ask(broker, 3, 12, []byte{0, 0, 0, 0})
	}
}

func BenchmarkMetadataOfOneTopic(b *testing.B) {
	broker := handlersBroker(b, nil)
	cluster(broker.Metadata, wire.UUID{})
	body := []byte{0, 0, 0, 1, 0, 1, 't', 0}
	b.ReportAllocs()
	for b.Loop() {
		ask(broker, 3, 4, body)
	}
}
