package cases

import (
	"bytes"
	"fmt"
	"testing"

	"barnabas/internal/record"
	"barnabas/test/raw"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// asked is what one broker answered to a request, byte for byte.
type asked struct{ what, answer string }

// asker sends the requests of a script to one broker.
type asker struct {
	t     *testing.T
	to    target
	c     *raw.Conn
	topic string
	id    [16]byte
	out   []asked
}

// ask notes the answer, or that there is none. Topic ids differ from broker to
// broker, and messages for people are each broker's own.
func (a *asker) ask(what string, r kmsg.Request) {
	what = fmt.Sprintf("%s, v%d", what, r.GetVersion())
	resp, err := a.c.Try(r)
	if err != nil {
		a.out = append(a.out, asked{what, err.Error()})
		a.c = raw.Dial(a.t, a.to.addr)
		return
	}
	if p, ok := resp.(*kmsg.ProduceResponse); ok {
		p.Topics[0].Partitions[0].ErrorMessage = nil
	}
	b := bytes.ReplaceAll(resp.AppendTo(nil), a.id[:], []byte("the topic's id.."))
	a.out = append(a.out, asked{what, fmt.Sprintf("%x", b)})
}

func (a *asker) produce(what string, version, acks int16, topic string, partition int32, set []byte) {
	r := kmsg.NewPtrProduceRequest()
	r.Version, r.Acks, r.TimeoutMillis = version, acks, 3000
	r.Topics = []kmsg.ProduceRequestTopic{{Topic: topic, Partitions: []kmsg.ProduceRequestTopicPartition{{Partition: partition, Records: set}}}}
	a.ask("produce "+what, r)
}

const longAgo = 1_700_000_000_000 // ms

// stamped returns a batch of n records, a millisecond apart.
func stamped(t *testing.T, timestamp int64, n int, o record.BatchOptions) []byte {
	t.Helper()
	o.LeaderEpoch = -1
	b := record.NewBuilder(o)
	for i := range n {
		b.Append(timestamp+int64(i), []byte("k"), fmt.Append(nil, "v", i))
	}
	set, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestHotRequestsAreAnsweredByteForByte sends some 700 Produce, ListOffsets,
// OffsetForLeaderEpoch and Fetch requests of every version, good and bad, to
// both brokers and compares the answers.
func TestHotRequestsAreAnsweredByteForByte(t *testing.T) {
	answers := map[bool][]asked{}
	onBoth(t, func(t *testing.T, to target) {
		a := &asker{t: t, to: to, c: raw.Dial(t, to.addr)}
		topics.Store(7000) // the same names for both
		a.topic, a.id = newTopic(t, to)
		few, _ := newTopic(t, to, "min.insync.replicas", "2")
		a.produceScript(few)
		a.offsetScript()
		a.fetchScript()
		answers[to.apache] = a.out
	})
	ours, kafka := answers[false], answers[true]
	if len(ours) != len(kafka) {
		t.Fatalf("%d answers, and %d of Kafka", len(ours), len(kafka))
	}
	for i := range kafka {
		if ours[i] != kafka[i] {
			t.Errorf("%s\n ours: %.600s\nkafka: %.600s", kafka[i].what, ours[i].answer, kafka[i].answer)
		}
	}
}

func (a *asker) produceScript(few string) {
	t := a.t
	one := func() []byte { return stamped(t, longAgo, 1, record.BatchOptions{}) }
	for v := int16(0); v <= 11; v++ {
		set := stamped(t, longAgo+int64(v)*10, 2, record.BatchOptions{})
		if v < 2 {
			set = oldFormat(0)
		}
		a.produce("good", v, -1, a.topic, 0, set)
		a.produce("to an unknown topic", v, 1, "nobody", 0, set)
		a.produce("to an unknown partition", v, 1, a.topic, 7, set)
		a.produce("with acks 3", v, 3, a.topic, 0, set)
		a.produce("above what min.insync.replicas can be", v, -1, few, 0, set)
		a.produce("no bytes", v, 1, a.topic, 0, []byte{})
		a.produce("three bytes", v, 1, a.topic, 0, []byte{1, 2, 3})
		if v < 3 {
			continue
		}
		a.produce("bad CRC", v, 1, a.topic, 0, changed(one(), 17, be32(12345), false))
		a.produce("magic 7", v, 1, a.topic, 0, changed(one(), 16, []byte{7}, false))
		a.produce("length -5", v, 1, a.topic, 0, changed(one(), 8, be32(-5), false))
		a.produce("torn", v, 1, a.topic, 0, stamped(t, longAgo, 3, record.BatchOptions{})[:80])
		a.produce("bytes behind it", v, 1, a.topic, 0, append(one(), 9, 9, 9))
		a.produce("zstd", v, 1, a.topic, 0, stamped(t, longAgo, 3, record.BatchOptions{Codec: record.Zstd}))
		a.produce("control batch", v, 1, a.topic, 0, stamped(t, longAgo, 1, record.BatchOptions{Control: true}))
		a.produce("base offset 9", v, 1, a.topic, 0, changed(one(), 0, []byte{0, 0, 0, 0, 0, 0, 0, 9}, false))
		a.produce("from the future", v, 1, a.topic, 0, stamped(t, 2*longAgo, 1, record.BatchOptions{}))
		for _, sequence := range []int32{3, 9, 3} { // begins anywhere, then a gap, then a duplicate
			p := &record.Producer{ID: 500 + int64(v), Sequence: sequence}
			a.produce(fmt.Sprint("sequence ", sequence), v, -1, a.topic, 0, stamped(t, longAgo, 1, record.BatchOptions{Producer: p}))
		}
	}
}

func (a *asker) offsetScript() {
	for v := int16(0); v <= 9; v++ {
		for _, timestamp := range []int64{-1, -2, -3, -4, -5, -6, longAgo, longAgo + 51, 2 * longAgo} {
			for _, epoch := range []int32{-1, 0, 5} {
				if v < 4 && epoch != -1 {
					continue
				}
				p := kmsg.NewListOffsetsRequestTopicPartition()
				p.Timestamp, p.CurrentLeaderEpoch, p.MaxNumOffsets = timestamp, epoch, 5
				r := kmsg.NewPtrListOffsetsRequest()
				r.Version, r.ReplicaID = v, -1
				for _, topic := range []string{a.topic, "nobody"} {
					r.Topics = append(r.Topics, kmsg.ListOffsetsRequestTopic{Topic: topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}})
				}
				a.ask(fmt.Sprint("list offsets at ", timestamp, " epoch ", epoch), r)
			}
		}
	}
	for v := int16(0); v <= 4; v++ {
		for _, epoch := range []int32{-1, 0, 1, 7} {
			p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
			p.LeaderEpoch, p.CurrentLeaderEpoch = epoch, -1
			r := kmsg.NewPtrOffsetForLeaderEpochRequest()
			r.Version, r.ReplicaID = v, -1
			for _, topic := range []string{a.topic, "nobody"} {
				r.Topics = append(r.Topics, kmsg.OffsetForLeaderEpochRequestTopic{Topic: topic, Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{p}})
			}
			a.ask(fmt.Sprint("end of epoch ", epoch), r)
		}
	}
}

func (a *asker) fetch(v int16, offset int64, partitions ...int32) *kmsg.FetchRequest {
	r := kmsg.NewPtrFetchRequest()
	r.Version, r.ReplicaID, r.MaxWaitMillis, r.MinBytes, r.MaxBytes, r.SessionEpoch = v, -1, 10, 1, 10<<20, -1
	topic := kmsg.FetchRequestTopic{Topic: a.topic, TopicID: a.id}
	for _, n := range partitions {
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.FetchOffset, p.PartitionMaxBytes = n, offset, 1<<20
		topic.Partitions = append(topic.Partitions, p)
	}
	r.Topics = append(r.Topics, topic)
	return r
}

// fetchScript leaves out what versions 0 to 3 convert: Kafka fills such answers
// up with an empty message to the size that was announced.
func (a *asker) fetchScript() {
	for v := int16(0); v <= 17; v++ {
		for _, offset := range []int64{0, 5, 14, 10000, -1} {
			if v < 4 && offset >= 0 && offset < 10000 {
				continue
			}
			a.ask(fmt.Sprint("fetch at ", offset), a.fetch(v, offset, 0))
			r := a.fetch(v, offset, 0)
			r.IsolationLevel = 1
			a.ask(fmt.Sprint("fetch what is committed at ", offset), r)
		}
		a.ask("fetch an unknown partition", a.fetch(v, 0, 9))
		r := a.fetch(v, 0, 0)
		r.Topics = nil
		a.ask("fetch nothing", r)
		r = a.fetch(v, 0, 0)
		r.Topics[0].Topic, r.Topics[0].TopicID = "nobody", [16]byte{7}
		a.ask("fetch an unknown topic", r)
		if v >= 4 {
			for _, limit := range []int32{0, 100} {
				r = a.fetch(v, 0, 0)
				r.MaxBytes, r.Topics[0].Partitions[0].PartitionMaxBytes = limit, limit
				a.ask(fmt.Sprint("fetch at most ", limit), r)
			}
		}
		if v >= 7 {
			for _, session := range [][2]int32{{77, 5}, {77, -5}, {0, 5}, {77, -1}} {
				r = a.fetch(v, 0, 0)
				r.SessionID, r.SessionEpoch = session[0], session[1]
				a.ask(fmt.Sprint("fetch in session ", session), r)
			}
		}
		for _, epoch := range []int32{0, 9} {
			if v >= 9 {
				r = a.fetch(v, 0, 0)
				r.Topics[0].Partitions[0].CurrentLeaderEpoch = epoch
				a.ask(fmt.Sprint("fetch in epoch ", epoch), r)
			}
			if v >= 12 {
				r = a.fetch(v, 30, 0)
				r.Topics[0].Partitions[0].LastFetchedEpoch = epoch
				a.ask(fmt.Sprint("fetch after epoch ", epoch), r)
			}
		}
	}
}
