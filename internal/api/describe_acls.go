package api

import (
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 29, Name: "DescribeAcls", Min: 0, Max: 3, MaxFrame: 64 << 10, Expansion: 8, Reuse: true,
	Versions: []string{
		"the access lists that a filter matches (KIP-140)",
		"kinds of patterns (KIP-290); throttled after the answer (KIP-219)",
		"flexible",
		"users as resources (KIP-373)",
	},
	Handle: handleDescribeACLs,
})

// noAuthorizer is the text of SECURITY_DISABLED, which a broker without
// authorizer.class.name answers.
const noAuthorizer = "No Authorizer is configured on the broker"

func handleDescribeACLs(_ *Broker, q *Request) {
	in := kmsg.NewPtrDescribeACLsRequest()
	if !q.Decode(in) {
		return
	}
	if !knownACL(in.ResourceType, in.ResourcePatternType, in.Operation, in.PermissionType) {
		q.malformed()
		return
	}
	r := kmsg.NewPtrDescribeACLsResponse()
	r.ErrorCode, r.ErrorMessage = int16(wire.SecurityDisabled), text(noAuthorizer)
	q.Reply(r)
}

// knownACL tells whether Kafka has names for these; it closes the connection of
// a request with others (CreateAclsRequest.validate and its kin).
func knownACL(resource kmsg.ACLResourceType, pattern kmsg.ACLResourcePatternType, operation kmsg.ACLOperation, permission kmsg.ACLPermissionType) bool {
	const (
		resources   = 7  // User
		patterns    = 4  // PREFIXED
		operations  = 14 // DESCRIBE_TOKENS
		permissions = 3  // ALLOW
	)
	in := func(v int8, most int8) bool { return v > 0 && v <= most }
	return in(int8(resource), resources) && in(int8(pattern), patterns) && in(int8(operation), operations) && in(int8(permission), permissions)
}
