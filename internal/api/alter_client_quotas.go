package api

import (
	"context"

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

// handleAlterClientQuotas writes the quotas' nodes. When an entity comes more
// than once the last wins, as in Kafka.
func handleAlterClientQuotas(b *Broker, q *Request) {
	in := new(kmsg.AlterClientQuotasRequest)
	in.Default()
	if !q.Decode(in) {
		return
	}
	b.background(q, func(ctx context.Context) {
		r := kmsg.NewPtrAlterClientQuotasResponse()
		last := map[any]int{}
		keys := make([]any, len(in.Entries))
		for i := range in.Entries {
			keys[i] = entityKey(entityOf(in.Entries[i].Entity))
			last[keys[i]] = i
		}
		for i := range in.Entries {
			if last[keys[i]] != i {
				continue
			}
			entity := entityOf(in.Entries[i].Entity)
			answer := kmsg.NewAlterClientQuotasResponseEntry()
			for _, part := range []string{clientPart, userPart, ipPart} {
				if name, ok := entity.parts[part]; ok {
					answer.Entity = append(answer.Entity, kmsg.AlterClientQuotasResponseEntryEntity{Type: part, Name: name})
				}
			}
			for part, name := range entity.parts {
				if part != clientPart && part != userPart && part != ipPart {
					answer.Entity = append(answer.Entity, kmsg.AlterClientQuotasResponseEntryEntity{Type: part, Name: name})
				}
			}
			err := b.alterQuotas(ctx, entity, in.Entries[i].Ops, in.ValidateOnly)
			if e := b.refusal("altering quotas", err); e != nil {
				answer.ErrorCode, answer.ErrorMessage = int16(e.Code), text(e.Message)
			}
			r.Entries = append(r.Entries, answer)
		}
		q.Reply(r)
	})
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
