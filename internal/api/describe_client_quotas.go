package api

import (
	"context"
	"maps"
	"slices"

	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 48, Name: "DescribeClientQuotas", Min: 0, Max: 1, MaxFrame: 1 << 20, Expansion: 24,
	Versions: []string{
		"quotas that match a filter (KIP-546)",
		"flexible",
	},
	Handle: handleDescribeClientQuotas,
})

func handleDescribeClientQuotas(b *Broker, q *Request) {
	in := new(kmsg.DescribeClientQuotasRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	filter, err := quotaFilterOf(in)
	if err != nil {
		replyQuotas(q, nil, b.refusal("describing quotas", err))
		return
	}
	b.background(q, func(ctx context.Context) {
		entries, err := b.readQuotas(ctx, filter.wants(userPart), filter.wants(clientPart), filter.wants(ipPart))
		entries = slices.DeleteFunc(entries, func(e quotaEntry) bool { return !filter.matches(e.entity) })
		replyQuotas(q, entries, b.refusal("describing quotas", err))
	})
}

func replyQuotas(q *Request, entries []quotaEntry, e *Error) {
	r := kmsg.NewPtrDescribeClientQuotasResponse()
	message := ""
	if e != nil {
		r.ErrorCode, r.ErrorMessage = int16(e.Code), text(e.Message)
		q.Reply(r) // the entries are null then
		return
	}
	r.ErrorMessage = &message
	r.Entries = make([]kmsg.DescribeClientQuotasResponseEntry, len(entries))
	for i, entry := range entries {
		for _, part := range []string{userPart, clientPart, ipPart} {
			if name, ok := entry.entity.parts[part]; ok {
				r.Entries[i].Entity = append(r.Entries[i].Entity, kmsg.DescribeClientQuotasResponseEntryEntity{Type: part, Name: name})
			}
		}
		for _, key := range slices.Sorted(maps.Keys(entry.quotas)) {
			r.Entries[i].Values = append(r.Entries[i].Values, kmsg.DescribeClientQuotasResponseEntryValue{Key: key, Value: entry.quotas[key]})
		}
	}
	q.Reply(r)
}

// quotaFilter is the components of a request by kind of part.
type quotaFilter struct {
	parts  map[string]kmsg.DescribeClientQuotasRequestComponent
	strict bool
}

func quotaFilterOf(in *kmsg.DescribeClientQuotasRequest) (quotaFilter, error) {
	f := quotaFilter{parts: map[string]kmsg.DescribeClientQuotasRequestComponent{}, strict: in.Strict}
	for _, c := range in.Components {
		_, twice := f.parts[c.EntityType]
		switch {
		case c.EntityType == "":
			return f, refuse(wire.InvalidRequest, "Unexpected empty filter component entity type")
		case c.EntityType != userPart && c.EntityType != clientPart && c.EntityType != ipPart:
			return f, refuse(wire.UnsupportedVersion, "Custom entity type '"+c.EntityType+"' not supported")
		case twice:
			return f, refuse(wire.InvalidRequest, "Duplicate "+c.EntityType+" filter component entity type")
		case c.MatchType != kmsg.QuotasMatchTypeExact && c.MatchType != kmsg.QuotasMatchTypeDefault && c.MatchType != kmsg.QuotasMatchTypeAny,
			c.MatchType == kmsg.QuotasMatchTypeExact && c.Match == nil:
			return f, refuse(wire.InvalidRequest, "Unexpected match of the "+c.EntityType+" filter component")
		}
		f.parts[c.EntityType] = c
	}
	if _, ip := f.parts[ipPart]; ip && len(f.parts) > 1 {
		return f, refuse(wire.InvalidRequest, "Invalid entity filter component combination, IP filter component should not be used with user or clientId filter component.")
	}
	return f, nil
}

// wants tells whether entities with this part first can match.
func (f quotaFilter) wants(part string) bool {
	if len(f.parts) == 0 {
		return !f.strict
	}
	_, user := f.parts[userPart]
	_, client := f.parts[clientPart]
	switch part {
	case userPart:
		return user || client
	case clientPart:
		return client && !user
	default:
		return !user && !client
	}
}

// matches tells whether an entity has all parts of the filter and, when it is
// strict, no others.
func (f quotaFilter) matches(e quotaEntity) bool {
	if f.strict && len(f.parts) != len(e.parts) {
		return false
	}
	for part, c := range f.parts {
		name, has := e.parts[part]
		switch {
		case !has,
			c.MatchType == kmsg.QuotasMatchTypeExact && (name == nil || *name != *c.Match),
			c.MatchType == kmsg.QuotasMatchTypeDefault && name != nil:
			return false
		}
	}
	return true
}
