package group

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"barnabas/internal/coordinator/script"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var update = flag.Bool("update", false, "write the traces of testdata/*.txt anew")

// The scripts are lines of commands, each followed by its trace, indented:
//
//	join NAME [group=g] [member=M] [v=9] [session=10s] [rebalance=20s] [protocols=range,sticky] [topics=t] [instance=I] [type=consumer]
//	sync NAME [group=g] [member=M] [generation=1] [assign=M:text,M:text] [instance=I]
//	heartbeat NAME, leave NAME  (v=2: the old form)
//	commit NAME t-0=5 t-1=6 ... [member= generation= instance= metadata= expire=]
//	fetch NAME t-0 ... (none: all)   describe, list, delete, delete-offsets NAME ...
//	beat ... (see consumer_script_test.go)
//	pass 3s    restart    deleted t-0 ...   max-size 2   max-consumers 2   max-record 100   retention 1h   initial-delay 0s
//
// member defaults to NAME-1; without any "member=" join sends none.
func TestScripts(t *testing.T) {
	script.Files(t, *update, func(t *testing.T, text string) string { return newWorld().Run(t, text) })
}

// arguments are a command's words: the options by name, the rest in order.
type arguments struct {
	rest    []string
	options map[string]string
}

func parse(words []string) arguments {
	a := arguments{options: map[string]string{}}
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if ok && !strings.Contains(name, "-") {
			a.options[name] = value
		} else {
			a.rest = append(a.rest, word)
		}
	}
	return a
}

func (a arguments) or(name, standard string) string {
	if v, ok := a.options[name]; ok {
		return v
	}
	return standard
}

func (a arguments) number(name string, standard int64) int64 {
	n, err := strconv.ParseInt(a.or(name, fmt.Sprint(standard)), 10, 64)
	if err != nil {
		return standard
	}
	return n
}

func (a arguments) millis(name, standard string) int32 {
	d, _ := time.ParseDuration(a.or(name, standard))
	return int32(d.Milliseconds())
}

func (a arguments) instance() *string {
	if v, ok := a.options["instance"]; ok {
		return &v
	}
	return nil
}

func tp(word string) (topic string, index int32, offset int64) {
	name, value, _ := strings.Cut(word, "=")
	topic, number, _ := strings.Cut(name, "-")
	n, _ := strconv.Atoi(number)
	offset, _ = strconv.ParseInt(value, 10, 64)
	return topic, int32(n), offset
}

func (w *world) command(name string, words []string) error {
	switch name {
	case "max-size":
		w.c.MaxSize, _ = strconv.Atoi(words[0])
		w.M.c.MaxSize = w.c.MaxSize
		return nil
	case "max-consumers":
		w.c.ConsumerMaxSize, _ = strconv.Atoi(words[0])
		w.M.c.ConsumerMaxSize = w.c.ConsumerMaxSize
		return nil
	case "initial-delay":
		w.c.InitialDelay, _ = time.ParseDuration(words[0])
		w.M.c.InitialDelay = w.c.InitialDelay
		return nil
	case "retention":
		w.c.Retention, _ = time.ParseDuration(words[0])
		w.M.c.Retention = w.c.Retention
		return nil
	case "topics":
		w.setTopics(words)
		return nil
	case "policy":
		w.policy(words[0])
		return nil
	case "max-record":
		w.M.c.MaxRecord, _ = strconv.Atoi(words[0])
		return nil
	}
	a := parse(words)
	if len(a.rest) == 0 {
		return fmt.Errorf("%s needs a name", name)
	}
	from := client(a.rest[0])
	a.rest = a.rest[1:]
	f := map[string]func(client, arguments){
		"join": w.join, "sync": w.sync, "heartbeat": w.heartbeat, "leave": w.leave, "commit": w.commit, "fetch": w.fetch,
		"describe": w.describe, "list": w.list, "delete": w.delete, "delete-offsets": w.deleteOffsets, "deleted": w.deleted,
		"beat": w.beat, "describe-consumers": w.describeConsumers,
	}[name]
	if f == nil {
		return fmt.Errorf("unknown command %q", name)
	}
	w.Step(func() { f(from, a) })
	return nil
}

func (w *world) join(from client, a arguments) {
	r := kmsg.NewPtrJoinGroupRequest()
	r.Version, r.Group, r.MemberID = int16(a.number("v", 9)), a.or("group", "g"), a.or("member", "")
	r.ProtocolType, r.InstanceID = a.or("type", "consumer"), a.instance()
	r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = a.millis("session", "10s"), a.millis("rebalance", "20s")
	metadata := kmsg.NewConsumerMemberMetadata()
	metadata.Topics = strings.Split(a.or("topics", "t"), ",")
	for _, p := range strings.Split(a.or("protocols", "range"), ",") {
		if p != "" {
			r.Protocols = append(r.Protocols, kmsg.JoinGroupRequestProtocol{Name: p, Metadata: metadata.AppendTo(nil)})
		}
	}
	w.M.Join(r, string(from), "/h", from, w.Now, &w.Out)
}

func (w *world) sync(from client, a arguments) {
	r := kmsg.NewPtrSyncGroupRequest()
	r.Version, r.Group, r.MemberID, r.InstanceID = 5, a.or("group", "g"), a.or("member", string(from)+"-1"), a.instance()
	r.Generation = int32(a.number("generation", 1))
	for _, pair := range strings.Split(a.or("assign", ""), ",") {
		if id, text, ok := strings.Cut(pair, ":"); ok {
			r.GroupAssignment = append(r.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: id, MemberAssignment: []byte(text)})
		}
	}
	w.M.Sync(r, from, w.Now, &w.Out)
}

func (w *world) heartbeat(from client, a arguments) {
	r := kmsg.NewPtrHeartbeatRequest()
	r.Version, r.Group, r.MemberID, r.InstanceID = 4, a.or("group", "g"), a.or("member", string(from)+"-1"), a.instance()
	r.Generation = int32(a.number("generation", 1))
	w.M.Heartbeat(r, from, w.Now, &w.Out)
}

func (w *world) leave(from client, a arguments) {
	r := kmsg.NewPtrLeaveGroupRequest()
	r.Version, r.Group = int16(a.number("v", 5)), a.or("group", "g")
	id := a.or("member", string(from)+"-1")
	r.MemberID = id
	r.Members = []kmsg.LeaveGroupRequestMember{{MemberID: id, InstanceID: a.instance()}}
	w.M.Leave(r, from, w.Now, &w.Out)
}

func (w *world) commit(from client, a arguments) {
	c := &Commit{Group: a.or("group", "g"), Member: a.or("member", ""), Instance: a.instance(), Generation: int32(a.number("generation", -1))}
	for _, word := range a.rest {
		o := CommitOffset{LeaderEpoch: -1, Metadata: a.or("metadata", ""), Time: w.Now.UnixMilli(), Expire: a.number("expire", -1)}
		o.Topic, o.Partition, o.Offset = tp(word)
		c.Offsets = append(c.Offsets, o)
	}
	w.M.Commit(c, from, w.Now, &w.Out)
}

func (w *world) fetch(from client, a arguments) {
	var topics []kmsg.OffsetFetchRequestGroupTopic
	for _, word := range a.rest {
		topic, index, _ := tp(word)
		topics = append(topics, kmsg.OffsetFetchRequestGroupTopic{Topic: topic, Partitions: []int32{index}})
	}
	w.M.Fetch(&kmsg.OffsetFetchRequestGroup{Group: a.or("group", "g"), Topics: topics, MemberEpoch: -1}, false, from, &w.Out)
}

func (w *world) describe(from client, a arguments) { w.M.Describe(a.or("group", "g"), from, &w.Out) }

func (w *world) list(from client, a arguments) {
	filter := func(name string) []string {
		if v, ok := a.options[name]; ok {
			return strings.Split(v, ",")
		}
		return nil
	}
	w.M.List(filter("states"), filter("types"), from, &w.Out)
}

func (w *world) delete(from client, a arguments) { w.M.Delete(a.or("group", "g"), from, &w.Out) }

func (w *world) deleteOffsets(from client, a arguments) {
	r := kmsg.NewPtrOffsetDeleteRequest()
	r.Group = a.or("group", "g")
	for _, word := range a.rest {
		topic, index, _ := tp(word)
		r.Topics = append(r.Topics, kmsg.OffsetDeleteRequestTopic{Topic: topic, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: index}}})
	}
	w.M.DeleteOffsets(r, func(string, int32) wire.Code { return 0 }, from, &w.Out)
}

func (w *world) deleted(from client, a arguments) {
	var gone []wire.TopicPartition
	for _, word := range a.rest {
		topic, index, _ := tp(word)
		gone = append(gone, wire.TopicPartition{Topic: topic, Partition: index})
	}
	w.M.PartitionsDeleted(gone, from, &w.Out)
}
