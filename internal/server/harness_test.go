package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"barnabas/internal/api"
	"barnabas/internal/config"
	"barnabas/internal/metadata"
	"barnabas/internal/replica"
	"barnabas/internal/storage"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// harness is a broker without a controller: storage, replicas, handlers and a
// server on a port of its own. The test plays the controller.
type harness struct {
	tb      testing.TB
	server  *Server
	broker  *api.Broker
	storage *storage.Manager
	config  *config.Broker
	addr    string
	log     *lines
}

// lines keeps what was logged.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func start(tb testing.TB, set ...func(*Options)) *harness {
	tb.Helper()
	h := &harness{tb: tb, log: &lines{}}
	log := slog.New(slog.NewTextHandler(h.log, nil))
	dir := tb.TempDir()
	c, err := config.NewBroker(map[string]string{"broker.id": "1", "log.dirs": dir, "zookeeper.connect": "unused:1"})
	if err != nil {
		tb.Fatal(err)
	}
	h.config = c
	h.storage, err = storage.Open(storage.Options{Dirs: []string{dir}, Config: c, BrokerID: 1, ClusterID: "c", Logger: log})
	if err != nil {
		tb.Fatal(err)
	}
	h.broker = &api.Broker{
		ID: 1, ClusterID: "c", Config: config.NewDynamic(c), Metadata: metadata.New(), Log: log, Now: time.Now,
		Replicas: replica.NewManager(replica.Options{BrokerID: 1, Storage: h.storage, Logger: log}),
		Fetches:  api.NewFetchSessions(1000, nil),
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	h.addr = l.Addr().String()
	o := Options{Listeners: []Listener{{Listener: l, Name: "PLAINTEXT", Protocol: "PLAINTEXT"}}, Broker: h.broker, Logger: log}
	for _, f := range set {
		f(&o)
	}
	if h.server, err = New(o); err != nil {
		tb.Fatal(err)
	}
	h.server.Start()
	tb.Cleanup(h.stop)
	return h
}

func (h *harness) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := h.server.Close(ctx); err != nil {
		h.tb.Errorf("Close: %v", err)
	}
	h.broker.Close()
	h.broker.Replicas.Close()
	if err := h.storage.Close(); err != nil {
		h.tb.Errorf("storage: %v", err)
	}
}

// topic makes a topic that this broker leads, with topic overrides as pairs.
func (h *harness) topic(name string, partitions int, overrides ...string) wire.UUID {
	h.tb.Helper()
	id := wire.NewUUID()
	h.lead(name, id, partitions, 0, []int32{1}, []int32{1})
	if len(overrides) > 0 {
		set := map[string]string{}
		for i := 0; i < len(overrides); i += 2 {
			set[overrides[i]] = overrides[i+1]
		}
		c, err := h.config.Topic(set)
		if err != nil {
			h.tb.Fatal(err)
		}
		h.broker.Replicas.SetTopicConfig(name, c)
	}
	return id
}

// lead is a LeaderAndIsr and an UpdateMetadata of the controller.
func (h *harness) lead(name string, id wire.UUID, partitions int, epoch int32, replicas, isr []int32) {
	h.tb.Helper()
	r := kmsg.NewPtrLeaderAndISRRequest()
	r.Version, r.ControllerEpoch, r.BrokerEpoch = 7, 1, -1
	u := kmsg.NewPtrUpdateMetadataRequest()
	u.Version, u.ControllerEpoch, u.BrokerEpoch, u.ControllerID = 8, 1, -1, 1
	host, port, _ := net.SplitHostPort(h.addr)
	u.LiveBrokers = []kmsg.UpdateMetadataRequestLiveBroker{{ID: 1, Endpoints: []kmsg.UpdateMetadataRequestLiveBrokerEndpoint{
		{Host: host, Port: int32(atoi(port)), ListenerName: "PLAINTEXT"}}}}
	t := kmsg.LeaderAndISRRequestTopicState{Topic: name, TopicID: id}
	ut := kmsg.UpdateMetadataRequestTopicState{Topic: name, TopicID: id}
	for i := range int32(partitions) {
		t.PartitionStates = append(t.PartitionStates, kmsg.LeaderAndISRRequestTopicPartition{
			Partition: i, ControllerEpoch: 1, Leader: 1, LeaderEpoch: epoch, ISR: isr, Replicas: replicas, IsNew: epoch == 0})
		ut.PartitionStates = append(ut.PartitionStates, kmsg.UpdateMetadataRequestTopicPartition{
			Partition: i, ControllerEpoch: 1, Leader: 1, LeaderEpoch: epoch, ISR: isr, Replicas: replicas})
	}
	r.TopicStates = append(r.TopicStates, t)
	u.TopicStates = append(u.TopicStates, ut)
	h.broker.Metadata.Update(u)
	resp := h.broker.Replicas.ApplyLeaderAndISR(r)
	if resp.ErrorCode != 0 {
		h.tb.Fatalf("LeaderAndIsr: %d", resp.ErrorCode)
	}
	for _, p := range resp.Topics[0].Partitions {
		if p.ErrorCode != 0 {
			h.tb.Fatalf("LeaderAndIsr of %s-%d: %d", name, p.Partition, p.ErrorCode)
		}
	}
}

func atoi(s string) (n int) {
	for _, c := range s {
		n = n*10 + int(c-'0')
	}
	return n
}

// client is a raw connection.
type client struct {
	tb   testing.TB
	nc   net.Conn
	corr int32
}

func (h *harness) dial() *client {
	h.tb.Helper()
	nc, err := net.Dial("tcp", h.addr)
	if err != nil {
		h.tb.Fatal(err)
	}
	h.tb.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(30 * time.Second))
	return &client{tb: h.tb, nc: nc}
}

func (c *client) write(b []byte) {
	c.tb.Helper()
	if _, err := c.nc.Write(b); err != nil {
		c.tb.Fatal(err)
	}
}

func encode(r kmsg.Request, version int16, corr int32) []byte {
	r.SetVersion(version)
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, r, corr)
}

// send sends a request and returns its correlation id.
func (c *client) send(r kmsg.Request, version int16) int32 {
	c.tb.Helper()
	c.corr++
	c.write(encode(r, version, c.corr))
	return c.corr
}

// next reads one answer: its correlation id and the rest.
func (c *client) next() (int32, []byte) {
	c.tb.Helper()
	b, err := c.read()
	if err != nil {
		c.tb.Fatalf("no answer: %v", err)
	}
	return int32(binary.BigEndian.Uint32(b)), b[4:]
}

func (c *client) read() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(c.nc, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(c.nc, b)
	return b, err
}

// closed tells whether the broker closes the connection without an answer.
func (c *client) closed() bool {
	c.nc.SetReadDeadline(time.Now().Add(10 * time.Second))
	_, err := c.read()
	var timeout net.Error
	return err != nil && !(errors.As(err, &timeout) && timeout.Timeout())
}

func decode(tb testing.TB, r kmsg.Request, version int16, b []byte) kmsg.Response {
	tb.Helper()
	resp := r.ResponseKind()
	resp.SetVersion(version)
	if resp.IsFlexible() && r.Key() != 18 {
		if b[0] != 0 {
			tb.Fatalf("tagged fields in the response header: %x", b[:1])
		}
		b = b[1:]
	}
	if err := resp.ReadFrom(b); err != nil {
		tb.Fatalf("%T v%d: %v\n%x", resp, version, err, b)
	}
	if again := resp.AppendTo(nil); !bytes.Equal(again, b) {
		tb.Fatalf("%T v%d: %d bytes that kmsg writes as %d\n%x\n%x", resp, version, len(b), len(again), b, again)
	}
	return resp
}

func do[R kmsg.Response](c *client, r kmsg.Request, version int16) R {
	c.tb.Helper()
	want := c.send(r, version)
	corr, b := c.next()
	if corr != want {
		c.tb.Fatalf("answer to %d, want %d", corr, want)
	}
	return decode(c.tb, r, version, b).(R)
}

// produceRequest is one set for one partition.
func produceRequest(topic string, partition int32, acks int16, set []byte) *kmsg.ProduceRequest {
	r := kmsg.NewPtrProduceRequest()
	r.Acks, r.TimeoutMillis = acks, 5000
	r.Topics = []kmsg.ProduceRequestTopic{{Topic: topic, Partitions: []kmsg.ProduceRequestTopicPartition{{Partition: partition, Records: set}}}}
	return r
}

func (c *client) produce(version int16, topic string, partition int32, acks int16, set []byte) kmsg.ProduceResponseTopicPartition {
	c.tb.Helper()
	return do[*kmsg.ProduceResponse](c, produceRequest(topic, partition, acks, set), version).Topics[0].Partitions[0]
}

// fetchRequest fetches one partition by name, or by id from version 13 on.
func fetchRequest(topic string, id wire.UUID, partition int32, offset int64) *kmsg.FetchRequest {
	r := kmsg.NewPtrFetchRequest()
	r.ReplicaID, r.MaxWaitMillis, r.MinBytes, r.MaxBytes = -1, 500, 1, 1<<20
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, offset, 1<<20
	r.Topics = []kmsg.FetchRequestTopic{{Topic: topic, TopicID: id, Partitions: []kmsg.FetchRequestTopicPartition{p}}}
	return r
}

func (c *client) fetch(version int16, r *kmsg.FetchRequest) *kmsg.FetchResponse {
	c.tb.Helper()
	return do[*kmsg.FetchResponse](c, r, version)
}

// eventually waits for a condition.
func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			tb.Fatalf("never: %s", what)
		}
	}
}
