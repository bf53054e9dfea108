package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// transactionsCommand is kafka-transactions
// (org.apache.kafka.tools.TransactionsCommand).
func transactionsCommand() *Command {
	return &Command{
		Name: "transactions", Script: "kafka-transactions", Short: "List, describe and abort transactions",
		Purpose: "This tool is used to analyze the transactional state of producers in the cluster. It can be used to detect and recover from hanging transactions.",
		Long: "One of these follows the options, with options of its own:\n\n" +
			"list: the transactional ids and their states.\n\n" +
			"describe: the state of one transactional id.\n\n" +
			"describe-producers: the producers that a partition remembers.\n\n" +
			"abort: ends a hanging transaction in one partition.\n\n" +
			"find-hanging: open transactions that no coordinator knows of.",
		Example: []string{
			"barnabas transactions --bootstrap-server localhost:9092 list",
			"barnabas transactions --bootstrap-server localhost:9092 find-hanging --topic orders",
			"barnabas transactions --bootstrap-server localhost:9092 abort --topic orders --partition 0 --start-offset 1234",
		},
		Options: []Option{
			{Name: "bootstrap-server", Arg: "host:port", Required: true, Text: "hostname and port for the broker to connect to, in the form `host:port` (multiple comma-separated entries can be given)"},
			{Name: "command-config", Arg: "FILE", Text: "property file containing configs to be passed to admin client"},
			{Name: "duration-filter", Arg: "DURATION_FILTER", Text: "list: duration (in millis) to filter by: if < 0, all transactions will be returned; otherwise, only transactions running longer than this duration will be returned"},
			{Name: "transactional-id", Arg: "TRANSACTIONAL_ID", Text: "describe: transactional id"},
			{Name: "topic", Arg: "TOPIC", Topic: true, Text: "describe-producers, abort, find-hanging: topic name"},
			{Name: "partition", Arg: "PARTITION", Text: "describe-producers, abort, find-hanging: partition number"},
			{Name: "broker-id", Arg: "BROKER_ID", Text: "describe-producers: optional broker id to describe the producer state on a specific replica. find-hanging: broker id to search for hanging transactions"},
			{Name: "start-offset", Arg: "START_OFFSET", Text: "abort: start offset of the transaction to abort, all that brokers on versions 3.0 and above need"},
			{Name: "producer-id", Arg: "PRODUCER_ID", Text: "abort, for brokers on versions older than 3.0: producer id"},
			{Name: "producer-epoch", Arg: "PRODUCER_EPOCH", Text: "abort, for brokers on versions older than 3.0: producer epoch"},
			{Name: "coordinator-epoch", Arg: "COORDINATOR_EPOCH", Text: "abort, for brokers on versions older than 3.0: coordinator epoch"},
			{Name: "max-transaction-timeout", Arg: "MAX_TRANSACTION_TIMEOUT", Default: "15", Text: "find-hanging: maximum transaction timeout in minutes to limit the scope of the search"},
			yes,
		},
		Words: func(_ context.Context, _ *Command, before []string) []string {
			verbs := sortedKeys(transactionVerbs)
			if slices.ContainsFunc(before, func(w string) bool { return slices.Contains(verbs, w) }) {
				return nil
			}
			return verbs
		},
		Run: runTransactions,
	}
}

// transactionVerb is one of the commands after the options: which of them it
// takes, and which it must have.
type transactionVerb struct {
	needs, takes []string
	run          func(*transactionsRun) error
}

var transactionVerbs = map[string]transactionVerb{
	"list":               {takes: []string{"duration-filter"}, run: (*transactionsRun).list},
	"describe":           {needs: []string{"transactional-id"}, run: (*transactionsRun).describe},
	"describe-producers": {needs: []string{"topic", "partition"}, takes: []string{"broker-id"}, run: (*transactionsRun).describeProducers},
	"abort": {needs: []string{"topic", "partition"}, takes: []string{"start-offset", "producer-id", "producer-epoch", "coordinator-epoch"},
		run: (*transactionsRun).abort},
	"find-hanging": {takes: []string{"broker-id", "max-transaction-timeout", "topic", "partition"}, run: (*transactionsRun).findHanging},
}

// transactionsRun is one run of a verb.
type transactionsRun struct {
	*Call
	admin *kadm.Client
	kafka *kgo.Client
	// numbers are the options that are numbers, if they were given.
	numbers map[string]int64
}

func runTransactions(c *Call) error {
	if err := c.Args.argument("bootstrap-server"); err != nil {
		return err
	}
	if len(c.Args.Rest) == 0 {
		return terse("too few arguments")
	}
	name := c.Args.Rest[0]
	verb, ok := transactionVerbs[name]
	if !ok {
		return terse("argument COMMAND: invalid choice: '%s' (choose from 'list', 'describe', 'describe-producers', 'abort', 'find-hanging')", name)
	}
	if len(c.Args.Rest) > 1 {
		return terse("unrecognized arguments: '%s'", c.Args.Rest[1])
	}
	for _, o := range verb.needs {
		if err := c.Args.argument(o); err != nil {
			return err
		}
	}
	for _, o := range c.command.Options[2:] {
		if c.Args.Has(o.Name) && !o.Ours && !slices.Contains(verb.needs, o.Name) && !slices.Contains(verb.takes, o.Name) {
			return terse("unrecognized arguments: '--%s'", o.Name)
		}
	}
	run := &transactionsRun{Call: c, numbers: map[string]int64{}}
	for name, bits := range map[string]int{"duration-filter": 64, "partition": 32, "broker-id": 32, "start-offset": 64, "producer-id": 64,
		"producer-epoch": 16, "coordinator-epoch": 32, "max-transaction-timeout": 32} {
		n, ok, err := c.Args.Integer(name, bits)
		if err != nil {
			return err
		}
		if ok {
			run.numbers[name] = n
		}
	}
	return c.withAdmin(func(admin *kadm.Client, k *kgo.Client) error {
		run.admin, run.kafka = admin, k
		return verb.run(run)
	})
}

// argument tells that an option is missing as argparse4j does.
func (a *Args) argument(name string) error {
	if !a.Has(name) {
		return terse("argument --%s is required", name)
	}
	return nil
}

// failed is an error in the words of Kafka's script.
func failed(err error, format string, args ...any) error {
	return says("%s: %s. Enable debug logging for additional detail.", fmt.Sprintf(format, args...), text(err))
}

// table writes rows below their headers: columns as wide as their widest cell,
// a tab after each.
func table(w io.Writer, headers []string, rows [][]string) {
	widths := make([]int, len(headers))
	all := append([][]string{headers}, rows...)
	for _, row := range all {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	for _, row := range all {
		var b strings.Builder
		for i, cell := range row {
			fmt.Fprintf(&b, "%-*s\t", widths[i], cell)
		}
		fmt.Fprintln(w, b.String())
	}
}

func orNone(n int64) string {
	if n < 0 {
		return "None"
	}
	return strconv.FormatInt(n, 10)
}

type listedTransaction struct {
	ID          string `json:"transactionalId"`
	Coordinator int32  `json:"coordinator"`
	Producer    int64  `json:"producerId"`
	State       string `json:"transactionState"`
}

// listed asks every broker for the transactional ids that it coordinates.
func (r *transactionsRun) listed(producers []int64, longer int64) ([]listedTransaction, error) {
	ask := kmsg.NewPtrListTransactionsRequest()
	ask.ProducerIDFilters = producers
	ask.DurationFilterMillis = longer
	all := []listedTransaction{}
	for _, shard := range r.kafka.RequestSharded(r.Context, ask) {
		if shard.Err != nil {
			return nil, shard.Err
		}
		answer := shard.Resp.(*kmsg.ListTransactionsResponse)
		if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
			return nil, err
		}
		for _, t := range answer.TransactionStates {
			all = append(all, listedTransaction{t.TransactionalID, shard.Meta.NodeID, t.ProducerID, t.TransactionState})
		}
	}
	slices.SortStableFunc(all, func(a, b listedTransaction) int { return int(a.Coordinator) - int(b.Coordinator) })
	return all, nil
}

func (r *transactionsRun) list() error {
	longer, ok := r.numbers["duration-filter"]
	if !ok {
		longer = -1
	}
	all, err := r.listed(nil, longer)
	if err != nil {
		return failed(err, "Failed to list transactions")
	}
	if r.JSON {
		return r.printJSON(map[string]any{"transactions": all})
	}
	var rows [][]string
	for _, t := range all {
		rows = append(rows, []string{t.ID, itoa(t.Coordinator), strconv.FormatInt(t.Producer, 10), t.State})
	}
	table(r.Out, []string{"TransactionalId", "Coordinator", "ProducerId", "TransactionState"}, rows)
	return nil
}

// described asks for one transactional id; known is false if there is none.
func (r *transactionsRun) described(id string) (t kadm.DescribedTransaction, known bool, err error) {
	all, err := r.admin.DescribeTransactions(r.Context, id)
	if err != nil {
		return t, false, err
	}
	t = all[id]
	if errors.Is(t.Err, kerr.TransactionalIDNotFound) {
		return t, false, nil
	}
	return t, t.Err == nil, t.Err
}

func (r *transactionsRun) describe() error {
	id := r.Args.Text("transactional-id")
	t, known, err := r.described(id)
	if err == nil && !known {
		err = says("DescribeTransactions request for transactionalId `%s` failed because the ID could not be found", id)
	}
	if err != nil {
		return failed(err, "Failed to describe transaction state of transactional-id `%s`", id)
	}
	duration := int64(-1)
	if t.StartTimestamp >= 0 {
		duration = time.Now().UnixMilli() - t.StartTimestamp
	}
	var parts []string
	for _, topic := range t.Topics.Sorted() {
		for _, p := range topic.Partitions {
			parts = append(parts, fmt.Sprintf("%s-%d", topic.Topic, p))
		}
	}
	if r.JSON {
		return r.printJSON(map[string]any{
			"coordinatorId": t.Coordinator, "transactionalId": id, "producerId": t.ProducerID, "producerEpoch": t.ProducerEpoch,
			"transactionState": t.State, "transactionTimeoutMs": t.TimeoutMillis, "currentTransactionStartTimeMs": t.StartTimestamp,
			"transactionDurationMs": duration, "topicPartitions": append([]string{}, parts...),
		})
	}
	table(r.Out, []string{"CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState", "TransactionTimeoutMs",
		"CurrentTransactionStartTimeMs", "TransactionDurationMs", "TopicPartitions"}, [][]string{{
		itoa(t.Coordinator), id, strconv.FormatInt(t.ProducerID, 10), strconv.Itoa(int(t.ProducerEpoch)), t.State,
		itoa(t.TimeoutMillis), orNone(t.StartTimestamp), orNone(duration), strings.Join(parts, ","),
	}})
	return nil
}
