package api

import (
	"time"

	"barnabas/internal/coordinator"
	groups "barnabas/internal/coordinator/group"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 13, Name: "LeaveGroup", Min: 0, Max: 5, MaxFrame: 16 << 20, Expansion: 16,
	Versions: []string{
		"a member leaves",
		"throttle time",
		"throttled after the answer, not before it (KIP-219)",
		"several members, static ones by their instance id (KIP-345)",
		"flexible",
		"why a member leaves (KIP-800)",
	},
	Handle: handleLeaveGroup,
})

func handleLeaveGroup(b *Broker, q *Request) {
	in := new(kmsg.LeaveGroupRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	b.askGroup(q, in.Group,
		func(r any) { q.Reply(r.(*kmsg.LeaveGroupResponse)) },
		func(code wire.Code) {
			r := kmsg.NewPtrLeaveGroupResponse()
			r.ErrorCode = int16(late(code, wire.CoordinatorNotAvailable))
			q.Reply(r)
		},
		func(m *groups.Machine, c coordinator.Caller, now time.Time, out *coordinator.Effects) {
			m.Leave(in, c, now, out)
		})
}
