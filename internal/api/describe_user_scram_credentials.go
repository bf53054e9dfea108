package api

import (
	"context"

	"barnabas/internal/security"
	"barnabas/internal/wire"
	"barnabas/internal/znode"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 50, Name: "DescribeUserScramCredentials", Min: 0, Max: 0, MaxFrame: 1 << 20, Expansion: 24,
	Versions: []string{"mechanisms and iterations of users (KIP-554)"},
	Handle:   handleDescribeUserSCRAMCredentials,
})

// handleDescribeUserSCRAMCredentials describes the users that are named, or all
// that have credentials when none is.
func handleDescribeUserSCRAMCredentials(b *Broker, q *Request) {
	in := new(kmsg.DescribeUserSCRAMCredentialsRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	b.background(q, func(ctx context.Context) {
		r := kmsg.NewPtrDescribeUserSCRAMCredentialsResponse()
		message := ""
		r.ErrorMessage = &message
		if err := b.describeCredentials(ctx, in, r); err != nil {
			e := b.refusal("describing credentials", err)
			r.Results = nil
			r.ErrorCode, message = int16(e.Code), e.Message
		}
		q.Reply(r)
	})
}

func (b *Broker) describeCredentials(ctx context.Context, in *kmsg.DescribeUserSCRAMCredentialsRequest, r *kmsg.DescribeUserSCRAMCredentialsResponse) error {
	var users []string
	times := map[string]int{}
	for _, u := range in.Users {
		if times[u.Name]++; times[u.Name] == 1 {
			users = append(users, u.Name)
		}
	}
	if len(in.Users) == 0 {
		var err error
		if users, err = b.scramUsers(ctx); err != nil {
			return err
		}
	}
	for _, user := range users {
		result := kmsg.NewDescribeUserSCRAMCredentialsResponseResult()
		infos, err := b.describeUser(ctx, user, times[user])
		e := b.refusal("describing credentials of "+user, err)
		switch {
		case e == nil:
		case len(in.Users) == 0 && e.Code == wire.ResourceNotFound:
			continue // a user that has quotas alone
		default:
			result.ErrorCode = int16(e.Code)
		}
		message := ""
		if e != nil {
			message = e.Message
		}
		result.User, result.ErrorMessage, result.CredentialInfos = user, &message, infos
		r.Results = append(r.Results, result)
	}
	return nil
}

func (b *Broker) describeUser(ctx context.Context, user string, times int) ([]kmsg.DescribeUserSCRAMCredentialsResponseResultCredentialInfo, error) {
	switch {
	case times > 1:
		return nil, refuse(wire.DuplicateResource, "Cannot describe SCRAM credentials for the same user twice in a single request: "+user)
	case user == "":
		return nil, refuse(wire.ResourceNotFound, errEmptyUser.Message)
	}
	stored, err := b.userConfig(ctx, user)
	if err != nil {
		return nil, err
	}
	var infos []kmsg.DescribeUserSCRAMCredentialsResponseResultCredentialInfo
	for _, m := range security.SCRAMs {
		text, there := stored[m.Name]
		if !there {
			continue
		}
		c, err := znode.ParseSCRAMCredential(text)
		if err != nil {
			b.Log.Warn("a SCRAM credential can't be read", "user", user, "mechanism", m.Name)
			continue
		}
		infos = append(infos, kmsg.DescribeUserSCRAMCredentialsResponseResultCredentialInfo{Mechanism: m.Number, Iterations: int32(c.Iterations)})
	}
	if len(infos) == 0 {
		return nil, refuse(wire.ResourceNotFound, "Attempt to describe a user credential that does not exist: "+user)
	}
	return infos, nil
}
