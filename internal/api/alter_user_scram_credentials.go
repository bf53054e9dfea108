package api

import (
	"context"
	"maps"
	"slices"

	"barnabas/internal/security"
	"barnabas/internal/wire"
	"barnabas/internal/znode"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 51, Name: "AlterUserScramCredentials", Min: 0, Max: 0, MaxFrame: 16 << 20, Expansion: 16,
	Versions: []string{"sets and deletes SCRAM credentials (KIP-554)"},
	Handle:   handleAlterUserSCRAMCredentials,
})

// credentialChange is a change of one credential; nil credential deletes it.
type credentialChange struct {
	mechanism  *security.SCRAM
	credential *znode.SCRAMCredential
}

// handleAlterUserSCRAMCredentials changes all credentials of a user or none. The
// client has salted the password; the broker never sees it.
func handleAlterUserSCRAMCredentials(b *Broker, q *Request) {
	in := new(kmsg.AlterUserSCRAMCredentialsRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	users := map[string]bool{}
	for _, d := range in.Deletions {
		users[d.Name] = true
	}
	for _, u := range in.Upsertions {
		users[u.Name] = true
	}
	r := kmsg.NewPtrAlterUserSCRAMCredentialsResponse()
	answer := func(user string, e *Error) {
		result := kmsg.AlterUserSCRAMCredentialsResponseResult{User: user}
		message := ""
		if e != nil {
			result.ErrorCode, message = int16(e.Code), e.Message
		}
		result.ErrorMessage = &message
		r.Results = append(r.Results, result)
	}
	if !b.Controller.IsActive() {
		for _, user := range slices.Sorted(maps.Keys(users)) {
			answer(user, refuse(wire.NotController, explain(wire.NotController)))
		}
		q.Reply(r)
		return
	}
	changes, failed := scramChanges(in)
	b.background(q, func(ctx context.Context) {
		for _, user := range slices.Sorted(maps.Keys(users)) {
			e := failed[user]
			if e == nil {
				e = b.refusal("altering credentials of "+user, b.alterCredentials(ctx, user, changes[user]))
			}
			answer(user, e)
		}
		q.Reply(r)
	})
}

// scramChanges checks the request and gathers the changes of each user.
func scramChanges(in *kmsg.AlterUserSCRAMCredentialsRequest) (map[string][]credentialChange, map[string]*Error) {
	changes, failed := map[string][]credentialChange{}, map[string]*Error{}
	check := func(user string, number int8) *security.SCRAM {
		m := scramByNumber(number)
		switch {
		case user == "":
			failed[user] = errEmptyUser
		case m == nil:
			failed[user] = refuse(wire.UnsupportedSASLMechanism, "Unknown SCRAM mechanism")
		case failed[user] != nil:
		case slices.ContainsFunc(changes[user], func(c credentialChange) bool { return c.mechanism == m }):
			failed[user] = refuse(wire.DuplicateResource, "A user credential cannot be altered twice in the same request")
		default:
			return m
		}
		return nil
	}
	for _, u := range in.Upsertions {
		m := check(u.Name, u.Mechanism)
		switch {
		case m == nil:
			continue
		case u.Iterations < m.MinIterations:
			failed[u.Name] = refuse(wire.UnacceptableCredential, "Too few iterations")
		case u.Iterations > security.MaxSCRAMIterations:
			failed[u.Name] = refuse(wire.UnacceptableCredential, "Too many iterations")
		case len(u.SaltedPassword) == 0: // an empty key is no key
			failed[u.Name] = refuse(wire.UnacceptableCredential, "The salted password must not be empty")
		default:
			c := m.Credential(u.Salt, u.SaltedPassword, u.Iterations)
			changes[u.Name] = append(changes[u.Name], credentialChange{m, &c})
		}
	}
	for _, d := range in.Deletions {
		if m := check(d.Name, d.Mechanism); m != nil {
			changes[d.Name] = append(changes[d.Name], credentialChange{m, nil})
		}
	}
	return changes, failed
}

func (b *Broker) alterCredentials(ctx context.Context, user string, changes []credentialChange) error {
	stored, err := b.userConfig(ctx, user)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if c.credential != nil {
			stored[c.mechanism.Name] = c.credential.String()
			continue
		}
		if _, there := stored[c.mechanism.Name]; !there {
			return refuse(wire.ResourceNotFound, "Attempt to delete a user credential that does not exist")
		}
		delete(stored, c.mechanism.Name)
	}
	return b.writeEntityConfig(ctx, znode.UserConfig(znode.EntityName{Name: user}), stored)
}
