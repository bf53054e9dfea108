package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// leaderElectionCommand is kafka-leader-election
// (org.apache.kafka.tools.LeaderElectionCommand).
func leaderElectionCommand() *Command {
	return &Command{
		Name: "leader-election", Script: "kafka-leader-election", Short: "Elect preferred or unclean leaders",
		Purpose: "This tool attempts to elect a new leader for a set of topic partitions. The type of elections supported are preferred replicas and unclean replicas.",
		Example: []string{"barnabas leader-election --bootstrap-server localhost:9092 --election-type preferred --all-topic-partitions"},
		Options: []Option{
			{Name: "admin.config", Arg: "String: config file", Text: "Configuration properties files to pass to the admin client"},
			{Name: "all-topic-partitions", Text: "Perform election on all of the eligible topic partitions based on the type of election (see the --election-type flag). Not allowed if --topic or --path-to-json-file is specified."},
			{Name: "bootstrap-server", Arg: "String: host:port", Required: true, Text: "A hostname and port for the broker to connect to, in the form host:port. Multiple comma separated URLs can be given."},
			{Name: "election-type", Arg: "[PREFERRED,UNCLEAN]: election type", Required: true, Values: []string{"preferred", "unclean"}, Text: "Type of election to attempt. Possible values are \"preferred\" for preferred leader election or \"unclean\" for unclean leader election. If preferred election is selection, the election is only performed if the current leader is not the preferred leader for the topic partition. If unclean election is selected, the election is only performed if there are no leader for the topic partition."},
			{Name: "partition", Arg: "Integer: partition id", Text: "Partition id for which to perform an election. REQUIRED if --topic is specified."},
			{Name: "path-to-json-file", Arg: "String: Path to JSON file", Text: "The JSON file with the list of partition for which leader elections should be performed. This is an example format.\n{\"partitions\": [{\"topic\": \"foo\", \"partition\": 1}, {\"topic\": \"foobar\", \"partition\": 2}]}\nNot allowed if --all-topic-partitions or --topic flags are specified."},
			{Name: "topic", Arg: "String: topic name", Topic: true, Text: "Name of topic for which to perform an election. Not allowed if --path-to-json-file or --all-topic-partitions is specified."},
			yes,
		},
		Run: runLeaderElection,
	}
}

func runLeaderElection(c *Call) error {
	a := c.Args
	var missing []string
	for _, name := range []string{"bootstrap-server", "election-type"} {
		if !a.Has(name) {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return terse("Missing required option(s): %s", strings.Join(missing, ", "))
	}
	var how kadm.ElectLeadersHow
	switch strings.ToLower(a.Text("election-type")) {
	case "preferred":
		how = kadm.ElectPreferredReplica
	case "unclean":
		how = kadm.ElectLiveReplica
	default:
		return terse("Cannot parse argument '%s' of option election-type", a.Text("election-type"))
	}
	if a.count("topic", "all-topic-partitions", "path-to-json-file") != 1 {
		return terse("One and only one of the following options is required: topic, all-topic-partitions, path-to-json-file")
	}
	partition, ok, err := a.Integer("partition", 32)
	if err != nil {
		return err
	}
	if a.Has("topic") && !ok {
		return terse("Missing required option(s): partition")
	}
	if !a.Has("topic") && ok {
		return terse("Option partition is only allowed if topic is used")
	}
	var set kadm.TopicsSet
	switch {
	case a.Has("topic"):
		set = kadm.TopicsSet{}
		set.Add(a.Text("topic"), int32(partition))
	case a.Has("path-to-json-file"):
		if set, err = readPartitions(a.Text("path-to-json-file")); err != nil {
			return err
		}
	}
	if how == kadm.ElectLiveReplica {
		if err := c.confirm("An unclean election loses the records that only the lost replicas have."); err != nil {
			return err
		}
	}
	a.values["command-config"] = a.values["admin.config"]
	return c.withAdmin(func(admin *kadm.Client, _ *kgo.Client) error { return c.elect(admin, how, set) })
}

// readPartitions reads {"partitions":[{"topic","partition"}]}.
func readPartitions(file string) (kadm.TopicsSet, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, says("Unable to read file %s", file)
	}
	var doc struct {
		Partitions []struct {
			Topic     string `json:"topic"`
			Partition int32  `json:"partition"`
		} `json:"partitions"`
	}
	if json.Unmarshal(data, &doc) != nil || len(doc.Partitions) == 0 {
		return nil, terse("Replica election data is empty")
	}
	set := kadm.TopicsSet{}
	var twice []string
	for _, p := range doc.Partitions {
		if set.Lookup(p.Topic, p.Partition) {
			twice = append(twice, fmt.Sprint(p.Topic, "-", p.Partition))
		}
		set.Add(p.Topic, p.Partition)
	}
	if twice != nil {
		return nil, terse("Replica election data contains duplicate partitions: %s", strings.Join(twice, ","))
	}
	return set, nil
}

func (c *Call) elect(admin *kadm.Client, how kadm.ElectLeadersHow, set kadm.TopicsSet) error {
	results, err := admin.ElectLeaders(c.Context, how, set)
	if err != nil {
		return err
	}
	name := map[kadm.ElectLeadersHow]string{kadm.ElectPreferredReplica: "PREFERRED", kadm.ElectLiveReplica: "UNCLEAN"}[how]
	var done, valid []string
	failed := map[string]error{}
	for _, partitions := range results {
		for _, r := range partitions {
			tp := fmt.Sprint(r.Topic, "-", r.Partition)
			switch {
			case r.Err == nil:
				done = append(done, tp)
			case errors.Is(r.Err, kerr.ElectionNotNeeded):
				valid = append(valid, tp)
			default:
				failed[tp] = withMessage(r.Err, r.ErrMessage)
			}
		}
	}
	slices.Sort(done)
	slices.Sort(valid)
	if c.JSON {
		errs := map[string]string{}
		for tp, err := range failed {
			errs[tp] = text(err)
		}
		if err := c.printJSON(map[string]any{"elected": append([]string{}, done...), "valid": append([]string{}, valid...), "failed": errs}); err != nil {
			return err
		}
	} else {
		if done != nil {
			fmt.Fprintf(c.Out, "Successfully completed leader election (%s) for partitions %s\n", name, strings.Join(done, ", "))
		}
		if valid != nil && set != nil {
			fmt.Fprintf(c.Out, "Valid replica already elected for partitions %s\n", strings.Join(valid, ", "))
		}
		for _, tp := range sortedKeys(failed) {
			fmt.Fprintf(c.Out, "Error completing leader election (%s) for partition: %s: %s\n", name, tp, withClass(failed[tp]))
		}
	}
	if len(failed) > 0 {
		return terse("%d replica(s) could not be elected", len(failed))
	}
	return nil
}
