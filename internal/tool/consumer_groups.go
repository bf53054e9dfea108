package tool

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// consumerGroupsCommand is kafka-consumer-groups
// (org.apache.kafka.tools.consumer.group.ConsumerGroupCommand).
func consumerGroupsCommand() *Command {
	flag := func(name, text string) Option { return Option{Name: name, Text: text} }
	return &Command{
		Name: "consumer-groups", Script: "kafka-consumer-groups", Short: "List, describe, reset and delete consumer groups",
		Purpose: "This tool helps to list all consumer groups, describe a consumer group, delete consumer group info, or reset consumer group offsets.",
		Long:    "--totals adds the lag of each topic and of the whole group.",
		Example: []string{
			"barnabas consumer-groups --bootstrap-server localhost:9092 --describe --group g --totals",
			"barnabas consumer-groups --bootstrap-server localhost:9092 --reset-offsets --group g --topic orders --to-earliest --execute",
		},
		Options: []Option{
			flag("all-groups", "Apply to all consumer groups."),
			flag("all-topics", "Consider all topics assigned to a group in the `reset-offsets` process."),
			bootstrap,
			{Name: "by-duration", Arg: "String: duration", Text: "Reset offsets to offset by duration from current timestamp. Format: 'PnDTnHnMnS'"},
			commandConfig,
			flag("delete", "Pass in groups to delete topic partition offsets and ownership information over the entire consumer group. For instance --group g1 --group g2"),
			flag("delete-offsets", "Delete offsets of consumer group. Supports one consumer group at the time, and multiple topics."),
			flag("describe", "Describe consumer group and list offset lag (number of messages not yet processed) related to given group."),
			flag("dry-run", "Only show results without executing changes on Consumer Groups. Supported operations: reset-offsets."),
			flag("execute", "Execute operation. Supported operations: reset-offsets."),
			flag("export", "Export operation execution to a CSV file. Supported operations: reset-offsets."),
			{Name: "from-file", Arg: "String: path to CSV file", Text: "Reset offsets to values defined in CSV file."},
			{Name: "group", Arg: "String: consumer group", Group: true, Text: "The consumer group we wish to act on."},
			flag("list", "List all consumer groups."),
			flag("members", "Describe members of the group."),
			flag("offsets", "Describe the group and list all topic partitions in the group along with their offset lag. This is the default sub-action of --describe."),
			flag("reset-offsets", "Reset offsets of consumer group. Supports one consumer group at the time, and instances should be inactive. Has 2 execution options: --dry-run (the default) to plan which offsets to reset, and --execute to update the offsets. Additionally, the --export option is used to export the results to a CSV format. You must choose one of the following reset specifications: --to-datetime, --by-duration, --to-earliest, --to-latest, --shift-by, --from-file, --to-current, --to-offset. To define the scope use --all-topics or --topic. One scope must be specified unless you use '--from-file'."),
			{Name: "shift-by", Arg: "Long: number-of-offsets", Text: "Reset offsets shifting current offset by 'n', where 'n' can be positive or negative."},
			{Name: "state", Arg: "String", Optional: true, Text: "When specified with '--describe', includes the state of the group. When specified with '--list', it displays the state of all groups. It can also be used to list groups with specific states."},
			{Name: "timeout", Arg: "Long: timeout (ms)", Default: "5000", Text: "The timeout that can be set for some use cases."},
			flag("to-current", "Reset offsets to current offset."),
			{Name: "to-datetime", Arg: "String: datetime", Text: "Reset offsets to offset from datetime. Format: 'YYYY-MM-DDTHH:mm:SS.sss'"},
			flag("to-earliest", "Reset offsets to earliest offset."),
			flag("to-latest", "Reset offsets to latest offset."),
			{Name: "to-offset", Arg: "Long: offset", Text: "Reset offsets to a specific offset."},
			{Name: "topic", Arg: "String: topic", Topic: true, Text: "The topic whose consumer group information should be deleted or topic whose should be included in the reset offset process. In `reset-offsets` case, partitions can be specified using this format: `topic1:0,1,2`, where 0,1,2 are the partition to be included in the process. Reset-offsets also supports multiple topic inputs."},
			{Name: "totals", Ours: true, Text: "With --describe, add the lag of each topic and of the group."},
			{Name: "type", Arg: "String", Optional: true, Text: "When specified with '--list', it displays the types of all the groups. It can also be used to list groups with specific types."},
			flag("verbose", "Provide additional information, if any, when describing the group."),
			yes,
		},
		Run: runConsumerGroups,
	}
}

var (
	groupActions = []string{"list", "describe", "delete", "reset-offsets", "delete-offsets"}
	resetWays    = []string{"to-offset", "shift-by", "to-datetime", "by-duration", "to-earliest", "to-latest", "to-current", "from-file"}
)

const notExecuted = "WARN: No action will be performed as the --execute option is missing.In a future major release, the default behavior of this command will be to prompt the user before executing the reset rather than doing a dry run. You should add the --dry-run option explicitly if you are scripting this command and want to keep the current default behavior without prompting."

// checkGroups is ConsumerGroupCommandOptions.checkArgs.
func checkGroups(c *Call) error {
	a := c.Args
	if a.count(groupActions...) != 1 {
		return usage("Command must include exactly one action: --list, --describe, --delete, --reset-offsets, --delete-offsets")
	}
	if err := a.needs("bootstrap-server"); err != nil {
		return err
	}
	groups := a.count("group", "all-groups")
	switch {
	case a.Has("describe"):
		if groups == 0 {
			return usage("Option [describe] takes one of these options: [reset-offsets], [describe], [delete], [list]")
		}
		if a.count("members", "offsets", "state") > 1 {
			return usage("Option [describe] takes at most one of these options: [members], [offsets], [state]")
		}
		if a.Text("state") != "" {
			return usage("Option [describe] does not take a value for [state]")
		}
	case a.Has("delete"):
		if groups == 0 {
			return usage("Option [delete] takes one of these options: [all-groups], [group]")
		}
		if a.Has("topic") {
			return usage("The consumer does not support topic-specific offset deletion from a consumer group.")
		}
	case a.Has("delete-offsets"):
		if !a.Has("group") || !a.Has("topic") {
			return usage("Option [delete-offsets] takes the following options: [topic], [group]")
		}
	case a.Has("reset-offsets"):
		if a.Has("dry-run") && a.Has("execute") {
			return usage("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
		}
		if a.count("dry-run", "execute") == 0 {
			fmt.Fprintln(c.Err, notExecuted)
		}
		if groups == 0 {
			return usage("Option [reset-offsets] takes one of these options: [all-groups], [group]")
		}
		for _, way := range resetWays {
			if err := a.not(way, resetWays...); err != nil {
				return err
			}
		}
	}
	if err := a.not("group", "all-groups"); err != nil {
		return err
	}
	if err := a.not("group", "list"); err != nil {
		return err
	}
	return a.not("topic", "list", "describe")
}

func runConsumerGroups(c *Call) error {
	if err := checkGroups(c); err != nil {
		return err
	}
	states, types, err := c.listFilters()
	if err != nil {
		return err
	}
	err = c.withAdmin(func(admin *kadm.Client, _ *kgo.Client) error {
		switch {
		case c.Args.Has("list"):
			return c.listGroups(admin, states, types)
		case c.Args.Has("describe"):
			return c.onCoordinator(func() error { return c.describeGroups(admin) })
		case c.Args.Has("delete"):
			return c.deleteGroups(admin)
		case c.Args.Has("delete-offsets"):
			return c.onCoordinator(func() error { return c.deleteOffsets(admin) })
		}
		return c.onCoordinator(func() error { return c.resetOffsets(admin) })
	})
	var bad *UsageError
	if err == nil || errors.Is(err, ErrReported) || errors.As(err, &bad) || c.JSON {
		return err
	}
	fmt.Fprintf(c.Out, "\nError: Executing consumer group command failed due to %s\n", "java.util.concurrent.ExecutionException: "+withClass(err))
	fmt.Fprintln(c.Err, text(err))
	c.hint(err)
	return nil // as Kafka's script: the exit status is 0
}

// onCoordinator calls f again while the topic of the groups' offsets is being
// made: the first command of a new cluster asks for it. f has written nothing
// when it fails so.
func (c *Call) onCoordinator(f func() error) error {
	for start := time.Now(); ; {
		err := f()
		if !errors.Is(err, kerr.CoordinatorNotAvailable) || time.Since(start) > patience || !pause(c.Context, 100*time.Millisecond) {
			return err
		}
	}
}

var groupStates = []string{"PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling"}

func (c *Call) listFilters() (states, types []string, err error) {
	if !c.Args.Has("list") {
		return nil, nil, nil
	}
	if s := c.Args.Text("state"); s != "" {
		for part := range strings.SplitSeq(s, ",") {
			at := slices.IndexFunc(groupStates, func(g string) bool { return strings.EqualFold(g, strings.TrimSpace(part)) })
			if at < 0 {
				return nil, nil, usage("Invalid state list '%s'. Valid states are: %s", s, strings.Join(groupStates, ", "))
			}
			states = append(states, groupStates[at])
		}
	}
	if s := c.Args.Text("type"); s != "" {
		for part := range strings.SplitSeq(s, ",") {
			switch strings.ToLower(strings.TrimSpace(part)) {
			case "classic":
				types = append(types, "Classic")
			case "consumer":
				types = append(types, "Consumer")
			default:
				return nil, nil, usage("Invalid types list '%s'. Valid types are: Consumer, Classic", s)
			}
		}
	}
	return states, types, nil
}

func (c *Call) listGroups(admin *kadm.Client, states, types []string) error {
	listed, err := admin.ListGroups(c.Context, states...)
	if err != nil && !shardErrors(err) {
		return err
	}
	type group struct {
		Group string `json:"group"`
		State string `json:"state"`
		Type  string `json:"type"`
	}
	groups := []group{}
	width := 25
	for _, g := range listed.Sorted() {
		if g.ProtocolType != "consumer" && g.ProtocolType != "" {
			continue
		}
		kind := "Classic"
		if types != nil && !slices.Contains(types, kind) {
			continue
		}
		groups = append(groups, group{g.Group, g.State, kind})
		width = max(width, len(g.Group))
	}
	if c.JSON {
		return c.printJSON(map[string]any{"groups": groups})
	}
	state, kind := c.Args.Has("state"), c.Args.Has("type")
	row := func(g, t, s string) {
		switch {
		case state && kind:
			fmt.Fprintf(c.Out, "%-*s %-20s %-20s\n", width, g, t, s)
		case state:
			fmt.Fprintf(c.Out, "%-*s %-20s\n", width, g, s)
		case kind:
			fmt.Fprintf(c.Out, "%-*s %-20s\n", width, g, t)
		default:
			fmt.Fprintln(c.Out, g)
		}
	}
	if state || kind {
		row("GROUP", "TYPE", "STATE")
	}
	for _, g := range groups {
		row(g.Group, g.Type, g.State)
	}
	return nil
}

// groupNames are those of --group, or all.
func (c *Call) groupNames(admin *kadm.Client) ([]string, error) {
	if !c.Args.Has("all-groups") {
		return c.Args.All("group"), nil
	}
	listed, err := admin.ListGroups(c.Context)
	if err != nil && !shardErrors(err) {
		return nil, err
	}
	return listed.Groups(), nil
}

func (c *Call) deleteGroups(admin *kadm.Client) error {
	names, err := c.groupNames(admin)
	if err != nil {
		return err
	}
	if err := c.confirm("This deletes " + quoteAll("group", names) + " and all offsets."); err != nil {
		return err
	}
	results, err := admin.DeleteGroups(c.Context, names...)
	if err != nil && !shardErrors(err) {
		return err
	}
	var done []string
	failed := map[string]string{}
	for _, n := range names {
		if r := results[n]; r.Err != nil {
			failed[n] = withClass(r.Err)
		} else {
			done = append(done, "'"+n+"'")
		}
	}
	if c.JSON {
		return c.printJSON(map[string]any{"deleted": done, "failed": failed})
	}
	if len(failed) == 0 {
		fmt.Fprintf(c.Out, "Deletion of requested consumer groups (%s) was successful.\n", strings.Join(done, ", "))
		return nil
	}
	fmt.Fprintln(c.Out, "\nError: Deletion of some consumer groups failed:")
	for _, n := range sortedKeys(failed) {
		fmt.Fprintf(c.Out, "* Group '%s' could not be deleted due to: java.util.concurrent.ExecutionException: %s\n", n, failed[n])
	}
	if done != nil {
		fmt.Fprintf(c.Out, "\nThese consumer groups were deleted successfully: %s\n", strings.Join(done, ", "))
	}
	return nil
}

func (c *Call) deleteOffsets(admin *kadm.Client) error {
	group := c.Args.Text("group")
	set := kadm.TopicsSet{}
	type result struct {
		Topic     string `json:"topic"`
		Partition string `json:"partition"`
		Status    string `json:"status"`
	}
	results := []result{}
	for _, spec := range c.Args.All("topic") {
		topic, parts, err := parseTopicPartitions(spec)
		if err != nil {
			return err
		}
		if parts == nil {
			details, err := admin.ListTopicsWithInternal(c.Context, topic)
			if err != nil {
				return err
			}
			if d := details[topic]; d.Err != nil || len(d.Partitions) == 0 {
				results = append(results, result{topic, "Not Provided", "Error: :" + withClass(kerr.UnknownTopicOrPartition)})
				continue
			}
			parts = details[topic].Partitions.Numbers()
		}
		for _, p := range parts {
			set.Add(topic, p)
		}
	}
	if err := c.confirm("This deletes offsets of group " + group + "."); err != nil {
		return err
	}
	var top error
	if len(set) > 0 {
		done, err := admin.DeleteOffsets(c.Context, group, set)
		if err != nil {
			top = err
		}
		for _, t := range set.Sorted() {
			for _, p := range t.Partitions {
				status := "Successful"
				if err := done[t.Topic][p]; err != nil {
					status = "Error: :" + withClass(err)
				}
				results = append(results, result{t.Topic, itoa(p), status})
			}
		}
	}
	if c.JSON {
		return c.printJSON(map[string]any{"group": group, "offsets": results})
	}
	partial := slices.ContainsFunc(results, func(r result) bool { return r.Status != "Successful" })
	switch {
	case top != nil && errors.Is(top, kerr.NonEmptyGroup):
		return says("%s", withClass(top))
	case top != nil:
		return top
	case len(set) == 0:
		fmt.Fprintf(c.Out, "\nError: '%s' does not exist.\n", group)
	case partial:
		fmt.Fprint(c.Out, "\nError: Encounter some partition level error, see the follow-up details:\n")
	default:
		fmt.Fprintf(c.Out, "Request succeed for deleting offsets with topic %s group %s\n", strings.Join(c.Args.All("topic"), ", "), group)
	}
	fmt.Fprintf(c.Out, "\n%-30s %-15s %-15s", "TOPIC", "PARTITION", "STATUS")
	for _, r := range results {
		fmt.Fprintf(c.Out, "\n%-30s %-15s %-15s", r.Topic, r.Partition, r.Status)
	}
	fmt.Fprintln(c.Out)
	return nil
}

// parseTopicPartitions reads "topic" or "topic:0,1,2".
func parseTopicPartitions(spec string) (topic string, parts []int32, err error) {
	at := strings.LastIndexByte(spec, ':')
	if at < 0 {
		return spec, nil, nil
	}
	for s := range strings.SplitSeq(spec[at+1:], ",") {
		p, err := atoi(s)
		if err != nil {
			return "", nil, usage("Invalid topic arg '%s', expected topic name and partitions", spec)
		}
		parts = append(parts, p)
	}
	return spec[:at], parts, nil
}
