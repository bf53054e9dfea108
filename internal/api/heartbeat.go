package api

import (
	"time"

	"barnabas/internal/coordinator"
	groups "barnabas/internal/coordinator/group"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 12, Name: "Heartbeat", Min: 0, Max: 4, MaxFrame: 1 << 20, Expansion: 4, Reuse: true, Brief: true,
	Versions: []string{
		"a member is alive",
		"throttle time",
		"throttled after the answer, not before it (KIP-219)",
		"static members (KIP-345)",
		"flexible",
	},
	Handle: handleHeartbeat,
})

func handleHeartbeat(b *Broker, q *Request) {
	in := new(kmsg.HeartbeatRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	b.askGroup(q, in.Group,
		func(r any) { q.Reply(r.(*kmsg.HeartbeatResponse)) },
		func(code wire.Code) {
			r := kmsg.NewPtrHeartbeatResponse()
			if code != wire.CoordinatorLoadInProgress { // then nobody knows better: let the member go on
				r.ErrorCode = int16(code)
			}
			q.Reply(r)
		},
		func(m *groups.Machine, c coordinator.Caller, now time.Time, out *coordinator.Effects) {
			m.Heartbeat(in, c, now, out)
		})
}
