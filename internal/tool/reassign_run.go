package tool

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The configs that throttle moves.
var (
	brokerThrottles = []string{"leader.replication.throttled.rate", "follower.replication.throttled.rate", "replica.alter.log.dirs.io.max.bytes.per.second"}
	topicThrottles  = []string{"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"}
)

// active returns the reassignments that go on, of the partitions of moves or,
// with none, of all. (kadm's call can't ask for all.)
func (c *Call) active(k *kgo.Client, moves []move) (going []kadm.ListPartitionReassignmentsResponse, err error) {
	req := kmsg.NewPtrListPartitionReassignmentsRequest()
	req.TimeoutMillis = int32(patience.Milliseconds())
	byTopic := map[string][]int32{}
	for _, m := range moves {
		byTopic[m.Topic] = append(byTopic[m.Topic], m.Partition)
	}
	for _, topic := range sortedKeys(byTopic) {
		t := kmsg.NewListPartitionReassignmentsRequestTopic()
		t.Topic, t.Partitions = topic, byTopic[topic]
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(c.Context, k)
	if err == nil {
		err = answered(resp.ErrorCode, resp.ErrorMessage)
	}
	if err != nil {
		return nil, err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			going = append(going, kadm.ListPartitionReassignmentsResponse{Topic: t.Topic, Partition: p.Partition,
				Replicas: p.Replicas, AddingReplicas: p.AddingReplicas, RemovingReplicas: p.RemovingReplicas})
		}
	}
	slices.SortFunc(going, func(a, b kadm.ListPartitionReassignmentsResponse) int {
		return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return going, nil
}

func (c *Call) listMoves(k *kgo.Client) error {
	found, err := c.active(k, nil)
	if err != nil {
		return err
	}
	if c.JSON {
		list := []map[string]any{}
		for _, r := range found {
			list = append(list, map[string]any{"topic": r.Topic, "partition": r.Partition, "replicas": r.Replicas, "adding": r.AddingReplicas, "removing": r.RemovingReplicas})
		}
		return c.printJSON(map[string]any{"reassignments": list})
	}
	if len(found) == 0 {
		fmt.Fprintln(c.Out, "No partition reassignments found.")
		return nil
	}
	fmt.Fprintln(c.Out, "Current partition reassignments:")
	for _, r := range found {
		fmt.Fprintf(c.Out, "%s-%d: replicas: %s.", r.Topic, r.Partition, joinInts(r.Replicas, ","))
		if len(r.AddingReplicas) > 0 {
			fmt.Fprintf(c.Out, " adding: %s.", joinInts(r.AddingReplicas, ","))
		}
		if len(r.RemovingReplicas) > 0 {
			fmt.Fprintf(c.Out, " removing: %s.", joinInts(r.RemovingReplicas, ","))
		}
		fmt.Fprintln(c.Out)
	}
	return nil
}

// checkMoves returns where the partitions are now, and the ids of the brokers.
func (c *Call) checkMoves(admin *kadm.Client, moves []move) (current []move, brokers []int32, err error) {
	var topics []string
	for _, m := range moves {
		topics = append(topics, m.Topic)
	}
	slices.Sort(topics)
	meta, err := admin.Metadata(c.Context, slices.Compact(topics)...)
	if err != nil {
		return nil, nil, err
	}
	brokers = meta.Brokers.NodeIDs()
	for _, m := range moves {
		p, ok := meta.Topics[m.Topic].Partitions[m.Partition]
		if ok {
			current = append(current, move{Topic: m.Topic, Partition: m.Partition, Replicas: p.Replicas})
		}
	}
	return current, brokers, nil
}

func (c *Call) executeMoves(admin *kadm.Client, k *kgo.Client) error {
	moves, err := readPlan(c.Args.Text("reassignment-json-file"))
	if err != nil {
		return err
	}
	current, brokers, err := c.checkMoves(admin, moves)
	if err != nil {
		return err
	}
	going, err := c.active(k, nil)
	if err != nil {
		return err
	}
	if len(going) > 0 && !c.Args.Has("additional") {
		return bare("Cannot execute because there is an existing partition assignment.  Use --additional to override this and create a new partition assignment in addition to the existing one. The --additional flag can also be used to change the throttle by resubmitting the current reassignment.")
	}
	for _, m := range moves {
		for _, r := range m.Replicas {
			if !slices.Contains(brokers, r) {
				return says("Unknown broker id %d", r)
			}
		}
	}
	found := map[string]bool{}
	for _, m := range current {
		found[m.Topic] = true
	}
	for _, m := range moves {
		if !found[m.Topic] {
			return says("org.apache.kafka.common.errors.UnknownTopicOrPartitionException: Topic %s not found.", m.Topic)
		}
	}
	sortMoves(current)
	if !c.JSON {
		fmt.Fprintf(c.Out, "Current partition replica assignment\n\n%s\n\nSave this to use as the --reassignment-json-file option during rollback\n", planText(current))
	}
	if err := c.throttle(admin, moves, current, going); err != nil {
		return err
	}
	if err := c.startMoves(admin, moves); err != nil {
		return err
	}
	if c.Args.Has("wait") {
		return c.awaitMoves(admin, k, moves)
	}
	return nil
}

func (c *Call) startMoves(admin *kadm.Client, moves []move) error {
	var req kadm.AlterPartitionAssignmentsReq
	for _, m := range moves {
		req.Assign(m.Topic, m.Partition, m.Replicas)
	}
	done, err := admin.AlterPartitionAssignments(c.Context, req)
	if err != nil {
		return err
	}
	var names, failed []string
	for _, r := range done.Sorted() {
		if r.Err != nil {
			failed = append(failed, fmt.Sprintf("%s-%d: %s", r.Topic, r.Partition, text(withMessage(r.Err, r.ErrMessage))))
		} else {
			names = append(names, fmt.Sprintf("%s-%d", r.Topic, r.Partition))
		}
	}
	if failed != nil {
		return bare("Error reassigning partition(s):\n%s", strings.Join(failed, "\n"))
	}
	if !c.JSON {
		fmt.Fprintf(c.Out, "Successfully started partition reassignment%s for %s\n", map[bool]string{true: "s"}[len(names) > 1], strings.Join(names, ","))
	}
	err = c.moveDirs(admin, dirMoves(moves))
	if err == nil && c.JSON && !c.Args.Has("wait") { // else the document is how it ends
		err = c.printJSON(map[string]any{"started": names})
	}
	return err
}

// throttle limits the moves, and with them those that go on: replicas that send,
// and those that receive.
func (c *Call) throttle(admin *kadm.Client, moves, current []move, going []kadm.ListPartitionReassignmentsResponse) error {
	rate, _, err := c.Args.Integer("throttle", 64)
	if err != nil {
		return err
	}
	dirs, _, err := c.Args.Integer("replica-alter-log-dirs-throttle", 64)
	if err != nil || rate < 0 && dirs < 0 {
		return err
	}
	involved := map[int32]bool{}
	leaders, followers := map[string][]string{}, map[string][]string{}
	before := map[string][]int32{}
	for _, m := range current {
		before[m.String()] = m.Replicas
	}
	planned := map[string]bool{}
	for _, m := range moves {
		planned[m.String()] = true
	}
	all := slices.Clone(moves)
	for _, r := range going { // what it sets replaces their throttled replicas
		m := move{Topic: r.Topic, Partition: r.Partition, Replicas: r.AddingReplicas}
		before[m.String()] = slices.DeleteFunc(r.Replicas, func(id int32) bool { return slices.Contains(r.AddingReplicas, id) })
		if !planned[m.String()] {
			all = append(all, m)
		}
	}
	for _, m := range all {
		for _, r := range before[m.String()] {
			involved[r] = true
			leaders[m.Topic] = append(leaders[m.Topic], fmt.Sprintf("%d:%d", m.Partition, r))
		}
		for _, r := range m.Replicas {
			involved[r] = true
			if !slices.Contains(before[m.String()], r) {
				followers[m.Topic] = append(followers[m.Topic], fmt.Sprintf("%d:%d", m.Partition, r))
			}
		}
	}
	for _, lists := range []map[string][]string{leaders, followers} {
		for topic := range lists { // as in a TreeSet of Java
			slices.Sort(lists[topic])
		}
	}
	if rate >= 0 {
		for _, topic := range sortedKeys(leaders) {
			configs := []kadm.AlterConfig{
				{Op: kadm.SetConfig, Name: topicThrottles[0], Value: kadm.StringPtr(strings.Join(leaders[topic], ","))},
				{Op: kadm.SetConfig, Name: topicThrottles[1], Value: kadm.StringPtr(strings.Join(followers[topic], ","))},
			}
			if err := altered(admin.AlterTopicConfigs(c.Context, configs, topic)); err != nil {
				return err
			}
		}
	}
	copying := map[int32]bool{}
	for _, d := range dirMoves(moves) {
		copying[d.broker] = true
	}
	err = c.setRate(admin, involved, rate, brokerThrottles[:2])
	if err == nil {
		err = c.setRate(admin, copying, dirs, brokerThrottles[2:])
	}
	if err != nil || c.JSON {
		return err
	}
	fmt.Fprintln(c.Out, "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is removed.")
	if rate >= 0 {
		fmt.Fprintf(c.Out, "The inter-broker throttle limit was set to %d B/s\n", rate)
	}
	if dirs >= 0 {
		fmt.Fprintf(c.Out, "The replica-alter-dir throttle limit was set to %d B/s\n", dirs)
	}
	return nil
}

// setRate sets a throttle of brokers, unless it is negative.
func (c *Call) setRate(admin *kadm.Client, brokers map[int32]bool, rate int64, keys []string) error {
	if rate < 0 || len(brokers) == 0 { // of no brokers it would be that of all
		return nil
	}
	var changes []kadm.AlterConfig
	for _, k := range keys {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: k, Value: kadm.StringPtr(strconv.FormatInt(rate, 10))})
	}
	return altered(admin.AlterBrokerConfigs(c.Context, changes, slices.Sorted(maps.Keys(brokers))...))
}

func altered(done kadm.AlterConfigsResponses, err error) error {
	if err != nil {
		return err
	}
	for _, r := range done {
		if r.Err != nil {
			return withMessage(r.Err, r.ErrMessage)
		}
	}
	return nil
}

// clearThrottles removes what throttle set, on all brokers and the topics of
// moves.
func (c *Call) clearThrottles(admin *kadm.Client, moves []move, brokers []int32) error {
	if !c.JSON {
		fmt.Fprintf(c.Out, "Clearing broker-level throttles on broker%s %s\n", map[bool]string{true: "s"}[len(brokers) > 1], joinInts(brokers, ","))
	}
	drop := func(keys []string) (list []kadm.AlterConfig) {
		for _, k := range keys {
			list = append(list, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: k})
		}
		return list
	}
	if err := altered(admin.AlterBrokerConfigs(c.Context, drop(brokerThrottles), brokers...)); err != nil {
		return err
	}
	topics := map[string]bool{}
	for _, m := range moves {
		topics[m.Topic] = true
	}
	names := sortedKeys(topics)
	if !c.JSON {
		fmt.Fprintf(c.Out, "Clearing topic-level throttles on topic%s %s\n", map[bool]string{true: "s"}[len(names) > 1], strings.Join(names, ","))
	}
	return altered(admin.AlterTopicConfigs(c.Context, drop(topicThrottles), names...))
}

func (c *Call) verifyMoves(admin *kadm.Client, k *kgo.Client) error {
	moves, err := readPlan(c.Args.Text("reassignment-json-file"))
	if err != nil {
		return err
	}
	_, err = c.reportMoves(admin, k, moves)
	return err
}

// reportMoves tells how each move stands, removes the throttles if no move goes
// on, of another plan neither, and returns how many partitions are somewhere else
// than they should be.
func (c *Call) reportMoves(admin *kadm.Client, k *kgo.Client, moves []move) (elsewhere int, err error) {
	going, err := c.active(k, nil)
	if err != nil {
		return 0, err
	}
	moving := map[string]bool{}
	for _, r := range going {
		moving[fmt.Sprintf("%s-%d", r.Topic, r.Partition)] = true
	}
	current, brokers, err := c.checkMoves(admin, moves)
	if err != nil {
		return 0, err
	}
	now := map[string][]int32{}
	for _, m := range current {
		now[m.String()] = m.Replicas
	}
	sortMoves(moves)
	states := map[string]string{}
	if !c.JSON {
		fmt.Fprintln(c.Out, "Status of partition reassignment:")
	}
	for _, m := range moves {
		var line, state string
		switch {
		case moving[m.String()]:
			state, line = "moving", fmt.Sprintf("Reassignment of partition %s is still in progress.", m)
		case slices.Equal(now[m.String()], m.Replicas):
			state, line = "done", fmt.Sprintf("Reassignment of partition %s is completed.", m)
		default:
			elsewhere++
			state, line = "different", fmt.Sprintf("There is no active reassignment of partition %s, but replica set is %s rather than %s.", m, joinInts(now[m.String()], ","), joinInts(m.Replicas, ","))
		}
		states[m.String()] = state
		if !c.JSON {
			fmt.Fprintln(c.Out, line)
		}
	}
	over, aside, err := c.reportDirs(admin, moves, states)
	elsewhere += aside
	if err == nil && over && len(going) == 0 && !c.Args.Has("preserve-throttles") {
		err = c.clearThrottles(admin, moves, brokers)
	}
	return elsewhere, err
}

// reportDirs tells how the moves to log directories stand, in the document with
// those of the partitions, whether all are over, and how many partitions that are
// on the right brokers are in another one there.
func (c *Call) reportDirs(admin *kadm.Client, moves []move, partitions map[string]string) (over bool, elsewhere int, err error) {
	found, err := c.dirStates(admin, dirMoves(moves))
	if err != nil {
		return false, 0, err
	}
	over = true
	states, aside := map[string]string{}, map[string]bool{}
	var lines []string
	for _, s := range found {
		states[s.String()] = s.state
		lines = append(lines, s.line)
		over = over && s.state != dirMoving && s.state != dirMissing
		if s.state == dirDifferent && partitions[s.move.String()] == "done" {
			aside[s.move.String()] = true
		}
	}
	if !c.JSON {
		fmt.Fprintln(c.Out, strings.Join(lines, "\n"))
		return over, len(aside), nil
	}
	document := map[string]any{"partitions": partitions}
	if len(states) > 0 {
		document["logDirs"] = states
	}
	return over, len(aside), c.printJSON(document)
}

func (c *Call) cancelMoves(admin *kadm.Client, k *kgo.Client) error {
	moves, err := readPlan(c.Args.Text("reassignment-json-file"))
	if err != nil {
		return err
	}
	going, err := c.active(k, moves)
	if err != nil {
		return err
	}
	var names []string
	if len(going) > 0 {
		var req kadm.AlterPartitionAssignmentsReq
		for _, r := range going {
			req.CancelAssign(r.Topic, r.Partition)
			names = append(names, fmt.Sprintf("%s-%d", r.Topic, r.Partition))
		}
		done, err := admin.AlterPartitionAssignments(c.Context, req)
		if err == nil {
			err = done.Error()
		}
		if err != nil {
			return err
		}
	}
	switch {
	case c.JSON:
	case names == nil:
		fmt.Fprintln(c.Out, "None of the specified partition reassignments are active.")
	default:
		fmt.Fprintf(c.Out, "Successfully cancelled partition reassignment%s for: %s\n", map[bool]string{true: "s"}[len(names) > 1], strings.Join(names, ","))
	}
	back, err := c.cancelDirs(admin, dirMoves(moves))
	if err == nil && c.JSON {
		err = c.printJSON(map[string]any{"cancelled": append(append([]string{}, names...), back...)})
	}
	if err != nil || c.Args.Has("preserve-throttles") {
		return err
	}
	_, brokers, err := c.checkMoves(admin, moves)
	if err != nil {
		return err
	}
	return c.clearThrottles(admin, moves, brokers)
}

// lateMetadata is how often a broker that has yet to hear of the end of moves is
// asked again.
const lateMetadata = 5

// awaitMoves shows how many moves are done until all are.
func (c *Call) awaitMoves(admin *kadm.Client, k *kgo.Client, moves []move) error {
	bar := c.progress("partitions moved", int64(len(moves)))
	defer bar.end()
	for late := 0; late < lateMetadata; {
		moving, err := c.moving(admin, k, moves)
		if err != nil {
			return err
		}
		if moving == 0 {
			if there, err := c.areThere(admin, moves); there || err != nil {
				break // an error comes again
			}
			late++
		} else {
			bar.show(int64(len(moves) - moving))
		}
		if !pause(c.Context, time.Second) {
			return c.Context.Err()
		}
	}
	bar.end()
	elsewhere, err := c.reportMoves(admin, k, moves)
	switch {
	case err != nil || elsewhere == 0:
	case c.JSON:
		err = ErrReported // the document says where they are
	default:
		err = says("%d of %d partitions are not where they should be: another command cancelled or changed their moves.", elsewhere, len(moves))
	}
	return err
}

// moving counts the partitions that move between brokers or, when there are none,
// within brokers.
func (c *Call) moving(admin *kadm.Client, k *kgo.Client, moves []move) (int, error) {
	going, err := c.active(k, moves)
	if err != nil || len(going) > 0 {
		return len(going), err
	}
	found, err := c.dirStates(admin, dirMoves(moves))
	copied := map[string]bool{}
	for _, s := range found {
		if s.state == dirMoving {
			copied[s.move.String()] = true
		}
	}
	return len(copied), err
}

// areThere tells whether all partitions have the replicas that they should.
func (c *Call) areThere(admin *kadm.Client, moves []move) (bool, error) {
	current, _, err := c.checkMoves(admin, moves)
	now := map[string][]int32{}
	for _, m := range current {
		now[m.String()] = m.Replicas
	}
	return !slices.ContainsFunc(moves, func(m move) bool { return !slices.Equal(now[m.String()], m.Replicas) }), err
}
