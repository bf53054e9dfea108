package api

import (
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 31, Name: "DeleteAcls", Min: 0, Max: 3, MaxFrame: 16 << 20, Expansion: 16, Reuse: true,
	Versions: []string{
		"removes the entries of access lists that filters match (KIP-140)",
		"kinds of patterns (KIP-290); throttled after the answer (KIP-219)",
		"flexible",
		"users as resources (KIP-373)",
	},
	Handle: handleDeleteACLs,
})

func handleDeleteACLs(_ *Broker, q *Request) {
	in := kmsg.NewPtrDeleteACLsRequest()
	if !q.Decode(in) {
		return
	}
	r := kmsg.NewPtrDeleteACLsResponse()
	for _, f := range in.Filters {
		if q.Version == 0 {
			f.ResourcePatternType = kmsg.ACLResourcePatternTypeLiteral
		}
		if !knownACL(f.ResourceType, f.ResourcePatternType, f.Operation, f.PermissionType) {
			q.malformed()
			return
		}
		result := kmsg.NewDeleteACLsResponseResult()
		result.ErrorCode, result.ErrorMessage = int16(wire.SecurityDisabled), text(noAuthorizer)
		r.Results = append(r.Results, result)
	}
	q.Reply(r)
}
