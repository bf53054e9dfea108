package tool

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// reset is an offset that a group gets.
type reset struct {
	Group     string `json:"group"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"newOffset"`
}

func (c *Call) resetOffsets(admin *kadm.Client) error {
	names, err := c.groupNames(admin)
	if err != nil {
		return err
	}
	described, err := admin.DescribeGroups(c.Context, names...)
	if err != nil && !shardErrors(err) {
		return err
	}
	var resets []reset
	for _, name := range names {
		state := described[name].State
		if state != "" && state != "Empty" && state != "Dead" {
			to := c.Out
			if c.JSON {
				to = c.Err
			}
			fmt.Fprintf(to, "\nError: Assignments can only be reset if the group '%s' is inactive, but the current state is %s.\n", name, state)
			continue
		}
		list, err := c.planReset(admin, name)
		if err != nil {
			return err
		}
		resets = append(resets, list...)
	}
	if c.Args.Has("execute") {
		if err := c.executeReset(admin, resets); err != nil {
			return err
		}
	}
	switch {
	case c.JSON:
		return c.printJSON(map[string]any{"executed": c.Args.Has("execute"), "offsets": append([]reset{}, resets...)})
	case c.Args.Has("export"):
		for _, r := range resets {
			if len(names) > 1 {
				fmt.Fprintf(c.Out, "%s,", r.Group)
			}
			fmt.Fprintf(c.Out, "%s,%d,%d\n", r.Topic, r.Partition, r.Offset)
		}
		fmt.Fprintln(c.Out)
	default:
		fmt.Fprintf(c.Out, "\n%-30s %-30s %-10s %-15s", "GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")
		for _, r := range resets {
			fmt.Fprintf(c.Out, "\n%-30s %-30s %-10d %-15d", r.Group, r.Topic, r.Partition, r.Offset)
		}
		fmt.Fprintln(c.Out)
	}
	return nil
}

func (c *Call) executeReset(admin *kadm.Client, resets []reset) error {
	byGroup := map[string]kadm.Offsets{}
	for _, r := range resets {
		if byGroup[r.Group] == nil {
			byGroup[r.Group] = kadm.Offsets{}
		}
		offsets := byGroup[r.Group]
		offsets.AddOffset(r.Topic, r.Partition, r.Offset, -1)
	}
	for _, group := range sortedKeys(byGroup) {
		done, err := admin.CommitOffsets(c.Context, group, byGroup[group])
		if err == nil {
			err = done.Error()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// planReset returns the new offsets of one group.
func (c *Call) planReset(admin *kadm.Client, group string) ([]reset, error) {
	a := c.Args
	var committed kadm.OffsetResponses
	var err error
	if committed, err = admin.FetchOffsets(c.Context, group); err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return nil, err
	}
	if a.Has("from-file") {
		return c.resetsFromFile(admin, group)
	}
	set, err := c.resetScope(admin, committed)
	if err != nil {
		return nil, err
	}
	if a.count(resetWays...) == 0 {
		return nil, usage("Option '[reset-offsets]' requires one of the following scenarios: [[to-offset], [to-current], [to-datetime], [from-file], [by-duration], [to-earliest], [to-latest], [shift-by]]")
	}
	if len(set) == 0 {
		return nil, nil
	}
	starts, ends, err := bounds(c, admin, set)
	if err != nil {
		return nil, err
	}
	target, err := c.resetTarget(admin, set, committed, starts, ends)
	if err != nil {
		return nil, err
	}
	var resets []reset
	for _, t := range set.Sorted() {
		slices.Sort(t.Partitions)
		for _, p := range t.Partitions {
			at, ok, err := target(t.Topic, p)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			resets = append(resets, reset{group, t.Topic, p, c.within(t.Topic, p, at, starts, ends)})
		}
	}
	return resets, nil
}

// resetScope returns the partitions that --topic or --all-topics names.
func (c *Call) resetScope(admin *kadm.Client, committed kadm.OffsetResponses) (kadm.TopicsSet, error) {
	set := kadm.TopicsSet{}
	switch {
	case c.Args.Has("all-topics"):
		committed.Each(func(o kadm.OffsetResponse) {
			if o.At >= 0 {
				set.Add(o.Topic, o.Partition)
			}
		})
		return set, nil
	case !c.Args.Has("topic"):
		return nil, usage("One of the reset scopes should be defined: --all-topics, --topic.")
	}
	for _, spec := range c.Args.All("topic") {
		topic, parts, err := parseTopicPartitions(spec)
		if err != nil {
			return nil, err
		}
		if parts == nil {
			details, err := admin.ListTopicsWithInternal(c.Context, topic)
			if err != nil {
				return nil, err
			}
			if d := details[topic]; d.Err != nil || len(d.Partitions) == 0 {
				return nil, &brokerError{code: kerr.UnknownTopicOrPartition}
			}
			parts = details[topic].Partitions.Numbers()
		}
		for _, p := range parts {
			set.Add(topic, p)
		}
	}
	return set, nil
}

func bounds(c *Call, admin *kadm.Client, set kadm.TopicsSet) (starts, ends kadm.ListedOffsets, err error) {
	if starts, err = admin.ListStartOffsets(c.Context, set.Topics()...); err != nil {
		return nil, nil, err
	}
	ends, err = admin.ListEndOffsets(c.Context, set.Topics()...)
	return starts, ends, err
}

// within keeps a new offset inside the log.
func (c *Call) within(topic string, p int32, at int64, starts, ends kadm.ListedOffsets) int64 {
	if s, ok := starts.Lookup(topic, p); ok && at < s.Offset {
		fmt.Fprintf(c.Err, "New offset (%d) is lower than earliest offset for topic partition %s-%d. Value will be set to %d\n", at, topic, p, s.Offset)
		return s.Offset
	}
	if e, ok := ends.Lookup(topic, p); ok && at > e.Offset {
		fmt.Fprintf(c.Err, "New offset (%d) is higher than latest offset for topic partition %s-%d. Value will be set to %d\n", at, topic, p, e.Offset)
		return e.Offset
	}
	return at
}

// resetTarget returns what finds the new offset of a partition.
func (c *Call) resetTarget(admin *kadm.Client, set kadm.TopicsSet, committed kadm.OffsetResponses, starts, ends kadm.ListedOffsets) (func(string, int32) (int64, bool, error), error) {
	a := c.Args
	from := func(l kadm.ListedOffsets) func(string, int32) (int64, bool, error) {
		return func(t string, p int32) (int64, bool, error) {
			o, ok := l.Lookup(t, p)
			return o.Offset, ok && o.Err == nil, nil
		}
	}
	switch {
	case a.Has("to-earliest"):
		return from(starts), nil
	case a.Has("to-latest"):
		return from(ends), nil
	case a.Has("to-offset"):
		n, _, err := a.Integer("to-offset", 64)
		return func(string, int32) (int64, bool, error) { return n, true, nil }, err
	case a.Has("shift-by"):
		n, _, err := a.Integer("shift-by", 64)
		return func(t string, p int32) (int64, bool, error) {
			o, ok := committed.Lookup(t, p)
			if !ok || o.At < 0 {
				return 0, false, says("Cannot shift offset for partition %s-%d since there is no current committed offset", t, p)
			}
			return o.At + n, true, nil
		}, err
	case a.Has("to-current"):
		return func(t string, p int32) (int64, bool, error) {
			if o, ok := committed.Lookup(t, p); ok && o.At >= 0 {
				return o.At, true, nil
			}
			return from(ends)(t, p)
		}, nil
	}
	ms, err := resetTime(a, time.Now())
	if err != nil {
		return nil, err
	}
	listed, err := admin.ListOffsetsAfterMilli(c.Context, ms, set.Topics()...)
	if err != nil {
		return nil, err
	}
	return func(t string, p int32) (int64, bool, error) {
		o, ok := listed.Lookup(t, p)
		if !ok {
			return 0, false, nil
		}
		if e, ok := ends.Lookup(t, p); ok && (o.Offset < 0 || o.Timestamp < 0) {
			to := c.Out
			if c.JSON {
				to = c.Err
			}
			fmt.Fprintf(to, "\nWarn: Partition %d from topic %s is empty. Falling back to latest known offset.\n", p, t)
			return e.Offset, true, nil
		}
		return o.Offset, true, nil
	}, nil
}

var isoDuration = regexp.MustCompile(`^([-+])?P(?:([-+]?\d+)D)?(?:T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+(?:\.\d+)?)S)?)?$`)

// resetTime returns the time that --to-datetime or --by-duration names, in ms.
func resetTime(a *Args, now time.Time) (int64, error) {
	if a.Has("by-duration") {
		s := strings.ToUpper(a.Text("by-duration"))
		m := isoDuration.FindStringSubmatch(s)
		if m == nil || s == "P" || strings.HasSuffix(s, "T") {
			return 0, says("Text cannot be parsed to a Duration: %s. Write PnDTnHnMnS, for example PT1H30M", a.Text("by-duration"))
		}
		var d time.Duration
		for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
			if f, err := strconv.ParseFloat(m[i+2], 64); err == nil {
				d += time.Duration(f * float64(unit))
			}
		}
		if m[1] == "-" {
			d = -d
		}
		return now.Add(-d).UnixMilli(), nil
	}
	s := a.Text("to-datetime")
	for _, layout := range []string{"2006-01-02T15:04:05.000", "2006-01-02T15:04:05.000Z07:00", "2006-01-02T15:04:05.000-0700"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UnixMilli(), nil
		}
	}
	return 0, says("Unparseable date: \"%s\". Write YYYY-MM-DDTHH:mm:SS.sss, for example 2024-01-31T00:00:00.000", s)
}

// resetsFromFile reads topic,partition,offset or group,topic,partition,offset.
func (c *Call) resetsFromFile(admin *kadm.Client, group string) ([]reset, error) {
	f, err := os.Open(c.Args.Text("from-file"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	reader := csv.NewReader(f)
	reader.FieldsPerRecord = -1
	lines, err := reader.ReadAll()
	if err != nil {
		return nil, err
	}
	var resets []reset
	set := kadm.TopicsSet{}
	for n, l := range lines {
		if len(l) == 4 {
			if l[0] != group {
				continue
			}
			l = l[1:]
		}
		if len(l) != 3 {
			return nil, says("line %d of the file has %d fields; write topic,partition,offset or group,topic,partition,offset", n+1, len(l))
		}
		p, err1 := atoi(l[1])
		at, err2 := strconv.ParseInt(l[2], 10, 64)
		if err1 != nil || err2 != nil {
			return nil, says("line %d of the file: partition and offset are numbers", n+1)
		}
		resets = append(resets, reset{group, l[0], p, at})
		set.Add(l[0], p)
	}
	if len(resets) == 0 {
		return nil, nil
	}
	starts, ends, err := bounds(c, admin, set)
	if err != nil {
		return nil, err
	}
	for i, r := range resets {
		resets[i].Offset = c.within(r.Topic, r.Partition, r.Offset, starts, ends)
	}
	return resets, nil
}
