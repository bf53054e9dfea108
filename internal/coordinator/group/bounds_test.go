package group

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// joinAs sends a JoinGroup request with metadata of a size, and returns the answer.
func (w *world) joinAs(version int16, group, member string, size int) *kmsg.JoinGroupResponse {
	r := kmsg.NewPtrJoinGroupRequest()
	r.Version, r.Group, r.MemberID, r.ProtocolType = version, group, member, "consumer"
	r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = 10000, 60000
	r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte(strings.Repeat("x", size))}}
	w.Out.Reset()
	w.Step(func() { w.M.Join(r, "c", "/h", client("c"), w.Now, &w.Out) })
	for _, reply := range w.Out.Replies {
		return reply.Response.(*kmsg.JoinGroupResponse)
	}
	return nil
}

// Groups that nobody goes on with take a bounded part of memory, and none once
// their member ids are not valid any more.
func TestGroupsWithoutEndAreBounded(t *testing.T) {
	w := newWorld()
	refused := 0
	for i := range 2 * maxUnstored {
		switch code := wire.Code(w.joinAs(4, fmt.Sprint("group-", i), "", 100).ErrorCode); code {
		case wire.MemberIDRequired:
		case wire.CoordinatorNotAvailable:
			refused++
		default:
			t.Fatal(code)
		}
	}
	if len(w.M.groups) > maxUnstored || refused != maxUnstored {
		t.Errorf("%d groups, %d refused", len(w.M.groups), refused)
	}
	w.Pass(11 * time.Second)
	if len(w.M.groups)+len(w.M.unstored) > 0 {
		t.Errorf("%d groups are left, %d unstored", len(w.M.groups), len(w.M.unstored))
	}
	if code := w.joinAs(4, "another", "", 100).ErrorCode; wire.Code(code) != wire.MemberIDRequired {
		t.Errorf("there is room again: %d", code)
	}
}

// Member ids without end, of a group or of many, and huge metadata are bounded too.
func TestMembersWithHugeMetadataAreBounded(t *testing.T) {
	w := newWorld()
	w.c.MaxRecord, w.M.c.MaxRecord = 64<<10, 64<<10
	size := w.c.MaxRecord / 2
	members := 0
	for range 100 {
		if r := w.joinAs(3, "g", "", size); r != nil {
			if wire.Code(r.ErrorCode) != wire.GroupMaxSizeReached {
				t.Fatal(wire.Code(r.ErrorCode))
			}
			break
		}
		members++
	}
	if members < maxHeldRecords || members > 2*maxHeldRecords {
		t.Errorf("%d members with %d bytes each", members, size)
	}
	held := func() (n int) {
		for _, g := range w.M.groups {
			n += g.bytes()
		}
		return n
	}
	for i := range 1000 {
		w.joinAs(3, fmt.Sprint("other-", i), "", size)
	}
	if limit := (maxUnstoredRecords + 1) * w.c.MaxRecord; held() > limit {
		t.Errorf("groups that were never stored hold %d bytes, more than %d", held(), limit)
	}
	w.Pass(10 * time.Minute) // no member goes on
	for i := range 2 * maxHeldRecords * w.c.MaxRecord / memberCost {
		if wire.Code(w.joinAs(4, "ids", "", 10).ErrorCode) == wire.GroupMaxSizeReached {
			return
		}
		if i%1000 == 0 && held() > (maxUnstoredRecords+1)*w.c.MaxRecord {
			break
		}
	}
	t.Errorf("member ids without end: %d bytes", held())
}

// A consumer of KIP-848 whose subscription no record can hold is refused, and
// the group goes on.
func TestConsumersWithHugeSubscriptionsAreRefused(t *testing.T) {
	w := newWorld()
	w.c.MaxRecord, w.M.c.MaxRecord = 1000, 1000
	beat := func(id, topic string) wire.Code {
		t.Helper()
		r := kmsg.NewPtrConsumerGroupHeartbeatRequest()
		r.Group, r.MemberID, r.RebalanceTimeoutMillis, r.SubscribedTopicNames = "g", id, 1000, []string{topic}
		r.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		w.Step(func() { w.M.ConsumerHeartbeat(r, "c", "/h", client("c"), w.Now, &w.Out) })
		return wire.Code(w.Out.Replies[0].Response.(*kmsg.ConsumerGroupHeartbeatResponse).ErrorCode)
	}
	if code := beat("a", "t"); code != wire.None {
		t.Fatal(code)
	}
	if code := beat("b", strings.Repeat("x", 2000)); code != wire.UnknownServerError {
		t.Error(code)
	}
	if c := w.M.groups["g"].consumer; len(c.members) != 1 || c.epoch != 1 {
		t.Errorf("%d members, epoch %d", len(c.members), c.epoch)
	}
}
