package api

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"barnabas/internal/metadata"
	"barnabas/internal/wire"
)

var _ = register(API{
	Key: 3, Name: "Metadata", Min: 0, Max: 12, MaxFrame: 64 << 20, Expansion: 24,
	Versions: []string{
		"brokers, topics, partitions; an empty list means all topics",
		"null means all topics, an empty list none; controller id, rack, internal topics",
		"cluster id",
		"throttle time",
		"allow_auto_topic_creation",
		"offline replicas (KIP-112)",
		"throttled after the answer (KIP-219); LISTENER_NOT_FOUND",
		"leader epochs (KIP-320)",
		"authorized operations (KIP-430)",
		"flexible",
		"topic ids in the answer (KIP-516)",
		"cluster operations went to DescribeCluster (KIP-700)",
		"topics by id",
	},
	Handle: handleMetadata,
})

// metadataRequest is the request in any version. Names alias the frame.
type metadataRequest struct {
	all             bool
	topics          []metadataTopic
	allowCreate     bool
	clusterOps      bool
	topicOps        bool
	idsNotSupported bool // ids or null names below version 12
}

type metadataTopic struct {
	id   wire.UUID
	name []byte // nil: null
}

func readMetadataRequest(body []byte, version int16) (in metadataRequest, err error) {
	r := wire.NewReader(body)
	flexible := version >= 9
	var n int
	switch {
	case version == 0:
		n = r.Array(false, 2)
		in.all = n == 0
	default:
		n = r.NullableArray(flexible, 1)
		in.all = n < 0
	}
	if n > 0 {
		in.topics = make([]metadataTopic, 0, min(n, 1<<16))
	}
	for range n {
		var t metadataTopic
		if version >= 10 {
			t.id = r.UUID()
			t.name = r.NullableString(true)
			in.idsNotSupported = in.idsNotSupported || version < 12 && (t.name == nil || !t.id.IsZero())
		} else {
			t.name = r.String(flexible)
		}
		r.Tags(flexible)
		if r.Err() != nil {
			return in, r.Err()
		}
		in.topics = append(in.topics, t)
	}
	in.allowCreate = version < 4 || r.Bool()
	if version >= 8 && version <= 10 {
		in.clusterOps = r.Bool()
	}
	if version >= 8 {
		in.topicOps = r.Bool()
	}
	r.Tags(flexible)
	return in, r.Err()
}

// metadataAnswer is what is said of one topic.
type metadataAnswer struct {
	code  wire.Code
	name  *string // nil is null: an unknown id
	id    wire.UUID
	topic *metadata.Topic // nil: no partitions
	ops   int32
}

// handleMetadata answers from the cache alone, which UpdateMetadata feeds, and
// creates unknown topics where the request and auto.create.topics.enable allow
// it: the answer is then LEADER_NOT_AVAILABLE, and the client asks again.
func handleMetadata(b *Broker, q *Request) {
	if known := func() bool { return len(b.Metadata.Cluster().Brokers) > 0 }; !known() {
		b.background(q, func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, firstMetadata)
			defer cancel()
			b.Metadata.WaitFor(known, ctx.Done())
			answerMetadata(b, q)
		})
		return
	}
	answerMetadata(b, q)
}

// firstMetadata is how long a client waits for a broker that has just started
// and knows of no broker yet, not even itself: such an answer looks like an
// error to clients. Kafka gives it.
const firstMetadata = 10 * time.Second

func answerMetadata(b *Broker, q *Request) {
	in, err := readMetadataRequest(q.Body, q.Version)
	if err != nil {
		q.malformed()
		return
	}
	if in.idsNotSupported {
		b.refuseMetadata(q, &in)
		return
	}
	ops := int32(noOperations)
	if in.topicOps {
		ops = topicOperations
	}
	answers, missing := b.metadataAnswers(&in, ops)
	create := in.allowCreate && b.Config.Load().Bool("auto.create.topics.enable")
	var wanted []string
	for _, name := range missing {
		code := wire.UnknownTopicOrPartition
		switch {
		case badTopicName(name) != "":
			code = wire.InvalidTopicException
		case create:
			wanted = append(wanted, name)
			continue
		}
		answers = append(answers, metadataAnswer{code: code, name: &name, ops: ops})
	}
	if len(wanted) == 0 {
		b.replyMetadata(q, &in, answers)
		return
	}
	in.topics = nil // they alias the frame
	b.background(q, func(ctx context.Context) {
		codes := b.createAutomatically(ctx, wanted)
		for i := range wanted {
			answers = append(answers, metadataAnswer{code: codes[i], name: &wanted[i], ops: ops})
		}
		b.replyMetadata(q, &in, answers)
	})
}

// metadataAnswers returns what is known of the topics asked for, ids first, and
// the names that are not. As in Kafka, a request that holds any id is one by id.
func (b *Broker) metadataAnswers(in *metadataRequest, ops int32) (answers []metadataAnswer, missing []string) {
	if in.all {
		for _, t := range b.Metadata.Topics() {
			answers = append(answers, metadataAnswer{name: &t.Name, id: t.ID, topic: t, ops: ops})
		}
		return answers, nil
	}
	byID := false
	for _, t := range in.topics {
		byID = byID || !t.id.IsZero()
	}
	seenNames, seenIDs := map[string]bool{}, map[wire.UUID]bool{}
	for _, want := range in.topics {
		var t *metadata.Topic
		switch {
		case byID && (want.id.IsZero() || seenIDs[want.id]):
			continue
		case byID:
			seenIDs[want.id] = true
			if t = b.Metadata.TopicByID(want.id); t == nil {
				answers = append(answers, metadataAnswer{code: wire.UnknownTopicID, id: want.id, ops: noOperations})
				continue
			}
		case want.name == nil: // neither name nor id: Kafka fails with an unknown error
			answers = append(answers, metadataAnswer{code: wire.InvalidRequest, ops: noOperations})
			continue
		case seenNames[string(want.name)]:
			continue
		default:
			name := string(want.name)
			seenNames[name] = true
			if t = b.Metadata.Topic(name); t == nil {
				missing = append(missing, name)
				continue
			}
		}
		answers = append(answers, metadataAnswer{name: &t.Name, id: t.ID, topic: t, ops: ops})
	}
	return answers, missing
}

// refuseMetadata answers INVALID_REQUEST for each topic, with no brokers, as
// Kafka does for ids in versions that can't have them.
func (b *Broker) refuseMetadata(q *Request, in *metadataRequest) {
	answers := make([]metadataAnswer, len(in.topics))
	for i, t := range in.topics {
		name := string(t.name)
		answers[i] = metadataAnswer{code: wire.InvalidRequest, name: &name, id: t.id, ops: noOperations}
	}
	w := metadataWriter{Writer: &q.W, version: q.Version, flexible: true, cluster: &metadata.Cluster{ControllerID: -1}}
	w.write(nil, answers, noOperations)
	q.Done()
}

func (b *Broker) replyMetadata(q *Request, in *metadataRequest, answers []metadataAnswer) {
	clusterOps := int32(noOperations)
	if in.clusterOps {
		clusterOps = clusterOperations
	}
	w := metadataWriter{
		Writer: &q.W, version: q.Version, flexible: q.Version >= 9,
		cluster: b.Metadata.Cluster(), listener: q.Conn.Listener,
	}
	w.write(&b.ClusterID, answers, clusterOps)
	b.logAddress(w.cluster, q.Conn.Listener)
	q.Done()
}

// logAddress says once for each listener which address clients are sent to:
// a wrong advertised.listeners is the first wall that newcomers hit.
func (b *Broker) logAddress(c *metadata.Cluster, listener string) {
	if _, done := b.advertised.Load(listener); done {
		return
	}
	e := c.Endpoint(b.ID, listener)
	if e == nil {
		return
	}
	if _, done := b.advertised.LoadOrStore(listener, true); !done {
		b.Log.Info(fmt.Sprintf("clients of listener %s are sent to %s; if they can't reach that, set advertised.listeners",
			listener, net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))))
	}
}

// metadataWriter appends an answer in any version.
type metadataWriter struct {
	*wire.Writer
	version  int16
	flexible bool
	cluster  *metadata.Cluster
	listener string
}

func (w *metadataWriter) write(clusterID *string, answers []metadataAnswer, clusterOps int32) {
	if w.version >= 3 {
		w.Int32(0) // throttle time
	}
	w.brokers()
	if w.version >= 2 {
		w.NullableString(w.flexible, clusterID)
	}
	if w.version >= 1 {
		w.Int32(w.cluster.ControllerID)
	}
	w.Length(w.flexible, len(answers))
	for i := range answers {
		w.topic(&answers[i])
	}
	if w.version >= 8 && w.version <= 10 {
		w.Int32(clusterOps)
	}
	w.Tags(w.flexible)
}

func (w *metadataWriter) brokers() {
	n := 0
	for _, b := range w.cluster.Brokers {
		if b.Endpoint(w.listener) != nil {
			n++
		}
	}
	w.Length(w.flexible, n)
	for _, b := range w.cluster.Brokers {
		e := b.Endpoint(w.listener)
		if e == nil {
			continue
		}
		w.Int32(b.ID)
		w.String(w.flexible, e.Host)
		w.Int32(e.Port)
		if w.version >= 1 {
			w.NullableString(w.flexible, b.Rack)
		}
		w.Tags(w.flexible)
	}
}

func (w *metadataWriter) topic(a *metadataAnswer) {
	w.Int16(int16(a.code))
	if a.name == nil && w.version < 12 {
		w.String(w.flexible, "")
	} else {
		w.NullableString(w.flexible, a.name)
	}
	if w.version >= 10 {
		w.UUID(a.id)
	}
	if w.version >= 1 {
		w.Bool(a.name != nil && internalTopic(*a.name))
	}
	if a.topic == nil {
		w.Length(w.flexible, 0)
	} else {
		w.Length(w.flexible, len(a.topic.Partitions))
		for _, p := range a.topic.Partitions {
			w.partition(p)
		}
	}
	if w.version >= 8 {
		w.Int32(a.ops)
	}
	w.Tags(w.flexible)
}

func (w *metadataWriter) partition(p *metadata.Partition) {
	code, leader := wire.None, p.Leader
	replicas, isr := p.Replicas, p.ISR
	if w.version == 0 { // dead replicas are left out, and told of by an error
		replicas, isr = w.reachable(replicas), w.reachable(isr)
		if len(replicas) < len(p.Replicas) || len(isr) < len(p.ISR) {
			code = wire.ReplicaNotAvailable
		}
	}
	if w.cluster.Endpoint(leader, w.listener) == nil {
		code = wire.LeaderNotAvailable
		if w.version >= 6 && w.cluster.Broker(leader) != nil {
			code = wire.ListenerNotFound
		}
		leader = metadata.NoLeader
	}
	w.Int16(int16(code))
	w.Int32(p.Index)
	w.Int32(leader)
	if w.version >= 7 {
		w.Int32(p.LeaderEpoch)
	}
	w.ids(replicas)
	w.ids(isr)
	if w.version >= 5 {
		w.ids(p.Offline)
	}
	w.Tags(w.flexible)
}

func (w *metadataWriter) ids(ids []int32) {
	w.Length(w.flexible, len(ids))
	for _, id := range ids {
		w.Int32(id)
	}
}

// reachable returns the brokers among ids that have an address on the listener.
func (w *metadataWriter) reachable(ids []int32) []int32 {
	for i, id := range ids {
		if w.cluster.Endpoint(id, w.listener) != nil {
			continue
		}
		alive := append([]int32(nil), ids[:i]...)
		for _, id := range ids[i+1:] {
			if w.cluster.Endpoint(id, w.listener) != nil {
				alive = append(alive, id)
			}
		}
		return alive
	}
	return ids
}
