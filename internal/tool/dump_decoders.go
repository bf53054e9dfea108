package tool

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"barnabas/internal/record"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// decoder makes texts of a record's key and value; null where there is none.
type decoder func(r *record.Record) (key, value *string, err error)

// decodePlain shows the bytes; Kafka shows no key of a tombstone either.
func decodePlain(r *record.Record) (key, value *string, err error) {
	if r.Value == nil {
		return nil, nil, nil
	}
	text := string(r.Value)
	if r.Key != nil {
		k := string(r.Key)
		key = &k
	}
	return key, &text, nil
}

const deletedRecord = "<DELETE>"

// decodeOffsets is for __consumer_offsets (DumpLogSegments.OffsetsMessageParser).
func decodeOffsets(r *record.Record) (*string, *string, error) {
	if r.Key == nil {
		return nil, nil, fmt.Errorf("offset %d: a record of __consumer_offsets has no key", r.Offset)
	}
	key, value, err := offsetsTexts(r)
	if err != nil {
		key = fmt.Sprintf("Error at offset %d, skipping. %v", r.Offset, err)
		return &key, nil, nil
	}
	if key == "" {
		key = fmt.Sprintf("Unknown record type %d at offset %d, skipping.", versionOf(r.Key), r.Offset)
		return &key, nil, nil
	}
	return &key, &value, nil
}

func versionOf(b []byte) int16 {
	if len(b) < 2 {
		return -1
	}
	return int16(binary.BigEndian.Uint16(b))
}

func offsetsTexts(r *record.Record) (key, value string, err error) {
	switch kind := versionOf(r.Key); kind {
	case 0, 1:
		var k kmsg.OffsetCommitKey
		if err := k.ReadFrom(r.Key); err != nil {
			return "", "", err
		}
		key = fmt.Sprintf(`{"type":"%d","data":{"group":%s,"topic":%s,"partition":%d}}`, kind, quoted(k.Group), quoted(k.Topic), k.Partition)
		value, err = offsetCommitText(r.Value)
	case 2:
		var k kmsg.GroupMetadataKey
		if err := k.ReadFrom(r.Key); err != nil {
			return "", "", err
		}
		key = fmt.Sprintf(`{"type":"%d","data":{"group":%s}}`, kind, quoted(k.Group))
		value, err = groupText(r.Value)
	}
	return key, value, err
}

func offsetCommitText(b []byte) (string, error) {
	if b == nil {
		return deletedRecord, nil
	}
	var v kmsg.OffsetCommitValue
	if err := v.ReadFrom(b); err != nil {
		return "", err
	}
	o := object{}
	o.number("offset", v.Offset)
	if v.Version >= 3 {
		o.number("leaderEpoch", int64(v.LeaderEpoch))
	}
	o.text("metadata", &v.Metadata)
	o.number("commitTimestamp", v.CommitTimestamp)
	if v.Version == 1 {
		o.number("expireTimestamp", v.ExpireTimestamp)
	}
	return versioned(v.Version, o), nil
}

func groupText(b []byte) (string, error) {
	if b == nil {
		return deletedRecord, nil
	}
	var v kmsg.GroupMetadataValue
	if err := v.ReadFrom(b); err != nil {
		return "", err
	}
	o := object{}
	o.text("protocolType", &v.ProtocolType)
	o.number("generation", int64(v.Generation))
	o.text("protocol", v.Protocol)
	o.text("leader", v.Leader)
	if v.Version >= 2 {
		o.number("currentStateTimestamp", v.CurrentStateTimestamp)
	}
	o.list("members", len(v.Members), func(i int) string { return memberText(v.Version, &v.Members[i]) })
	return versioned(v.Version, o), nil
}

func memberText(version int16, m *kmsg.GroupMetadataValueMember) string {
	o := object{}
	o.text("memberId", &m.MemberID)
	if version >= 3 {
		o.text("groupInstanceId", m.InstanceID)
	}
	o.text("clientId", &m.ClientID)
	o.text("clientHost", &m.ClientHost)
	if version >= 1 {
		o.number("rebalanceTimeout", int64(m.RebalanceTimeoutMillis))
	}
	o.number("sessionTimeout", int64(m.SessionTimeoutMillis))
	o.raw("subscription", subscriptionText(m.Subscription))
	o.raw("assignment", assignmentText(m.Assignment))
	return o.String()
}

// subscriptionText shows what consumers put there; base64 where it is something else.
func subscriptionText(b []byte) string {
	var v kmsg.ConsumerMemberMetadata
	if err := v.ReadFrom(b); err != nil {
		return bytesText(b)
	}
	o := object{}
	o.list("topics", len(v.Topics), func(i int) string { return quoted(v.Topics[i]) })
	o.bytes("userData", v.UserData)
	if v.Version >= 1 {
		o.list("ownedPartitions", len(v.OwnedPartitions), func(i int) string {
			return partitionsText(v.OwnedPartitions[i].Topic, v.OwnedPartitions[i].Partitions)
		})
	}
	if v.Version >= 2 {
		o.number("generationId", int64(v.Generation))
	}
	if v.Version >= 3 {
		o.text("rackId", v.Rack)
	}
	return o.String()
}

func assignmentText(b []byte) string {
	var v kmsg.ConsumerMemberAssignment
	if err := v.ReadFrom(b); err != nil {
		return bytesText(b)
	}
	o := object{}
	o.list("assignedPartitions", len(v.Topics), func(i int) string { return partitionsText(v.Topics[i].Topic, v.Topics[i].Partitions) })
	o.bytes("userData", v.UserData)
	return o.String()
}

func partitionsText(topic string, partitions []int32) string {
	o := object{}
	o.text("topic", &topic)
	o.list("partitions", len(partitions), func(i int) string { return strconv.Itoa(int(partitions[i])) })
	return o.String()
}

// transactionStates are the names of Kafka's TransactionState, by id.
var transactionStates = []string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence"}

// decodeTransactions is for __transaction_state
// (TransactionLog.formatRecordKeyAndValue).
func decodeTransactions(r *record.Record) (*string, *string, error) {
	var k kmsg.TxnMetadataKey
	if err := k.ReadFrom(r.Key); err != nil || k.Version != 0 {
		text := fmt.Sprintf("unknown::version=%d", versionOf(r.Key))
		return &text, nil, nil
	}
	key, value := "transaction_metadata::transactionalId="+k.TransactionalID, deletedRecord
	if r.Value == nil {
		return &key, &value, nil
	}
	var v kmsg.TxnMetadataValue
	if err := v.ReadFrom(r.Value); err != nil {
		return nil, nil, fmt.Errorf("offset %d: %w", r.Offset, err)
	}
	var partitions []string
	for _, t := range v.Topics {
		for _, p := range t.Partitions {
			partitions = append(partitions, t.Topic+"-"+strconv.Itoa(int(p)))
		}
	}
	slices.Sort(partitions) // Kafka has a set's order
	state := strconv.Itoa(int(v.State))
	if int(v.State) < len(transactionStates) && v.State >= 0 {
		state = transactionStates[v.State]
	}
	value = fmt.Sprintf("producerId:%d,producerEpoch:%d,state=%s,partitions=[%s],txnLastUpdateTimestamp=%d,txnTimeoutMs=%d",
		v.ProducerID, v.ProducerEpoch, state, strings.Join(partitions, ","), v.LastUpdateTimestamp, v.TimeoutMillis)
	return &key, &value, nil
}

// object writes a JSON object as Jackson does: no blanks, fields in order, and
// characters beyond ASCII as they are.
type object struct{ fields []string }

func (o object) String() string { return "{" + strings.Join(o.fields, ",") + "}" }

func (o *object) raw(name, json string)       { o.fields = append(o.fields, quoted(name)+":"+json) }
func (o *object) number(name string, n int64) { o.raw(name, strconv.FormatInt(n, 10)) }
func (o *object) bytes(name string, b []byte) { o.raw(name, bytesText(b)) }
func versioned(version int16, data object) string {
	return fmt.Sprintf(`{"version":"%d","data":%s}`, version, data)
}

func (o *object) text(name string, s *string) {
	if s == nil {
		o.raw(name, "null")
		return
	}
	o.raw(name, quoted(*s))
}

func (o *object) list(name string, n int, item func(int) string) {
	items := make([]string, n)
	for i := range items {
		items[i] = item(i)
	}
	o.raw(name, "["+strings.Join(items, ",")+"]")
}

func bytesText(b []byte) string {
	if b == nil {
		return "null"
	}
	return `"` + base64.StdEncoding.EncodeToString(b) + `"`
}

func quoted(s string) string {
	b := []byte{'"'}
	for _, c := range []byte(s) {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c >= 0x20:
			b = append(b, c)
		case strings.IndexByte("\b\t\n\f\r", c) >= 0:
			b = append(b, '\\', "btn.fr"[c-'\b'])
		default:
			b = fmt.Appendf(b, `\u%04X`, c)
		}
	}
	return string(append(b, '"'))
}
