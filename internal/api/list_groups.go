package api

import (
	"sync/atomic"
	"time"

	"barnabas/internal/coordinator"
	groups "barnabas/internal/coordinator/group"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 16, Name: "ListGroups", Min: 0, Max: 5, MaxFrame: 1 << 20, Expansion: 8,
	Versions: []string{
		"the groups that this broker coordinates",
		"throttle time",
		"throttled after the answer, not before it (KIP-219)",
		"flexible",
		"states, and a filter by them (KIP-518)",
		"types, and a filter by them (KIP-848)",
	},
	Handle: handleListGroups,
})

// handleListGroups tells of all groups here. While some partitions are loaded,
// it says so, since the list is not whole.
func handleListGroups(b *Broker, q *Request) {
	in := new(kmsg.ListGroupsRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	r := kmsg.NewPtrListGroupsResponse()
	partitions, loading := b.Groups.Led()
	if loading {
		r.ErrorCode = int16(wire.CoordinatorLoadInProgress)
		q.Reply(r)
		return
	}
	found := make([][]kmsg.ListGroupsResponseGroup, len(partitions))
	var failed atomic.Int32 // a code: the list would not be whole
	all := gatherOf(q, len(partitions), func() {
		r.ErrorCode = int16(failed.Load())
		for _, groups := range found {
			r.Groups = append(r.Groups, groups...)
		}
		q.Reply(r)
	})
	for i, partition := range partitions {
		c := all.call(
			func(answer any) { found[i] = answer.([]kmsg.ListGroupsResponseGroup) },
			func(code wire.Code) {
				if code != wire.NotCoordinator { // then its groups are another broker's now
					failed.Store(int32(code))
				}
			})
		b.Groups.Do(partition, c, func(m *groups.Machine, _ time.Time, out *coordinator.Effects) {
			m.List(in.StatesFilter, in.TypesFilter, c, out)
		})
	}
}
