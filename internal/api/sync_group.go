package api

import (
	"time"

	"barnabas/internal/coordinator"
	groups "barnabas/internal/coordinator/group"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 14, Name: "SyncGroup", Min: 0, Max: 5, Expansion: 8,
	Versions: []string{
		"the leader's assignment is given out",
		"throttle time",
		"throttled after the answer, not before it (KIP-219)",
		"static members (KIP-345)",
		"flexible",
		"protocol type and name, which must be the group's (KIP-559)",
	},
	Handle: handleSyncGroup,
})

// handleSyncGroup answers when the leader's assignment is stored.
func handleSyncGroup(b *Broker, q *Request) {
	in := new(kmsg.SyncGroupRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	if q.Version >= 5 && (in.ProtocolType == nil || in.Protocol == nil) {
		q.Reply(groups.SyncError(wire.InconsistentGroupProtocol))
		return
	}
	for i := range in.GroupAssignment {
		in.GroupAssignment[i].MemberAssignment = cloneBytes(in.GroupAssignment[i].MemberAssignment)
	}
	q.ReleaseFrame()
	b.askGroup(q, in.Group,
		func(r any) { q.Reply(r.(*kmsg.SyncGroupResponse)) },
		func(code wire.Code) {
			switch code {
			case wire.CoordinatorLoadInProgress, wire.RequestTimedOut:
				code = wire.RebalanceInProgress // the join phase that this belongs to is lost
			}
			q.Reply(groups.SyncError(code))
		},
		func(m *groups.Machine, c coordinator.Caller, now time.Time, out *coordinator.Effects) {
			m.Sync(in, c, now, out)
		})
}
