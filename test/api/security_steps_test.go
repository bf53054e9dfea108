package api

import "github.com/twmb/franz-go/pkg/kmsg"

// securitySteps are requests for access lists and tokens, and for the group
// protocol of KIP-848, at a broker that has all of them off.
func securitySteps() []step {
	var steps []step
	for version := range int16(4) {
		describe := kmsg.NewPtrDescribeACLsRequest()
		describe.ResourceType, describe.Operation, describe.PermissionType = kmsg.ACLResourceTypeAny, kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
		create, remove := kmsg.NewPtrCreateACLsRequest(), kmsg.NewPtrDeleteACLsRequest()
		steps = append(steps, at(version, describe), at(version, create), at(version, remove))
		create, remove = kmsg.NewPtrCreateACLsRequest(), kmsg.NewPtrDeleteACLsRequest()
		for range 2 {
			c, f := kmsg.NewCreateACLsRequestCreation(), kmsg.NewDeleteACLsRequestFilter()
			c.ResourceType, c.ResourceName, c.Principal, c.Host = kmsg.ACLResourceTypeTopic, "t", "User:a", "*"
			c.Operation, c.PermissionType = kmsg.ACLOperationRead, kmsg.ACLPermissionTypeAllow
			f.ResourceType, f.Operation, f.PermissionType = kmsg.ACLResourceTypeAny, kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
			create.Creations, remove.Filters = append(create.Creations, c), append(remove.Filters, f)
		}
		steps = append(steps, at(version, create), at(version, remove))
		// Kinds that Kafka has no name for.
		steps = append(steps, at(version, kmsg.NewPtrDescribeACLsRequest()))
		create, remove = kmsg.NewPtrCreateACLsRequest(), kmsg.NewPtrDeleteACLsRequest()
		create.Creations = []kmsg.CreateACLsRequestCreation{kmsg.NewCreateACLsRequestCreation()}
		remove.Filters = []kmsg.DeleteACLsRequestFilter{kmsg.NewDeleteACLsRequestFilter()}
		steps = append(steps, at(version, create), at(version, remove))

		token := kmsg.NewPtrCreateDelegationTokenRequest()
		steps = append(steps, at(version, token))
		token = kmsg.NewPtrCreateDelegationTokenRequest()
		token.OwnerPrincipalType, token.OwnerPrincipalName = ptr("User"), ptr("a")
		token.Renewers = []kmsg.CreateDelegationTokenRequestRenewer{{PrincipalType: "Robot", PrincipalName: "b"}}
		steps = append(steps, at(version, token))
		tokens := kmsg.NewPtrDescribeDelegationTokenRequest()
		steps = append(steps, at(version, tokens))
		tokens = kmsg.NewPtrDescribeDelegationTokenRequest()
		tokens.Owners = []kmsg.DescribeDelegationTokenRequestOwner{}
		steps = append(steps, at(version, tokens))
		tokens = kmsg.NewPtrDescribeDelegationTokenRequest()
		tokens.Owners = []kmsg.DescribeDelegationTokenRequestOwner{{PrincipalType: "User", PrincipalName: "a"}}
		steps = append(steps, at(version, tokens))
	}
	for version := range int16(3) {
		renew, expire := kmsg.NewPtrRenewDelegationTokenRequest(), kmsg.NewPtrExpireDelegationTokenRequest()
		renew.HMAC, renew.RenewTimeMillis = []byte{1}, -1
		expire.HMAC, expire.ExpiryPeriodMillis = []byte{1}, -1
		steps = append(steps, at(version, renew), at(version, expire))
	}
	beat := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	beat.Group, beat.SubscribedTopicNames = "g", []string{"t"}
	groups := kmsg.NewPtrConsumerGroupDescribeRequest()
	groups.Groups = []string{"g", "h"}
	return append(steps, at(0, kmsg.NewPtrConsumerGroupHeartbeatRequest()), at(0, beat), at(0, kmsg.NewPtrConsumerGroupDescribeRequest()), at(0, groups))
}
