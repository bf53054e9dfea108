package tool

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

func itoa(n int32) string { return strconv.Itoa(int(n)) }

func atoi(s string) (int32, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	return int32(n), err
}

// uuid writes an id as Kafka's Uuid does.
func uuid(id [16]byte) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// withMessage is answered for kadm's results.
func withMessage(err error, said string) error {
	var code *kerr.Error
	if errors.As(err, &code) {
		return &brokerError{code, said}
	}
	return err
}

// topicReport is what --describe says of a topic.
type topicReport struct {
	Name       string            `json:"name"`
	ID         string            `json:"topicId,omitempty"`
	Count      int               `json:"partitionCount"`
	Replicas   int               `json:"replicationFactor"`
	Configs    map[string]string `json:"configs"`
	Partitions []partitionReport `json:"partitions,omitempty"`

	order   []string // of configs
	minISR  int
	showTop bool
}

type partitionReport struct {
	Partition int32   `json:"partition"`
	Leader    *int32  `json:"leader"`
	Replicas  []int32 `json:"replicas"`
	ISR       []int32 `json:"isr"`
	Offline   []int32 `json:"offline,omitempty"`
	Adding    []int32 `json:"addingReplicas,omitempty"`
	Removing  []int32 `json:"removingReplicas,omitempty"`
}

func (c *Call) describeTopics(admin *kadm.Client) error {
	a := c.Args
	var names []string
	var all kadm.TopicDetails
	var err error
	if a.Has("topic-id") {
		names, all, err = c.topicOfID(admin)
	} else {
		names, all, err = c.topicsNamed(admin)
	}
	if err != nil {
		return err
	}
	var reports []topicReport
	if len(names) > 0 {
		configs, err := admin.DescribeTopicConfigs(c.Context, names...)
		if err != nil {
			return err
		}
		moving := c.reassignments(admin, all, names)
		live := map[int32]bool{}
		brokers, err := admin.ListBrokers(c.Context)
		if err != nil {
			return err
		}
		for _, b := range brokers {
			live[b.NodeID] = true
		}
		for _, name := range names {
			if r, ok := c.reportTopic(all[name], configs, moving, live); ok {
				reports = append(reports, r)
			}
		}
	}
	if c.JSON {
		return c.printJSON(map[string]any{"topics": append([]topicReport{}, reports...)})
	}
	for _, r := range reports {
		r.print(c)
	}
	return nil
}

func (c *Call) topicOfID(admin *kadm.Client) ([]string, kadm.TopicDetails, error) {
	want := c.Args.Text("topic-id")
	all, err := admin.ListTopicsWithInternal(c.Context)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range all {
		if uuid(t.ID) == want {
			return []string{t.Topic}, all, nil
		}
	}
	if c.Args.Has("if-exists") {
		return nil, all, nil
	}
	return nil, nil, because(kerr.UnknownTopicOrPartition, "TopicId '%s' does not exist as expected", want)
}

// reassignments returns what moves; nothing if the broker will not say.
func (c *Call) reassignments(admin *kadm.Client, all kadm.TopicDetails, names []string) kadm.ListPartitionReassignmentsResponses {
	set := kadm.TopicsSet{}
	for _, n := range names {
		for p := range all[n].Partitions {
			set.Add(n, p)
		}
	}
	moving, err := admin.ListPartitionReassignments(c.Context, set)
	if err != nil {
		return nil
	}
	return moving
}

func (c *Call) reportTopic(t kadm.TopicDetail, configs kadm.ResourceConfigs, moving kadm.ListPartitionReassignmentsResponses, live map[int32]bool) (topicReport, bool) {
	a := c.Args
	r := topicReport{Name: t.Topic, Count: len(t.Partitions), Configs: map[string]string{}, minISR: 1}
	if t.ID != [16]byte{} {
		r.ID = uuid(t.ID)
	}
	entries := 0
	for _, rc := range configs {
		if rc.Name != t.Topic {
			continue
		}
		entries = len(rc.Configs)
		for _, e := range rc.Configs {
			if e.Key == "min.insync.replicas" {
				r.minISR, _ = strconv.Atoi(e.MaybeValue()) // the broker's own number
			}
			if e.Source != 5 && e.Source != 0 {
				r.Configs[e.Key] = e.MaybeValue()
				r.order = append(r.order, e.Key)
			}
		}
	}
	hashOrder(r.order, entries)
	report := a.count("under-replicated-partitions", "under-min-isr-partitions", "at-min-isr-partitions", "unavailable-partitions") > 0
	r.showTop = !report
	if a.Has("topics-with-overrides") && len(r.Configs) == 0 {
		return r, false
	}
	for i, p := range t.Partitions.Sorted() {
		one := partitionReport{Partition: p.Partition, Replicas: p.Replicas, ISR: p.ISR, Offline: p.OfflineReplicas}
		if p.Leader >= 0 {
			one.Leader = &p.Leader
		}
		if m, ok := moving[t.Topic][p.Partition]; ok {
			one.Adding, one.Removing = m.AddingReplicas, m.RemovingReplicas
		}
		target := len(p.Replicas) - len(one.Removing)
		if i == 0 {
			r.Replicas = target
		}
		show := !report ||
			a.Has("under-replicated-partitions") && len(p.ISR) < target ||
			a.Has("under-min-isr-partitions") && len(p.ISR) < r.minISR ||
			a.Has("at-min-isr-partitions") && len(p.ISR) == r.minISR ||
			a.Has("unavailable-partitions") && (one.Leader == nil || !live[p.Leader])
		if show && !a.Has("topics-with-overrides") {
			r.Partitions = append(r.Partitions, one)
		}
	}
	return r, r.showTop || len(r.Partitions) > 0
}

func (r topicReport) print(c *Call) {
	if r.showTop {
		var configs []string
		for _, k := range r.order {
			configs = append(configs, k+"="+r.Configs[k])
		}
		fmt.Fprintf(c.Out, "Topic: %s", r.Name)
		if r.ID != "" {
			fmt.Fprintf(c.Out, "\tTopicId: %s", r.ID)
		}
		fmt.Fprintf(c.Out, "\tPartitionCount: %d\tReplicationFactor: %d\tConfigs: %s\n", r.Count, r.Replicas, strings.Join(configs, ","))
	}
	for _, p := range r.Partitions {
		leader := "none"
		if p.Leader != nil {
			leader = itoa(*p.Leader)
		}
		fmt.Fprintf(c.Out, "\tTopic: %s\tPartition: %d\tLeader: %s\tReplicas: %s\tIsr: %s", r.Name, p.Partition, leader, joinInts(p.Replicas, ","), joinInts(p.ISR, ","))
		if len(p.Adding)+len(p.Removing) > 0 {
			slices.Sort(p.Adding)
			fmt.Fprintf(c.Out, "\tAdding Replicas: %s\tRemoving Replicas: %s", joinInts(p.Adding, ","), joinInts(p.Removing, ","))
		}
		if !c.Args.Has("zookeeper") { // 2.8 had not got them
			fmt.Fprint(c.Out, "\tElr: N/A\tLastKnownElr: N/A")
		}
		fmt.Fprintln(c.Out)
	}
}
