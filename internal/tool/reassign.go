package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"barnabas/internal/controller"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// reassignPartitionsCommand is kafka-reassign-partitions
// (org.apache.kafka.tools.reassign.ReassignPartitionsCommand).
func reassignPartitionsCommand() *Command {
	return &Command{
		Name: "reassign-partitions", Script: "kafka-reassign-partitions", Short: "Move partitions to other brokers",
		Purpose: "This tool helps to move topic partitions between replicas.",
		Long:    "--wait shows how far the moves are and returns when they are done; then it removes the throttles.",
		Example: []string{
			"barnabas reassign-partitions --bootstrap-server localhost:9092 --generate --topics-to-move-json-file topics.json --broker-list 1,2,3",
			"barnabas reassign-partitions --bootstrap-server localhost:9092 --execute --reassignment-json-file plan.json --throttle 50000000 --wait",
		},
		Options: []Option{
			{Name: "additional", Text: "Execute this reassignment in addition to any other ongoing ones. This option can also be used to change the throttle of an ongoing reassignment."},
			{Name: "bootstrap-server", Arg: "String: Server(s) to use for bootstrapping", Required: true, Text: "the server(s) to use for bootstrapping."},
			{Name: "broker-list", Arg: "String: brokerlist", Text: "The list of brokers to which the partitions need to be reassigned in the form \"0,1,2\". This is required if --topics-to-move-json-file is used to generate reassignment configuration"},
			{Name: "cancel", Text: "Cancel an active reassignment."},
			commandConfig,
			{Name: "disable-rack-aware", Text: "Disable rack aware replica assignment"},
			{Name: "execute", Text: "Kick off the reassignment as specified by the --reassignment-json-file option."},
			{Name: "generate", Text: "Generate a candidate partition reassignment configuration. Note that this only generates a candidate assignment, it does not execute it."},
			{Name: "list", Text: "List all active partition reassignments."},
			{Name: "preserve-throttles", Text: "Do not modify broker or topic throttles."},
			{Name: "reassignment-json-file", Arg: "String: manual assignment json file path", Text: "The JSON file with the partition reassignment configuration. The format to use is -\n{\"partitions\": [{\"topic\": \"foo\", \"partition\": 1, \"replicas\": [1,2,3], \"log_dirs\": [\"dir1\",\"dir2\",\"dir3\"] }], \"version\":1}\nNote that \"log_dirs\" is optional. When it is specified, its length must equal the length of the replicas list. The value in this list can be either \"any\" or the absolution path of the log directory on the broker."},
			{Name: "replica-alter-log-dirs-throttle", Arg: "Long: replicaAlterLogDirsThrottle", Default: "-1", Text: "The movement of replicas between log directories on the same broker will be throttled to this value (bytes/sec)."},
			{Name: "throttle", Arg: "Long: throttle", Default: "-1", Text: "The movement of partitions between brokers will be throttled to this value (bytes/sec). This option can be included with --execute when a reassignment is started, and it can be altered by resubmitting the current reassignment along with the --additional flag. The throttle rate should be at least 1 KB/s."},
			{Name: "timeout", Arg: "Long: timeout", Default: "10000", Text: "The maximum time in ms to wait for log directory replica assignment to begin."},
			{Name: "topics-to-move-json-file", Arg: "String: topics to reassign json file path", Text: "Generate a reassignment configuration to move the partitions of the specified topics to the list of brokers specified by the --broker-list option. The format to use is -\n{\"topics\": [{\"topic\": \"foo\"},{\"topic\": \"foo1\"}], \"version\":1}"},
			{Name: "verify", Text: "Verify if the reassignment completed as specified by the --reassignment-json-file option. If there is a throttle engaged for the replicas specified, and the rebalance has completed, the throttle will be removed"},
			{Name: "wait", Ours: true, Text: "After --execute, wait until all is moved, and show how far it is."},
		},
		Run: runReassign,
	}
}

var reassignActions = []string{"generate", "execute", "verify", "cancel", "list"}

// reassignRules are the options that each action needs and may have
// (ReassignPartitionsCommand.validateAndParseArgs).
var reassignRules = map[string]struct{ needs, may []string }{
	"generate": {[]string{"broker-list", "topics-to-move-json-file"}, []string{"disable-rack-aware"}},
	"execute":  {[]string{"reassignment-json-file"}, []string{"additional", "throttle", "replica-alter-log-dirs-throttle", "timeout", "wait"}},
	"verify":   {[]string{"reassignment-json-file"}, []string{"preserve-throttles"}},
	"cancel":   {[]string{"reassignment-json-file"}, []string{"preserve-throttles", "timeout"}},
	"list":     {},
}

func checkReassign(a *Args) (string, error) {
	if a.count(reassignActions...) != 1 {
		return "", usage("Command must include exactly one action: --generate, --execute, --verify, --cancel, --list")
	}
	action := ""
	for _, n := range reassignActions {
		if a.Has(n) {
			action = n
		}
	}
	if !a.Has("bootstrap-server") {
		return "", usage("Please specify --bootstrap-server")
	}
	rules := reassignRules[action]
	if err := a.needs(rules.needs...); err != nil {
		return "", err
	}
	always := []string{action, "bootstrap-server", "command-config", "output"}
	for _, o := range a.options {
		if a.Has(o.Name) && !slices.Contains(always, o.Name) && !slices.Contains(rules.needs, o.Name) && !slices.Contains(rules.may, o.Name) {
			return "", usage("Option \"[%s]\" can't be used with action \"[%s]\"", o.Name, action)
		}
	}
	return action, nil
}

func runReassign(c *Call) error {
	action, err := checkReassign(c.Args)
	if err != nil {
		return err
	}
	err = c.withAdmin(func(admin *kadm.Client, k *kgo.Client) error {
		switch action {
		case "generate":
			return c.generateMoves(admin)
		case "execute":
			return c.executeMoves(admin, k)
		case "verify":
			return c.verifyMoves(admin, k)
		case "cancel":
			return c.cancelMoves(admin, k)
		}
		return c.listMoves(k)
	})
	if err == nil || errors.Is(err, ErrReported) || c.JSON {
		return err
	}
	var code *brokerError
	var bare *bareError
	if errors.As(err, &bare) {
		fmt.Fprintln(c.Out, bare.said)
	} else if errors.As(err, &code) {
		fmt.Fprintln(c.Out, "Error: "+withClass(err))
	} else {
		fmt.Fprintln(c.Out, "Error: "+text(err))
	}
	c.hint(err)
	return ErrReported
}

// bareError is told without "Error: " before it (TerseException).
type bareError struct{ sentence }

func bare(format string, args ...any) error {
	return &bareError{sentence{said: fmt.Sprintf(format, args...)}}
}

// move is one partition of a reassignment.
type move struct {
	Topic     string   `json:"topic"`
	Partition int32    `json:"partition"`
	Replicas  []int32  `json:"replicas"`
	LogDirs   []string `json:"log_dirs,omitempty"`
}

func (m move) String() string { return fmt.Sprintf("%s-%d", m.Topic, m.Partition) }

type plan struct {
	Version    int    `json:"version"`
	Partitions []move `json:"partitions"`
}

// planText writes a plan as Kafka does, which names no log directory.
func planText(moves []move) string {
	for i := range moves {
		moves[i].LogDirs = slices.Repeat([]string{"any"}, len(moves[i].Replicas))
	}
	data, err := json.Marshal(plan{1, append([]move{}, moves...)})
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func sortMoves(moves []move) {
	slices.SortFunc(moves, func(a, b move) int {
		if n := strings.Compare(a.Topic, b.Topic); n != 0 {
			return n
		}
		return int(a.Partition) - int(b.Partition)
	})
}

// readPlan reads and checks --reassignment-json-file.
func readPlan(file string) ([]move, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, says("Unable to read file %s", file)
	}
	var p plan
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, says("%s is not JSON: %s", file, err)
	}
	if p.Version != 0 && p.Version != 1 {
		return nil, says("Not supported version field value %d", p.Version)
	}
	if len(p.Partitions) == 0 {
		return nil, says("Partition reassignment list cannot be empty")
	}
	seen := map[string]bool{}
	for _, m := range p.Partitions {
		if len(m.Replicas) == 0 {
			return nil, says("Partition replica list cannot be empty")
		}
		if seen[m.String()] {
			return nil, says("Partition reassignment contains duplicate topic partitions: %s", m)
		}
		seen[m.String()] = true
		if len(m.LogDirs) != 0 && len(m.LogDirs) != len(m.Replicas) {
			return nil, says("Size of replicas list [%s] is different from size of log dirs list [%s] for partition %s", joinInts(m.Replicas, ", "), strings.Join(m.LogDirs, ", "), m)
		}
		for i, r := range m.Replicas {
			if slices.Contains(m.Replicas[:i], r) {
				return nil, says("Partition replica lists may not contain duplicate entries: %s contains multiple entries for %d", m, r)
			}
		}
	}
	return p.Partitions, nil
}

func (c *Call) generateMoves(admin *kadm.Client) error {
	var brokers []int32
	for s := range strings.SplitSeq(c.Args.Text("broker-list"), ",") {
		id, err := atoi(strings.TrimSpace(s))
		if err != nil {
			return says("For input string: \"%s\"", s)
		}
		if slices.Contains(brokers, id) {
			return says("Broker list contains duplicate entries: [%d]", id)
		}
		brokers = append(brokers, id)
	}
	file := c.Args.Text("topics-to-move-json-file")
	data, err := os.ReadFile(file)
	if err != nil {
		return says("Unable to read file %s", file)
	}
	var doc struct {
		Topics []struct {
			Topic string `json:"topic"`
		} `json:"topics"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return says("%s is not JSON: %s", file, err)
	}
	var topics []string
	for _, t := range doc.Topics {
		if slices.Contains(topics, t.Topic) {
			return says("List of topics to reassign contains duplicate entries: [%s]", t.Topic)
		}
		topics = append(topics, t.Topic)
	}
	meta, err := admin.Metadata(c.Context, topics...)
	if err != nil {
		return err
	}
	current, proposed, err := c.proposeMoves(meta, topics, brokers)
	if err != nil {
		return err
	}
	sortMoves(current)
	sortMoves(proposed)
	if c.JSON {
		return c.printJSON(map[string]any{"current": plan{1, current}, "proposed": plan{1, proposed}})
	}
	fmt.Fprintf(c.Out, "Current partition replica assignment\n%s\n\nProposed partition reassignment configuration\n%s\n", planText(current), planText(proposed))
	return nil
}

// proposeMoves spreads each topic over the brokers as a new topic would be.
func (c *Call) proposeMoves(meta kadm.Metadata, topics []string, brokers []int32) (current, proposed []move, err error) {
	var live []controller.BrokerRack
	racks := 0
	for _, b := range meta.Brokers {
		if !slices.Contains(brokers, b.NodeID) {
			continue
		}
		one := controller.BrokerRack{ID: b.NodeID}
		if b.Rack != nil && !c.Args.Has("disable-rack-aware") {
			one.Rack = *b.Rack
			racks++
		}
		live = append(live, one)
	}
	if racks > 0 && racks < len(live) {
		return nil, nil, says("Not all brokers have rack information. Add --disable-rack-aware in command line to make replica assignment without rack information.")
	}
	for _, name := range topics {
		t := meta.Topics[name]
		if t.Err != nil || len(t.Partitions) == 0 {
			return nil, nil, says("org.apache.kafka.common.errors.UnknownTopicOrPartitionException: Topic %s not found.", name)
		}
		parts := t.Partitions.Sorted()
		lists, err := controller.AssignReplicas(live, controller.Placement{
			Partitions: len(parts), ReplicationFactor: len(parts[0].Replicas), Start: rand.IntN(max(len(live), 1)), Shift: rand.IntN(max(len(live), 1)),
		})
		if err != nil {
			return nil, nil, err
		}
		for i, p := range parts {
			current = append(current, move{Topic: name, Partition: p.Partition, Replicas: p.Replicas})
			proposed = append(proposed, move{Topic: name, Partition: p.Partition, Replicas: lists[i]})
		}
	}
	return current, proposed, nil
}
