package api

import (
	"context"
	"maps"
	"slices"

	"barnabas/internal/config"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 49, Name: "AlterClientQuotas", Min: 0, Max: 1, MaxFrame: 16 << 20, Expansion: 24,
	Versions: []string{
		"quotas of users, client ids and addresses (KIP-546)",
		"flexible",
	},
	Handle: handleAlterClientQuotas,
})

// handleAlterClientQuotas writes the quotas' nodes, entry by entry. An entity
// that comes more than once is answered once, for its last entry, as in Kafka.
func handleAlterClientQuotas(b *Broker, q *Request) {
	in := new(kmsg.AlterClientQuotasRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	b.background(q, func(ctx context.Context) {
		r := kmsg.NewPtrAlterClientQuotasResponse()
		place := map[any]int{}
		for i := range in.Entries {
			entity := entityOf(in.Entries[i].Entity)
			err := b.alterQuotas(ctx, entity, in.Entries[i].Ops, in.ValidateOnly)
			answer := quotaAnswer(entity, b.refusal("altering quotas", err))
			key := entityKey(entity)
			if at, twice := place[key]; twice {
				r.Entries[at] = answer
				continue
			}
			place[key] = len(r.Entries)
			r.Entries = append(r.Entries, answer)
		}
		q.Reply(r)
	})
}

func quotaAnswer(entity quotaEntity, e *Error) kmsg.AlterClientQuotasResponseEntry {
	answer := kmsg.NewAlterClientQuotasResponseEntry()
	for _, part := range slices.Sorted(maps.Keys(entity.parts)) {
		answer.Entity = append(answer.Entity, kmsg.AlterClientQuotasResponseEntryEntity{Type: part, Name: entity.parts[part]})
	}
	if e != nil {
		answer.ErrorCode, answer.ErrorMessage = int16(e.Code), text(e.Message)
	}
	return answer
}

func entityOf(parts []kmsg.AlterClientQuotasRequestEntryEntity) quotaEntity {
	e := quotaEntity{parts: map[string]*string{}}
	for _, p := range parts {
		e.parts[p.Type] = p.Name // the last of a kind wins
	}
	return e
}

// entityKey is equal for equal entities that can be altered.
func entityKey(e quotaEntity) any {
	if e.check() != nil {
		return &e // each refused on its own
	}
	return e.node()
}

func (b *Broker) alterQuotas(ctx context.Context, e quotaEntity, ops []kmsg.AlterClientQuotasRequestEntryOp, validateOnly bool) error {
	if err := e.check(); err != nil {
		return err
	}
	stored, err := b.entityConfig(ctx, e.node())
	if err != nil {
		return err
	}
	for _, op := range ops {
		if op.Remove {
			delete(stored, op.Key)
			continue
		}
		t, known := quotaType(e.kind(), op.Key)
		if !known {
			return refuse(wire.InvalidRequest, "Invalid configuration key "+op.Key)
		}
		value, fits := quotaText(t, op.Value)
		if !fits {
			name := map[config.Type]string{config.TypeLong: "LONG", config.TypeInt: "INT"}[t]
			return refuse(wire.InvalidRequest, "Configuration "+op.Key+" must be a "+name+" value")
		}
		stored[op.Key] = value
	}
	if validateOnly {
		return nil
	}
	return b.writeEntityConfig(ctx, e.node(), stored)
}
