package api

import (
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 30, Name: "CreateAcls", Min: 0, Max: 3, MaxFrame: 16 << 20, Expansion: 16, Reuse: true,
	Versions: []string{
		"adds entries to access lists (KIP-140)",
		"kinds of patterns (KIP-290); throttled after the answer (KIP-219)",
		"flexible",
		"users as resources (KIP-373)",
	},
	Handle: handleCreateACLs,
})

func handleCreateACLs(_ *Broker, q *Request) {
	in := kmsg.NewPtrCreateACLsRequest()
	if !q.Decode(in) {
		return
	}
	r := kmsg.NewPtrCreateACLsResponse()
	for _, c := range in.Creations {
		if q.Version == 0 {
			c.ResourcePatternType = kmsg.ACLResourcePatternTypeLiteral
		}
		if !knownACL(c.ResourceType, c.ResourcePatternType, c.Operation, c.PermissionType) {
			q.malformed()
			return
		}
		result := kmsg.NewCreateACLsResponseResult()
		result.ErrorCode, result.ErrorMessage = int16(wire.SecurityDisabled), text(noAuthorizer)
		r.Results = append(r.Results, result)
	}
	q.Reply(r)
}
