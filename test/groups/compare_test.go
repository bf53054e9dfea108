package groups

import (
	"fmt"
	"strings"
	"testing"

	"barnabas/test/raw"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestAnswersAreKafkas sends the same requests of every version to both brokers:
// the answers are the same but for member ids.
func TestAnswersAreKafkas(t *testing.T) {
	t.Parallel()
	answers := map[string][]string{}
	var asked []string
	raw.OnBoth(t, func(t *testing.T, addr string) {
		broker := t.Name()[strings.LastIndex(t.Name(), "/")+1:]
		raw.Coordinated(t, addr, "same")
		raw.CreateTopic(t, addr, "known", 2)
		c := raw.Dial(t, addr)
		asked = nil
		ask := func(r kmsg.Request) kmsg.Response {
			text := ""
			response, err := c.Try(r)
			if err != nil {
				text = err.Error()
				c = raw.Dial(t, addr)
			} else {
				text = uuid.ReplaceAllString(fmt.Sprintf("%x", response.AppendTo(nil)), "UUID")
				text = hexUUID.ReplaceAllString(text, "UUID")
			}
			answers[broker] = append(answers[broker], text)
			asked = append(asked, fmt.Sprintf("%s v%d %+v", kmsg.NameForKey(r.Key()), r.GetVersion(), r))
			return response
		}
		eachVersion(ask)
		withMembers(ask)
	}, "offset.metadata.max.bytes=10")
	ours, theirs := answers["barnabas"], answers["kafka-3.9.1"]
	for i := range min(len(ours), len(theirs)) {
		if ours[i] != theirs[i] {
			t.Errorf("%.400s\nBarnabas: %.600s\nKafka:    %.600s", asked[i], ours[i], theirs[i])
		}
	}
	if len(ours) != len(theirs) || len(ours) == 0 {
		t.Errorf("%d answers, and %d of Kafka", len(ours), len(theirs))
	}
}

func commitAll(v int16, group string, topics map[string][]int32, metadata string) *kmsg.OffsetCommitRequest {
	r := kmsg.NewPtrOffsetCommitRequest()
	r.Version, r.Group, r.Generation, r.RetentionTimeMillis = v, group, -1, -1
	for _, topic := range []string{"known", "unknown"} {
		if topics[topic] == nil {
			continue
		}
		top := kmsg.NewOffsetCommitRequestTopic()
		top.Topic = topic
		for _, p := range topics[topic] {
			part := kmsg.NewOffsetCommitRequestTopicPartition()
			part.Partition, part.Offset, part.Timestamp, part.LeaderEpoch, part.Metadata = p, 7, -1, -1, &metadata
			if v >= 6 {
				part.LeaderEpoch = 0
			}
			top.Partitions = append(top.Partitions, part)
		}
		r.Topics = append(r.Topics, top)
	}
	return r
}

// eachVersion asks about groups without members.
func eachVersion(ask func(kmsg.Request) kmsg.Response) {
	for v := int16(1); v <= 9; v++ {
		ask(commitAll(v, "same", map[string][]int32{"known": {0, 9}, "unknown": {0}}, "md"))
		ask(commitAll(v, "same", map[string][]int32{"known": {1}}, "longer than ten"))
		ask(commitAll(v, "", map[string][]int32{"known": {0}}, ""))
		bad := commitAll(v, "none", map[string][]int32{"known": {0}}, "")
		bad.Generation, bad.MemberID = 3, "nobody"
		ask(bad)
		negative := commitAll(v, "negative", map[string][]int32{"known": {0}}, "")
		negative.Topics[0].Partitions[0].Offset = -int64(v) - 2
		ask(negative)
	}
	for v := int16(1); v <= 9; v++ {
		for _, id := range []string{"same", "negative", "none", ""} {
			for kind := range 3 {
				r := kmsg.NewPtrOffsetFetchRequest()
				r.Version, r.Group = v, id
				one := []kmsg.OffsetFetchRequestGroupTopic{{Topic: "known", Partitions: []int32{0, 5}}, {Topic: "unknown", Partitions: []int32{0}}}
				switch kind {
				case 1:
					one = []kmsg.OffsetFetchRequestGroupTopic{}
				case 2:
					one = nil
				}
				if v < 2 && one == nil {
					continue
				}
				if one != nil {
					r.Topics = []kmsg.OffsetFetchRequestTopic{}
				}
				for _, t := range one {
					r.Topics = append(r.Topics, kmsg.OffsetFetchRequestTopic{Topic: t.Topic, Partitions: t.Partitions})
				}
				g := kmsg.NewOffsetFetchRequestGroup()
				g.Group, g.Topics = id, one
				other := kmsg.NewOffsetFetchRequestGroup()
				other.Group = "other"
				r.Groups = []kmsg.OffsetFetchRequestGroup{g}
				ask(r)
			}
		}
	}
	for v := int16(0); v <= 5; v++ {
		d := kmsg.NewPtrDescribeGroupsRequest()
		d.Version, d.Groups, d.IncludeAuthorizedOperations = v, []string{"same", "none", ""}, true
		ask(d)
		l := kmsg.NewPtrLeaveGroupRequest()
		l.Version, l.Group, l.MemberID = v, "same", "nobody"
		l.Members = []kmsg.LeaveGroupRequestMember{{MemberID: "nobody"}, {MemberID: "nobody", InstanceID: kmsg.StringPtr("i")}, {InstanceID: kmsg.StringPtr("i")}}
		ask(l)
		l.Group = ""
		ask(l)
		l.Group = "none"
		ask(l)
		s := kmsg.NewPtrSyncGroupRequest()
		s.Version, s.Group, s.MemberID = v, "same", "nobody"
		ask(s)
		s.Group = ""
		ask(s)
	}
	for v := int16(0); v <= 4; v++ {
		h := kmsg.NewPtrHeartbeatRequest()
		h.Version, h.Group, h.MemberID = v, "same", "nobody"
		ask(h)
		h.Group = ""
		ask(h)
	}
	for v := int16(0); v <= 9; v++ {
		ask(joinRequest(v, "same", "nobody", 10000, 10000, "range"))
		ask(joinRequest(v, "", "", 10000, 10000, "range"))
		ask(joinRequest(v, "same", "", 1, 10000, "range"))
		ask(joinRequest(v, "same", "", 10000, 10000))
	}
	del := kmsg.NewPtrOffsetDeleteRequest()
	for _, id := range []string{"same", "none", ""} {
		del.Group = id
		del.Topics = []kmsg.OffsetDeleteRequestTopic{{Topic: "known", Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 1}, {Partition: 9}}},
			{Topic: "unknown", Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}}}}
		ask(del)
	}
}

// withMembers asks about a group with a member.
func withMembers(ask func(kmsg.Request) kmsg.Response) {
	joined := ask(joinRequest(3, "full", "", 30000, 30000, "range")).(*kmsg.JoinGroupResponse)
	ask(syncRequest("full", joined.MemberID, 1))
	for v := int16(0); v <= 5; v++ {
		l := kmsg.NewPtrListGroupsRequest()
		l.Version, l.StatesFilter = v, nil
		if v >= 4 {
			l.StatesFilter = []string{"Stable"}
		}
		if v < 4 {
			continue // "same" and "full" come in any order
		}
		ask(l)
		l.StatesFilter = []string{"stable", "nonsense"}
		ask(l)
		l.StatesFilter, l.TypesFilter = []string{"Stable"}, []string{"consumer"}
		ask(l)
		l.TypesFilter = []string{"Classic"}
		ask(l)
		d := kmsg.NewPtrDescribeGroupsRequest()
		d.Version, d.Groups = v, []string{"full"}
		ask(d)
	}
	for v := int16(0); v <= 9; v++ { // a follower's retry, a stranger, another protocol
		ask(joinRequest(v, "full", "nobody", 30000, 30000, "range"))
		ask(joinRequest(v, "full", "", 30000, 30000, "sticky"))
	}
	s := syncRequest("full", joined.MemberID, 1)
	s.Version = 5
	ask(s)
	s.ProtocolType, s.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
	ask(s)
	s.ProtocolType = kmsg.StringPtr("connect")
	ask(s)
	s.ProtocolType, s.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("sticky")
	ask(s)
	ask(syncRequest("full", joined.MemberID, 2))
	ask(commitAll(6, "full", map[string][]int32{"known": {0}}, ""))
	member := commitAll(8, "full", map[string][]int32{"known": {0}}, "m")
	member.MemberID, member.Generation = joined.MemberID, 1
	ask(member)
	member.Generation = 2
	ask(member)
	del := kmsg.NewPtrOffsetDeleteRequest()
	del.Group, del.Topics = "full", []kmsg.OffsetDeleteRequestTopic{{Topic: "known", Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}}}}
	ask(del)
	for v := int16(0); v <= 2; v++ {
		d := kmsg.NewPtrDeleteGroupsRequest()
		d.Version, d.Groups = v, []string{"full"}
		ask(d)
		d.Groups = []string{"none"}
		ask(d)
		d.Groups = []string{""}
		ask(d)
		d.Groups = []string{"same"}
		ask(d)
	}
}
