package tool

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// activeProducer is a producer as one partition remembers it.
type activeProducer struct {
	Topic            string `json:"topic"`
	Partition        int32  `json:"partition"`
	ID               int64  `json:"producerId"`
	Epoch            int32  `json:"producerEpoch"`
	CoordinatorEpoch int32  `json:"coordinatorEpoch"`
	LastSequence     int32  `json:"lastSequence"`
	LastTimestamp    int64  `json:"lastTimestamp"`
	Start            int64  `json:"currentTransactionStartOffset"` // -1: no transaction is open
}

// producers asks the leaders of partitions, or one broker, for the producers
// that they remember.
func (r *transactionsRun) producers(parts kadm.TopicsSet) ([]activeProducer, error) {
	ask := kmsg.NewPtrDescribeProducersRequest()
	for _, t := range parts.Sorted() {
		ask.Topics = append(ask.Topics, kmsg.DescribeProducersRequestTopic{Topic: t.Topic, Partitions: t.Partitions})
	}
	var requestor kmsg.Requestor = r.kafka
	if id, ok := r.numbers["broker-id"]; ok {
		requestor = r.kafka.Broker(int(id))
	}
	answer, err := ask.RequestWith(r.Context, requestor)
	if err != nil {
		return nil, err
	}
	all := []activeProducer{}
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			if err := answered(p.ErrorCode, p.ErrorMessage); err != nil {
				return nil, err
			}
			for _, a := range p.ActiveProducers {
				all = append(all, activeProducer{t.Topic, p.Partition, a.ProducerID, a.ProducerEpoch, a.CoordinatorEpoch, a.LastSequence,
					a.LastTimestamp, a.CurrentTxnStartOffset})
			}
		}
	}
	return all, nil
}

// partition is what --topic and --partition name.
func (r *transactionsRun) partition() (topic string, index int32, set kadm.TopicsSet) {
	topic, index = r.Args.Text("topic"), int32(r.numbers["partition"])
	set.Add(topic, index)
	return topic, index, set
}

func (r *transactionsRun) describeProducers() error {
	topic, index, set := r.partition()
	all, err := r.producers(set)
	if err != nil {
		where := "leader"
		if id, ok := r.numbers["broker-id"]; ok {
			where = fmt.Sprint("broker ", id)
		}
		return failed(err, "Failed to describe producers for partition %s-%d on %s", topic, index, where)
	}
	if r.JSON {
		return r.printJSON(map[string]any{"producers": all})
	}
	var rows [][]string
	for _, p := range all {
		rows = append(rows, []string{strconv.FormatInt(p.ID, 10), itoa(p.Epoch), itoa(p.CoordinatorEpoch), itoa(p.LastSequence),
			strconv.FormatInt(p.LastTimestamp, 10), orNone(p.Start)})
	}
	table(r.Out, []string{"ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp", "CurrentTransactionStartOffset"}, rows)
	return nil
}

func (r *transactionsRun) abort() error {
	topic, index, set := r.partition()
	marker := kadm.TxnMarkers{Topics: set}
	start, byStart := r.numbers["start-offset"]
	producer, byProducer := r.numbers["producer-id"]
	switch {
	case byStart:
		all, err := r.producers(set)
		if err != nil {
			return failed(err, "Failed to validate producer state for partition %s-%d", topic, index)
		}
		at := slices.IndexFunc(all, func(p activeProducer) bool { return p.Start == start && start >= 0 })
		if at < 0 {
			return says("Could not find any open transactions starting at offset %d on partition %s-%d", start, topic, index)
		}
		marker.ProducerID, marker.ProducerEpoch, marker.CoordinatorEpoch = all[at].ID, int16(all[at].Epoch), all[at].CoordinatorEpoch
	case byProducer:
		epoch, ok := r.numbers["producer-epoch"]
		if !ok {
			return says("Missing required argument --producer-epoch")
		}
		coordinator, ok := r.numbers["coordinator-epoch"]
		if !ok {
			return says("Missing required argument --coordinator-epoch")
		}
		marker.ProducerID, marker.ProducerEpoch, marker.CoordinatorEpoch = producer, int16(epoch), int32(coordinator)
	default:
		return says("The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)")
	}
	if err := r.confirm(fmt.Sprintf("This aborts the transaction of producer %d in %s-%d: its records there are never seen by who reads what is committed.", marker.ProducerID, topic, index)); err != nil {
		return err
	}
	// A producer whose first transaction hangs has not met a coordinator: no
	// leader epoch is below 0.
	marker.CoordinatorEpoch = max(marker.CoordinatorEpoch, 0)
	answer, err := r.admin.WriteTxnMarkers(r.Context, marker)
	if err == nil {
		err = kerr.UnknownServerError
		answer.EachPartition(func(p kadm.TxnMarkersPartitionResponse) { err = p.Err })
	}
	if err != nil {
		return failed(err, "Failed to abort transaction AbortTransactionSpec(topicPartition=%s-%d, producerId=%d, producerEpoch=%d, coordinatorEpoch=%d)",
			topic, index, marker.ProducerID, marker.ProducerEpoch, marker.CoordinatorEpoch)
	}
	if r.JSON {
		return r.printJSON(map[string]any{"topic": topic, "partition": index, "producerId": marker.ProducerID, "aborted": true})
	}
	return nil
}

func (r *transactionsRun) findHanging() error {
	_, byBroker := r.numbers["broker-id"]
	_, byPartition := r.numbers["partition"]
	switch {
	case !r.Args.Has("topic") && !byBroker:
		return says("The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search")
	case byPartition && !r.Args.Has("topic"):
		return says("The --partition argument requires --topic to be provided")
	}
	parts, err := r.searched()
	if err != nil {
		return err
	}
	open, err := r.producers(parts)
	if err != nil {
		return failed(err, "Failed to describe producers for %d partitions", len(parts.IntoList()))
	}
	longest, ok := r.numbers["max-transaction-timeout"]
	if !ok {
		longest = 15
	}
	now := time.Now().UnixMilli()
	open = slices.DeleteFunc(open, func(p activeProducer) bool {
		return p.Start < 0 || now-p.LastTimestamp <= longest*time.Minute.Milliseconds()
	})
	hanging, err := r.unknownToCoordinators(open)
	if err != nil {
		return err
	}
	if r.JSON {
		return r.printJSON(map[string]any{"hanging": hanging})
	}
	var rows [][]string
	for _, p := range hanging {
		rows = append(rows, []string{p.Topic, itoa(p.Partition), strconv.FormatInt(p.ID, 10), itoa(p.Epoch), itoa(p.CoordinatorEpoch),
			strconv.FormatInt(p.Start, 10), strconv.FormatInt(p.LastTimestamp, 10), strconv.FormatInt((now-p.LastTimestamp)/time.Minute.Milliseconds(), 10)})
	}
	table(r.Out, []string{"Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset", "LastTimestamp", "Duration(min)"}, rows)
	return nil
}

// searched returns the partitions that find-hanging looks at.
func (r *transactionsRun) searched() (set kadm.TopicsSet, err error) {
	if _, ok := r.numbers["partition"]; ok {
		_, _, set = r.partition()
		return set, nil
	}
	var names []string
	if t := r.Args.Text("topic"); t != "" {
		names = append(names, t)
	}
	topics, err := r.admin.ListTopicsWithInternal(r.Context, names...)
	if err == nil && len(names) > 0 {
		err = topics[names[0]].Err
	}
	if err != nil {
		return nil, failed(err, "Failed to describe %d topics", max(len(names), 1))
	}
	id, byBroker := r.numbers["broker-id"]
	for _, t := range topics {
		if len(names) == 0 && isInternal(t.Topic) {
			continue
		}
		for _, p := range t.Partitions {
			if !byBroker || slices.Contains(p.Replicas, int32(id)) {
				set.Add(t.Topic, p.Partition)
			}
		}
	}
	return set, nil
}

// unknownToCoordinators returns the open transactions that will never end: no
// transactional id has the producer, or its transaction has not the partition.
func (r *transactionsRun) unknownToCoordinators(open []activeProducer) ([]activeProducer, error) {
	hanging := []activeProducer{}
	if len(open) == 0 {
		return hanging, nil
	}
	var ids []int64
	for _, p := range open {
		ids = append(ids, p.ID)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	listed, err := r.listed(ids, -1)
	if err != nil {
		return nil, failed(err, "Failed to list transactions for %d producers", len(ids))
	}
	expected := map[int64]kadm.TopicsSet{}
	for _, t := range listed {
		d, known, err := r.described(t.ID)
		if err != nil {
			return nil, failed(err, "Failed to describe %d transactions", len(listed))
		}
		if known {
			expected[t.Producer] = d.Topics
		}
	}
	for _, p := range open {
		if !expected[p.ID].Lookup(p.Topic, p.Partition) {
			hanging = append(hanging, p)
		}
	}
	return hanging, nil
}
