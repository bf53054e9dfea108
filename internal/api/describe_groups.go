package api

import (
	"time"

	"barnabas/internal/coordinator"
	groups "barnabas/internal/coordinator/group"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 15, Name: "DescribeGroups", Min: 0, Max: 5, MaxFrame: 16 << 20, Expansion: 8,
	Versions: []string{
		"state, members and assignments",
		"throttle time",
		"throttled after the answer, not before it (KIP-219)",
		"authorized operations (KIP-430)",
		"static members (KIP-345)",
		"flexible",
	},
	Handle: handleDescribeGroups,
})

// groupOperations are what may be done to a group: READ, DELETE, DESCRIBE.
const groupOperations = 1<<3 | 1<<6 | 1<<8

func handleDescribeGroups(b *Broker, q *Request) {
	in := new(kmsg.DescribeGroupsRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	r := kmsg.NewPtrDescribeGroupsResponse()
	r.Groups = make([]kmsg.DescribeGroupsResponseGroup, len(in.Groups))
	all := gatherOf(q, len(in.Groups), func() { q.Reply(r) })
	for i, id := range in.Groups {
		at := &r.Groups[i]
		c := all.call(
			func(answer any) {
				*at = *answer.(*kmsg.DescribeGroupsResponseGroup)
				at.AuthorizedOperations = noOperations
				if in.IncludeAuthorizedOperations {
					at.AuthorizedOperations = groupOperations
				}
			},
			func(code wire.Code) {
				*at = kmsg.NewDescribeGroupsResponseGroup()
				at.Group, at.ErrorCode = id, int16(code)
			})
		b.atGroup(id, c, func(m *groups.Machine, _ time.Time, out *coordinator.Effects) { m.Describe(id, c, out) })
	}
}
