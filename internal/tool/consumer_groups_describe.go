package tool

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// groupRow is one partition of a group.
type groupRow struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Current   *int64 `json:"currentOffset"`
	End       *int64 `json:"logEndOffset"`
	Lag       *int64 `json:"lag"`
	Consumer  string `json:"consumerId,omitempty"`
	Host      string `json:"host,omitempty"`
	Client    string `json:"clientId,omitempty"`
}

// groupReport is what --describe says of a group.
type groupReport struct {
	Group       string           `json:"group"`
	State       string           `json:"state"`
	Coordinator string           `json:"coordinator"`
	Strategy    string           `json:"assignmentStrategy"`
	Rows        []groupRow       `json:"offsets,omitempty"`
	Members     []memberReport   `json:"members"`
	LagByTopic  map[string]int64 `json:"lagByTopic,omitempty"`
	TotalLag    int64            `json:"totalLag"`
	node        int32
}

type memberReport struct {
	ID       string             `json:"consumerId"`
	Instance string             `json:"groupInstanceId,omitempty"`
	Host     string             `json:"host"`
	Client   string             `json:"clientId"`
	Count    int                `json:"partitions"`
	Assigned map[string][]int32 `json:"assignment"`
}

func (c *Call) describeGroups(admin *kadm.Client) error {
	names, err := c.groupNames(admin)
	if err != nil {
		return err
	}
	described, err := admin.DescribeGroups(c.Context, names...)
	if err != nil && !shardErrors(err) {
		return err
	}
	consumers, err := c.consumerProtocolGroups(admin, described)
	if err != nil {
		return err
	}
	var reports []groupReport
	for _, name := range names {
		g, ok := described[name]
		if ok && g.Err != nil {
			return withMessage(g.Err, "")
		}
		r, members := newReport(g.State, g.Protocol, g.Coordinator), classicMembers(g)
		if of, ok := consumers[name]; ok {
			r, members = newReport(of.State, of.AssignorName, of.Coordinator), consumerMembers(of)
		}
		r.Group = name
		if err := c.reportMembers(admin, members, &r); err != nil {
			return err
		}
		reports = append(reports, r)
	}
	if c.JSON {
		return c.printJSON(map[string]any{"groups": append([]groupReport{}, reports...)})
	}
	for _, r := range reports {
		c.printGroup(r)
	}
	return nil
}

// consumerProtocolGroups describes the groups that are of the protocol of
// KIP-848: DescribeGroups calls them dead.
func (c *Call) consumerProtocolGroups(admin *kadm.Client, described kadm.DescribedGroups) (kadm.DescribedConsumerGroups, error) {
	var dead []string
	for name, g := range described {
		if g.Err == nil && g.State == "Dead" {
			dead = append(dead, name)
		}
	}
	if len(dead) == 0 {
		return nil, nil
	}
	found, err := admin.DescribeConsumerGroups(c.Context, dead...)
	if err != nil && !shardErrors(err) {
		return nil, nil // a broker without that request has no such groups
	}
	maps.DeleteFunc(found, func(_ string, g kadm.DescribedConsumerGroup) bool { return g.Err != nil })
	return found, nil
}

func newReport(state, strategy string, coordinator kadm.BrokerDetail) groupReport {
	if state == "" {
		state = "Dead"
	}
	return groupReport{State: state, Coordinator: fmt.Sprintf("%s:%d", coordinator.Host, coordinator.Port), Strategy: strategy,
		LagByTopic: map[string]int64{}, Members: []memberReport{}, node: coordinator.NodeID}
}

func classicMembers(g kadm.DescribedGroup) (all []memberReport) {
	for _, m := range g.Members {
		one := memberReport{ID: m.MemberID, Host: m.ClientHost, Client: m.ClientID, Assigned: map[string][]int32{}}
		if m.InstanceID != nil {
			one.Instance = *m.InstanceID
		}
		if assigned, ok := m.Assigned.AsConsumer(); ok {
			for _, t := range assigned.Topics {
				one.assign(t.Topic, t.Partitions)
			}
		}
		all = append(all, one)
	}
	return all
}

func consumerMembers(g kadm.DescribedConsumerGroup) (all []memberReport) {
	for _, m := range g.Members {
		one := memberReport{ID: m.MemberID, Host: m.ClientHost, Client: m.ClientID, Assigned: map[string][]int32{}}
		if m.InstanceID != nil {
			one.Instance = *m.InstanceID
		}
		for _, t := range m.Assignment.Sorted() {
			one.assign(t.Topic, t.Partitions)
		}
		all = append(all, one)
	}
	return all
}

func (m *memberReport) assign(topic string, partitions []int32) {
	slices.Sort(partitions)
	m.Assigned[topic] = partitions
	m.Count += len(partitions)
}

// reportMembers fills in what members a group has and what they own.
func (c *Call) reportMembers(admin *kadm.Client, members []memberReport, r *groupReport) error {
	if r.State == "Dead" {
		return nil
	}
	owners := map[string]map[int32]memberReport{}
	for _, one := range members {
		for topic, partitions := range one.Assigned {
			if owners[topic] == nil {
				owners[topic] = map[int32]memberReport{}
			}
			for _, p := range partitions {
				owners[topic][p] = one
			}
		}
	}
	r.Members = append(r.Members, members...)
	return c.reportOffsets(admin, r.Group, owners, r)
}

// reportOffsets fills in the rows: what members own, and what else is
// committed.
func (c *Call) reportOffsets(admin *kadm.Client, group string, owners map[string]map[int32]memberReport, r *groupReport) error {
	committed, err := admin.FetchOffsets(c.Context, group)
	if err != nil {
		return err
	}
	set := kadm.TopicsSet{}
	for t, parts := range owners {
		for p := range parts {
			set.Add(t, p)
		}
	}
	committed.Each(func(o kadm.OffsetResponse) {
		if o.At >= 0 {
			set.Add(o.Topic, o.Partition)
		}
	})
	if len(set) == 0 {
		return nil
	}
	ends, err := admin.ListEndOffsets(c.Context, set.Topics()...)
	if err != nil && !shardErrors(err) {
		return err
	}
	for _, t := range set.Sorted() {
		slices.Sort(t.Partitions)
		for _, p := range t.Partitions {
			row := groupRow{Topic: t.Topic, Partition: p}
			if o, ok := committed.Lookup(t.Topic, p); ok && o.At >= 0 {
				row.Current = &o.At
			}
			if e, ok := ends.Lookup(t.Topic, p); ok && e.Err == nil {
				row.End = &e.Offset
			}
			if row.Current != nil && row.End != nil {
				lag := *row.End - *row.Current
				row.Lag = &lag
				r.LagByTopic[t.Topic] += lag
				r.TotalLag += lag
			}
			if m, ok := owners[t.Topic][p]; ok {
				row.Consumer, row.Host, row.Client = m.ID, m.Host, m.Client
			}
			r.Rows = append(r.Rows, row)
		}
	}
	return nil
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func dashNumber(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

func (c *Call) printGroup(r groupReport) {
	switch r.State {
	case "Dead":
		fmt.Fprintf(c.Out, "\nError: Consumer group '%s' does not exist.\n", r.Group)
		c.hint(kerr.GroupIDNotFound)
		return
	case "Empty":
		fmt.Fprintf(c.Err, "\nConsumer group '%s' has no active members.\n", r.Group)
	case "PreparingRebalance", "CompletingRebalance":
		fmt.Fprintf(c.Err, "\nWarning: Consumer group '%s' is rebalancing.\n", r.Group)
	}
	switch {
	case c.Args.Has("members"):
		c.printMembers(r)
	case c.Args.Has("state"):
		coordinator := fmt.Sprintf("%s  (%d)", r.Coordinator, r.node)
		width := max(25, len(coordinator))
		fmt.Fprintf(c.Out, "\n%-*s %-25s %-20s %-15s %s", width, "GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS")
		fmt.Fprintf(c.Out, "\n%-*s %-25s %-20s %-15s %d\n", width, r.Group, coordinator, r.Strategy, r.State, len(r.Members))
	default:
		c.printRows(r)
	}
}

func (c *Call) printRows(r groupReport) {
	if len(r.Rows) == 0 {
		return
	}
	group, topic, consumer, host := max(15, len(r.Group)), 15, 15, 15
	for _, row := range r.Rows {
		topic, consumer, host = max(topic, len(row.Topic)), max(consumer, len(row.Consumer)), max(host, len(row.Host))
	}
	line := func(g, t, p, current, end, lag, id, h, client string) {
		fmt.Fprintf(c.Out, "\n%-*s %-*s %-10s %-15s %-15s %-15s %-*s %-*s %s", group, g, topic, t, p, current, end, lag, consumer, id, host, h, client)
	}
	line("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID")
	for _, row := range r.Rows {
		line(r.Group, row.Topic, itoa(row.Partition), dashNumber(row.Current), dashNumber(row.End), dashNumber(row.Lag), dash(row.Consumer), dash(row.Host), dash(row.Client))
	}
	fmt.Fprintln(c.Out)
	if c.Args.Has("totals") {
		c.printTotals(r.Group, r.LagByTopic, r.TotalLag)
	}
}

// printTotals prints the lag of each topic and of the group.
func (c *Call) printTotals(name string, byTopic map[string]int64, total int64) {
	group, topic := max(15, len(name)), 15
	for t := range byTopic {
		topic = max(topic, len(t))
	}
	fmt.Fprintf(c.Out, "\n%-*s %-*s %s\n", group, "GROUP", topic, "TOPIC", "TOTAL-LAG")
	for _, t := range sortedKeys(byTopic) {
		fmt.Fprintf(c.Out, "%-*s %-*s %d\n", group, name, topic, t, byTopic[t])
	}
	fmt.Fprintf(c.Out, "%-*s %-*s %d\n", group, name, topic, "(all)", total)
}

func (c *Call) printMembers(r groupReport) {
	group, id, instance, host, client := max(15, len(r.Group)), 15, 17, 15, 15
	static := false
	for _, m := range r.Members {
		id, host, client, instance = max(id, len(m.ID)), max(host, len(m.Host)), max(client, len(m.Client)), max(instance, len(m.Instance))
		static = static || m.Instance != ""
	}
	line := func(g, i, s, h, cl, n, assignment string) {
		fmt.Fprintf(c.Out, "%-*s %-*s ", group, g, id, i)
		if static {
			fmt.Fprintf(c.Out, "%-*s ", instance, s)
		}
		fmt.Fprintf(c.Out, "%-*s %-*s %-15s ", host, h, client, cl, n)
		if c.Args.Has("verbose") {
			fmt.Fprint(c.Out, assignment)
		}
		fmt.Fprintln(c.Out)
	}
	fmt.Fprintln(c.Out)
	line("GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "ASSIGNMENT")
	for _, m := range r.Members {
		var parts []string
		for _, t := range sortedKeys(m.Assigned) {
			parts = append(parts, t+"("+joinInts(m.Assigned[t], ",")+")")
		}
		line(r.Group, m.ID, m.Instance, m.Host, m.Client, strconv.Itoa(m.Count), dash(strings.Join(parts, ", ")))
	}
}
