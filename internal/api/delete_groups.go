package api

import (
	"time"

	"barnabas/internal/coordinator"
	groups "barnabas/internal/coordinator/group"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 42, Name: "DeleteGroups", Min: 0, Max: 2, MaxFrame: 16 << 20, Expansion: 8,
	Versions: []string{
		"groups without members and all their offsets are deleted (KIP-229)",
		"throttled after the answer, not before it (KIP-219)",
		"flexible",
	},
	Handle: handleDeleteGroups,
})

func handleDeleteGroups(b *Broker, q *Request) {
	in := new(kmsg.DeleteGroupsRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	r := kmsg.NewPtrDeleteGroupsResponse()
	r.Groups = make([]kmsg.DeleteGroupsResponseGroup, len(in.Groups))
	all := gatherOf(q, len(in.Groups), func() { q.Reply(r) })
	for i, id := range in.Groups {
		at := &r.Groups[i]
		at.Group = id
		c := all.call(
			func(answer any) { at.ErrorCode = int16(answer.(wire.Code)) },
			func(code wire.Code) { at.ErrorCode = int16(code) })
		b.atGroup(id, c, func(m *groups.Machine, _ time.Time, out *coordinator.Effects) { m.Delete(id, c, out) })
	}
}
