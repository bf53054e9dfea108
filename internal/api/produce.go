package api

import (
	"errors"

	"barnabas/internal/config"
	"barnabas/internal/metadata"
	"barnabas/internal/record"
	"barnabas/internal/replica"
	"barnabas/internal/storage"
	"barnabas/internal/wire"
)

var _ = register(API{
	Key: 0, Name: "Produce", Min: 0, Max: 11, Reuse: true,
	Versions: []string{
		"message sets of format v0",
		"throttle time",
		"format v1; log append time",
		"format v2 only, one batch a partition; transactional id",
		"KAFKA_STORAGE_ERROR may be answered",
		"log start offset",
		"throttled after the answer, not before it (KIP-219)",
		"zstd (KIP-110)",
		"rejected records by number, error message (KIP-467)",
		"flexible",
		"current leader and its address with NOT_LEADER_OR_FOLLOWER (KIP-951)",
		"transaction errors as such (KIP-890)",
	},
	Handle: handleProduce,
})

// adminClientID may write to internal topics (AdminUtils.ADMIN_CLIENT_ID).
const adminClientID = "__admin_client"

// producing is one Produce request under way. The answer is written into q.W
// as the partitions are done.
type producing struct {
	b         *Broker
	q         *Request
	flexible  bool
	start     int // of the answer's body in q.W
	acks      int16
	timeout   int32
	now       int64 // ms
	refused   refusal
	failed    wire.Code
	waits     []pendingAck
	endpoints leaderEndpoints

	transactionalID []byte     // nil: none
	transaction     *verifying // nil without one
}

// handleProduce appends each partition's records and answers: at once for
// acks=1, when the high watermark has reached them for acks=all, not at all for
// acks=0, where an error closes the connection (KafkaApis.handleProduceRequest).
func handleProduce(b *Broker, q *Request) {
	p := producing{b: b, q: q, flexible: q.Flexible, start: len(q.W.B), now: q.Received.UnixMilli()}
	transactional := false
	if !walkProduce(q, func(_ []byte, _ int32, records []byte) { // before anything is appended
		transactional = transactional || ofTransaction(records)
	}) {
		q.malformed()
		return
	}
	r := wire.NewReader(q.Body)
	if q.Version >= 3 {
		p.transactionalID = r.NullableString(p.flexible)
	}
	p.acks, p.timeout = r.Int16(), r.Int32()
	switch {
	case p.transactionalID != nil:
		p.transaction, p.refused = b.verifyProduce(q, string(p.transactionalID))
	case transactional:
		p.refused.code = wire.TransactionalIDAuthorizationFailed // nothing would end the transaction
	}
	topics := r.Array(p.flexible, 1)
	q.W.Length(p.flexible, topics)
	for range topics {
		p.topic(&r)
	}
	if p.acks == 0 {
		if p.failed != wire.None {
			q.Fail(errProduceWithoutAnswer{p.failed})
			return
		}
		q.Skip()
		return
	}
	if q.Version >= 1 {
		q.W.Int32(0) // throttle time
	}
	if p.flexible {
		p.endpoints.append(&q.W, 0)
	}
	if len(p.waits) > 0 {
		p.awaitAcks()
		return
	}
	q.Done()
}

// errProduceWithoutAnswer closes the connection of a failed acks=0 request.
type errProduceWithoutAnswer struct{ code wire.Code }

func (e errProduceWithoutAnswer) Error() string {
	return "a produce request with acks=0 failed: " + e.code.Error()
}

func (e errProduceWithoutAnswer) Unwrap() error { return e.code }

// walkProduce calls f for each partition of a body. It returns false if the body
// is not what the version says.
func walkProduce(q *Request, f func(topic []byte, index int32, records []byte)) bool {
	r := wire.NewReader(q.Body)
	if q.Version >= 3 {
		r.NullableString(q.Flexible)
	}
	r.Int16()
	r.Int32()
	for topics := r.Array(q.Flexible, 3); topics > 0 && r.Err() == nil; topics-- {
		topic := r.String(q.Flexible)
		for parts := r.Array(q.Flexible, 5); parts > 0 && r.Err() == nil; parts-- {
			index, records := r.Int32(), r.NullableBytes(q.Flexible)
			r.Tags(q.Flexible)
			f(topic, index, records)
		}
		r.Tags(q.Flexible)
	}
	r.Tags(q.Flexible)
	return r.Err() == nil
}

func (p *producing) topic(r *wire.Reader) {
	name := r.String(p.flexible)
	parts := r.Array(p.flexible, 1)
	p.q.W.StringBytes(p.flexible, name)
	p.q.W.Length(p.flexible, parts)
	t := p.b.Replicas.Topic(name)
	for range parts {
		index := r.Int32()
		records := r.NullableBytes(p.flexible)
		r.Tags(p.flexible)
		p.partition(name, t, index, records)
	}
	r.Tags(p.flexible)
	p.q.W.Tags(p.flexible)
}

// refusal is what all partitions of a request are answered that is refused as a
// whole.
type refusal struct {
	code wire.Code
	why  *record.Error // nil: the code says all
}

// ofTransaction tells whether a set is a batch of a transaction.
func ofTransaction(set []byte) bool {
	b := record.Batch(set)
	return len(set) >= record.BatchHeaderSize && b.Magic() >= 2 && b.Transactional()
}

// produced is the outcome for one partition.
type produced struct {
	code    wire.Code
	info    storage.AppendInfo
	invalid *record.Error // tells of rejected records
	part    *replica.Partition
}

func (p *producing) partition(name []byte, t *replica.Topic, index int32, records []byte) {
	d := produced{info: storage.AppendInfo{FirstOffset: -1, LastOffset: -1, LogAppendTime: -1, LogStartOffset: -1}}
	if p.refused.code != wire.None {
		d.code, d.invalid = p.refused.code, p.refused.why
	} else {
		p.append(&d, name, t, index, records)
	}
	wait := false
	if p.acks == -1 && d.code == wire.None && d.info.LastOffset >= 0 {
		code, done := d.part.Acked(d.info.LastOffset + 1)
		if wait = !done; done {
			d.code = code // before the answer is written: another leader is named in it
		}
	}
	d.code = codeFor(p.q.Version, d.code)
	if p.acks == 0 {
		if d.code != wire.None {
			p.failed = d.code
		}
		return
	}
	at := p.respond(&d, name, index)
	if wait {
		p.waits = append(p.waits, pendingAck{part: d.part, offset: d.info.LastOffset + 1, at: at})
	}
}

// codeFor is a code as clients of a version know it: before version 4 they are
// not told of a storage error, and must look for another leader.
func codeFor(version int16, code wire.Code) wire.Code {
	if code == wire.KafkaStorageError && version < 4 {
		return wire.NotLeaderOrFollower
	}
	return code
}

// append checks and appends one partition's records, in Kafka's order of checks
// as far as a client can tell.
func (p *producing) append(d *produced, name []byte, t *replica.Topic, index int32, records []byte) {
	if t != nil {
		d.part = t.Partition(index)
	}
	switch {
	case d.part == nil:
		d.code = p.b.missing(name, index)
		return
	case p.acks < -1 || p.acks > 1:
		d.code = wire.InvalidRequiredAcks
		return
	case records == nil:
		d.code = wire.InvalidRecord // Kafka never answers these
		return
	case internalName(name) && p.q.ClientID != adminClientID:
		d.code = wire.InvalidTopicException
		return
	}
	log, code := d.part.Leading(-1)
	if code != wire.None {
		d.code = code
		return
	}
	checked, err := record.Validate(records, validateOptions(log.Config(), p.q.Version, p.now))
	switch {
	case err != nil:
		d.code = record.CodeOf(err)
		if d.invalid = rejectedRecords(err); d.invalid != nil || d.code == wire.InvalidRecord && oneBatch(records) {
			d.info.LogStartOffset = log.StartOffset() // what Kafka finds out in the log, not in the request
		}
		return
	case len(checked.Set) == 0:
		d.info.LogStartOffset = log.StartOffset()
		return
	}
	request := storage.AppendRequest{Records: checked.Set, LogAppendTime: checked.LogAppendTime}
	if checked.Transactional {
		v := p.transaction.of(name, index)
		if d.code = v.code; d.code != wire.None {
			return
		}
		request.Verified = v.since
	}
	d.info, err = d.part.Append(request, p.acks == -1)
	if err != nil {
		d.info = storage.AppendInfo{FirstOffset: -1, LastOffset: -1, LogAppendTime: -1, LogStartOffset: -1}
		if d.code = storage.Code(err); startToldWith(d.code) {
			d.info.LogStartOffset = log.StartOffset()
		}
	}
}

// rejectedRecords returns the error that lists rejected records, if it is one.
func rejectedRecords(err error) *record.Error {
	var e *record.Error
	if errors.As(err, &e) && len(e.Records) > 0 {
		return e
	}
	return nil
}

// oneBatch tells whether a set is exactly one batch of format v2.
func oneBatch(set []byte) bool {
	n, err := record.EntrySize(set)
	return err == nil && n > 0 && n == len(set) && record.Batch(set).Magic() == 2
}

// startToldWith tells whether Kafka gives the log start offset with an error of
// an append (ReplicaManager.appendToLocalLog).
func startToldWith(code wire.Code) bool {
	switch code {
	case wire.UnknownTopicOrPartition, wire.NotLeaderOrFollower, wire.MessageTooLarge,
		wire.RecordListTooLarge, wire.CorruptMessage, wire.KafkaStorageError:
		return false
	}
	return true
}

func validateOptions(c *config.Topic, version int16, now int64) record.ValidateOptions {
	o := record.ValidateOptions{
		Version: version, Now: now,
		Codec: record.Codec(c.Compression), Level: c.CompressionLevel,
		BeforeMaxMs: c.TimestampBeforeMaxMs, AfterMaxMs: c.TimestampAfterMaxMs,
		Compacted: c.Compact, MaxBatchBytes: max(1, int(c.MaxMessageBytes)), // 0 lets no batch in
	}
	if c.LogAppendTime {
		o.TimestampType = record.LogAppendTime
	}
	return o
}

// respond writes a partition's answer and returns where its error code lies.
func (p *producing) respond(d *produced, name []byte, index int32) (at int) {
	w, v := &p.q.W, p.q.Version
	w.Int32(index)
	at = len(w.B)
	w.Int16(int16(d.code))
	w.Int64(d.info.FirstOffset)
	if v >= 2 {
		w.Int64(d.info.LogAppendTime)
	}
	if v >= 5 {
		w.Int64(d.info.LogStartOffset)
	}
	if v >= 8 {
		p.rejected(d)
	}
	if !p.flexible {
		return at
	}
	if v >= 10 && d.code == wire.NotLeaderOrFollower {
		p.endpoints.appendCurrentLeader(w, 0, p.b, p.q.Conn.Listener, string(name), index)
	} else {
		w.Tags(true)
	}
	return at
}

// rejected writes which records were refused and why.
func (p *producing) rejected(d *produced) {
	w := &p.q.W
	if d.invalid == nil {
		w.Length(p.flexible, 0)
		w.NullableString(p.flexible, nil)
		return
	}
	w.Length(p.flexible, len(d.invalid.Records))
	for i := range d.invalid.Records {
		e := &d.invalid.Records[i]
		w.Int32(e.Index)
		w.NullableString(p.flexible, &e.Message)
		w.Tags(p.flexible)
	}
	w.NullableString(p.flexible, &d.invalid.Message)
}

func putCode(b []byte, code wire.Code) { b[0], b[1] = byte(uint16(code)>>8), byte(code) }

// missing is the answer for a partition that this broker has no replica of:
// somebody else's if the cluster knows it.
func (b *Broker) missing(topic []byte, index int32) wire.Code {
	if b.Metadata.Partition(string(topic), index) != nil {
		return wire.NotLeaderOrFollower
	}
	return wire.UnknownTopicOrPartition
}

// internalName tells whether only coordinators write to a topic.
func internalName(name []byte) bool {
	return string(name) == "__consumer_offsets" || string(name) == "__transaction_state"
}

// leaderEndpoints collects the addresses of the leaders that an answer names
// (KIP-951).
type leaderEndpoints struct {
	nodes []leaderNode
}

type leaderNode struct {
	id   int32
	at   *metadata.Endpoint
	rack *string
}

// appendCurrentLeader writes tagged fields that hold only the current leader
// and epoch of a partition.
func (e *leaderEndpoints) appendCurrentLeader(w *wire.Writer, tag uint32, b *Broker, listener, topic string, index int32) {
	leader, epoch := b.currentLeader(topic, index)
	w.Uvarint(1)
	w.Uvarint(tag)
	w.Uvarint(9)
	w.Int32(leader)
	w.Int32(epoch)
	w.Tags(true)
	if leader < 0 {
		return
	}
	e.add(b, listener, leader)
}

// currentLeader is the leader of a partition as this broker's replica knows it,
// or else as the controller told; -1 for none or unknown.
func (b *Broker) currentLeader(topic string, index int32) (leader, epoch int32) {
	if t := b.Replicas.Topic([]byte(topic)); t != nil && t.Partition(index) != nil {
		v := t.Partition(index).View()
		return v.LeaderID, v.LeaderEpoch
	}
	if p := b.Metadata.Partition(topic, index); p != nil {
		return p.Leader, p.LeaderEpoch
	}
	return -1, -1
}

func (e *leaderEndpoints) add(b *Broker, listener string, leader int32) {
	for i := range e.nodes {
		if e.nodes[i].id == leader {
			return
		}
	}
	cluster := b.Metadata.Cluster()
	if at := cluster.Endpoint(leader, listener); at != nil {
		e.nodes = append(e.nodes, leaderNode{leader, at, cluster.Broker(leader).Rack})
	}
}

// append writes the tagged fields that end the answer: the addresses, if any.
func (e *leaderEndpoints) append(w *wire.Writer, tag uint32) {
	if len(e.nodes) == 0 {
		w.Tags(true)
		return
	}
	var value wire.Writer
	value.Length(true, len(e.nodes))
	for _, n := range e.nodes {
		value.Int32(n.id)
		value.String(true, n.at.Host)
		value.Int32(n.at.Port)
		value.NullableString(true, n.rack)
		value.Tags(true)
	}
	w.Uvarint(1)
	w.Uvarint(tag)
	w.Uvarint(uint32(len(value.B)))
	w.B = append(w.B, value.B...)
}
