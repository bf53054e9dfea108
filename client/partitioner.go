package client

import (
	"github.com/twmb/franz-go/pkg/kgo"
)

// Partitioner chooses the partition of a record that names none.
type Partitioner interface {
	// Partition returns 0 to n-1, n being the number of the topic's
	// partitions; another value fails the record. key is the serialized key,
	// nil for null. Calls for one topic do not overlap; those for several may.
	Partition(r *Record, key []byte, n int) int
}

// PartitionerFunc is a function as a Partitioner.
type PartitionerFunc func(r *Record, key []byte, n int) int

// Partition calls the function.
func (f PartitionerFunc) Partition(r *Record, key []byte, n int) int { return f(r, key, n) }

// builtin is a partitioner that knows which partitions have a leader, and when
// batches end.
type builtin struct {
	Partitioner
	native kgo.Partitioner
}

// Murmur2 is the Java producer's default, since 0.8.2: a key's partition is
// murmur2 of its bytes modulo the partitions. Without a key, records fill one
// batch after another, over the partitions that have a leader, those that take
// records fastest first (KIP-480, KIP-794).
func Murmur2() Partitioner {
	return builtin{PartitionerFunc(byMurmur2), kgo.UniformBytesPartitioner(64<<10, true, true, nil)}
}

func byMurmur2(_ *Record, key []byte, n int) int { return int(Murmur2Hash(key)&0x7fffffff) % n }

// Sticky is Murmur2 for keys; without a key, a partition is kept until its
// batch ends, then another is drawn (KIP-480).
func Sticky() Partitioner {
	return builtin{PartitionerFunc(byMurmur2), kgo.StickyKeyPartitioner(nil)}
}

// RoundRobin deals the records out in turn, whatever their keys, over the
// partitions that have a leader
// (org.apache.kafka.clients.producer.RoundRobinPartitioner).
func RoundRobin() Partitioner {
	return builtin{PartitionerFunc(byMurmur2), kgo.RoundRobinPartitioner()}
}

// ScalaHash is that of the Scala producer of 0.8 (kafka.producer.
// DefaultPartitioner, and ByteArrayPartitioner for []byte keys): the absolute
// value of Java's hashCode of the key, not yet serialized, modulo the
// partitions; see [JavaHash]. Without a key records go round robin over the
// partitions that have a leader; 0.8 keeps one at random for
// topic.metadata.refresh.interval.ms.
//
// The hash code of a Java array is its identity, so what 0.8's
// DefaultPartitioner does with byte[] keys is random, and only its
// ByteArrayPartitioner can be matched.
func ScalaHash() Partitioner { return builtin{PartitionerFunc(byScalaHash), scalaPartitioner{}} }

func byScalaHash(r *Record, _ []byte, n int) int {
	key := r.PartitionKey
	if key == nil {
		key = r.Key
	}
	h, err := JavaHash(key)
	if err != nil {
		return -1 // checked when the record was taken
	}
	return int(absolute(h)) % n
}

type scalaPartitioner struct{}

func (scalaPartitioner) ForTopic(topic string) kgo.TopicPartitioner {
	return &scalaTopic{rest: kgo.RoundRobinPartitioner().ForTopic(topic)}
}

type scalaTopic struct{ rest kgo.TopicPartitioner }

func keyed(r *Record) bool { return r.Key != nil || r.PartitionKey != nil }

func (t *scalaTopic) RequiresConsistency(k *kgo.Record) bool { return keyed(sendingOf(k).record) }

func (t *scalaTopic) Partition(k *kgo.Record, n int) int {
	if r := sendingOf(k).record; keyed(r) {
		return int(absolute(sendingOf(k).hash)) % n
	}
	return t.rest.Partition(k, n)
}

// PartitionerNames maps the names of Kafka's classes, as partitioner.class has
// them, to partitioners.
func PartitionerNames() map[string]Partitioner {
	const java = "org.apache.kafka.clients.producer."
	return map[string]Partitioner{
		"kafka.producer.DefaultPartitioner":   ScalaHash(),
		"kafka.producer.ByteArrayPartitioner": ScalaHash(),
		java + "internals.DefaultPartitioner": Sticky(),
		java + "internals.Partitioner":        Sticky(),
		java + "UniformStickyPartitioner":     builtin{PartitionerFunc(byMurmur2), kgo.StickyPartitioner()},
		java + "RoundRobinPartitioner":        RoundRobin(),
	}
}

// nativePartitioner is what kgo asks: our record's own partition first, then
// the partitioner.
func nativePartitioner(p Partitioner) kgo.Partitioner {
	if b, ok := p.(builtin); ok {
		return chosenFirst{b.native}
	}
	return chosenFirst{ownPartitioner{p}}
}

type ownPartitioner struct{ p Partitioner }

func (o ownPartitioner) ForTopic(string) kgo.TopicPartitioner { return ownTopic(o) }

type ownTopic struct{ p Partitioner }

func (ownTopic) RequiresConsistency(*kgo.Record) bool { return true }

func (o ownTopic) Partition(k *kgo.Record, n int) int {
	return o.p.Partition(sendingOf(k).record, k.Key, n)
}

type chosenFirst struct{ next kgo.Partitioner }

func (c chosenFirst) ForTopic(topic string) kgo.TopicPartitioner {
	next := c.next.ForTopic(topic)
	plain := chosenTopic{next}
	if backup, ok := next.(kgo.TopicBackupPartitioner); ok {
		if batches, ok := next.(kgo.TopicPartitionerOnNewBatch); ok {
			return &chosenBackupBatches{chosenBackup{plain, backup}, batches}
		}
		return &chosenBackup{plain, backup}
	}
	if batches, ok := next.(kgo.TopicPartitionerOnNewBatch); ok {
		return &chosenBatches{plain, batches}
	}
	return &plain
}

type chosenTopic struct{ next kgo.TopicPartitioner }

func (c *chosenTopic) RequiresConsistency(k *kgo.Record) bool {
	return sendingOf(k).record.Partition != nil || c.next.RequiresConsistency(k)
}

func (c *chosenTopic) Partition(k *kgo.Record, n int) int {
	if p := sendingOf(k).record.Partition; p != nil {
		return int(*p)
	}
	return c.next.Partition(k, n)
}

type chosenBatches struct {
	chosenTopic
	batches kgo.TopicPartitionerOnNewBatch
}

func (c *chosenBatches) OnNewBatch() { c.batches.OnNewBatch() }

type chosenBackup struct {
	chosenTopic
	backup kgo.TopicBackupPartitioner
}

func (c *chosenBackup) PartitionByBackup(k *kgo.Record, n int, iter kgo.TopicBackupIter) int {
	if p := sendingOf(k).record.Partition; p != nil {
		return int(*p)
	}
	return c.backup.PartitionByBackup(k, n, iter)
}

type chosenBackupBatches struct {
	chosenBackup
	batches kgo.TopicPartitionerOnNewBatch
}

func (c *chosenBackupBatches) OnNewBatch() { c.batches.OnNewBatch() }
