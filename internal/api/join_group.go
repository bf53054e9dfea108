package api

import (
	"time"

	"barnabas/internal/coordinator"
	groups "barnabas/internal/coordinator/group"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 11, Name: "JoinGroup", Min: 0, Max: 9, Expansion: 8,
	Versions: []string{
		"members of a group gather; one leads",
		"rebalance timeout",
		"throttle time",
		"throttled after the answer, not before it (KIP-219)",
		"a new member asks again with the id it was given (KIP-394)",
		"static members (KIP-345)",
		"flexible",
		"the protocol type in the answer (KIP-559)",
		"why a member joins (KIP-800)",
		"a static leader that has nothing to assign (KIP-814)",
	},
	Handle: handleJoinGroup,
})

// handleJoinGroup answers when the join phase is over.
func handleJoinGroup(b *Broker, q *Request) {
	in := new(kmsg.JoinGroupRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	for i := range in.Protocols {
		in.Protocols[i].Metadata = cloneBytes(in.Protocols[i].Metadata)
	}
	q.ReleaseFrame()
	clientID, host := q.ClientID, clientHost(q)
	b.askGroup(q, in.Group,
		func(r any) { q.Reply(r.(*kmsg.JoinGroupResponse)) },
		func(code wire.Code) { q.Reply(groups.JoinError(in.MemberID, late(code, wire.RebalanceInProgress))) },
		func(m *groups.Machine, c coordinator.Caller, now time.Time, out *coordinator.Effects) {
			m.Join(in, clientID, host, c, now, out)
		})
}
