package api

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

type (
	part      = kmsg.AlterClientQuotasRequestEntryEntity
	quota     = kmsg.AlterClientQuotasRequestEntryOp
	component = kmsg.DescribeClientQuotasRequestComponent
)

func alterQuota(version int16, parts []part, quotas ...quota) step {
	r := kmsg.NewPtrAlterClientQuotasRequest()
	e := kmsg.NewAlterClientQuotasRequestEntry()
	e.Entity, e.Ops = parts, quotas
	r.Entries = append(r.Entries, e)
	return at(version, r)
}

func quotaSteps() []step {
	user := func(n *string) part { return part{Type: "user", Name: n} }
	client := func(n *string) part { return part{Type: "client-id", Name: n} }
	ip := func(n *string) part { return part{Type: "ip", Name: n} }
	set := func(key string, value float64, parts ...part) step {
		return alterQuota(1, parts, quota{Key: key, Value: value})
	}
	const produce, consume, rate = "producer_byte_rate", "consumer_byte_rate", "connection_creation_rate"
	validate := set(consume, 5, client(ptr("vo")))
	validate.req.(*kmsg.AlterClientQuotasRequest).ValidateOnly = true
	several := kmsg.NewPtrAlterClientQuotasRequest()
	for _, name := range []string{"s1", "s1", "s2"} {
		several.Entries = append(several.Entries, kmsg.AlterClientQuotasRequestEntry{Entity: []part{user(&name)}, Ops: []quota{{Key: consume, Value: 9}}})
	}
	return append([]step{
		alterQuota(0, []part{user(ptr("al ice"))}, quota{Key: produce, Value: 1000000}), set("request_percentage", 12.5, user(nil)),
		set(consume, 1e10, user(ptr("al ice")), client(ptr("c/1"))), set(consume, 1, user(ptr("al ice")), client(nil)),
		set("controller_mutation_rate", 3, user(nil), client(nil)), set(consume, 5, client(ptr("c1"))), set(consume, 5, client(nil)),
		set(rate, 5, ip(ptr("10.0.0.1"))), set(rate, 7, ip(nil)), validate, at(1, several),
		set(rate, 7, ip(ptr("10.0.0.1")), user(ptr("a"))), set(produce, 7, ip(ptr("10.0.0.1"))), set(rate, 7, user(ptr("a"))), set("zzz", 7, user(ptr("a"))),
		set(consume, 1.5, user(ptr("a"))), set(consume, 0, user(ptr("a"))), set(consume, -1, user(ptr("a"))), set("request_percentage", 0, user(ptr("a"))),
		set("request_percentage", -3, user(ptr("a"))), set("request_percentage", 1e9, user(ptr("a"))), set("request_percentage", 0.00012, client(ptr("small"))),
		set(consume, 1e30, user(ptr("a"))), set(rate, 1e10, ip(ptr("10.0.0.1"))), set(rate, 1.5, ip(ptr("10.0.0.1"))), set(rate, 0, ip(ptr("10.0.0.2"))),
		set(consume, 1, part{Type: "nope", Name: ptr("a")}), set(consume, 1, user(ptr(""))), set(consume, 1, client(ptr(""))), alterQuota(1, []part{}, quota{Key: consume, Value: 1}),
		set(consume, 1, user(ptr("a")), user(ptr("b"))), set(rate, 1, ip(ptr("999.1.1.1"))),
		alterQuota(1, []part{user(ptr("b"))}, quota{Key: consume, Value: 1}, quota{Key: consume, Remove: true}), alterQuota(1, []part{user(ptr("zz"))}, quota{Key: consume, Remove: true}),
		alterQuota(1, []part{user(ptr("zz"))}, quota{Key: "zzz", Remove: true}), alterQuota(1, []part{user(ptr("zz"))}),
		at(1, kmsg.NewPtrAlterClientQuotasRequest()), rawBody(49, 0, 255, 255, 255, 255, 0),
	}, quotaFilters()...)
}

func quotaFilters() []step {
	filter := func(strict bool, components ...component) step {
		r := kmsg.NewPtrDescribeClientQuotasRequest()
		r.Components, r.Strict = components, strict
		return at(1, r)
	}
	c := func(kind string, match kmsg.QuotasMatchType, name *string) component {
		return component{EntityType: kind, MatchType: match, Match: name}
	}
	const exact, byDefault, anyName = kmsg.QuotasMatchTypeExact, kmsg.QuotasMatchTypeDefault, kmsg.QuotasMatchTypeAny
	v0 := filter(false)
	v0.req.SetVersion(0)
	steps := []step{v0, filter(true)}
	for _, strict := range []bool{false, true} {
		for _, components := range [][]component{
			{c("user", anyName, nil)}, {c("user", byDefault, nil)}, {c("user", exact, ptr("al ice"))}, {c("client-id", exact, ptr("c1"))}, {c("client-id", anyName, nil)},
			{c("client-id", byDefault, nil)}, {c("user", anyName, nil), c("client-id", anyName, nil)}, {c("user", exact, ptr("al ice")), c("client-id", byDefault, nil)},
			{c("user", byDefault, nil), c("client-id", exact, ptr("zz"))}, {c("ip", anyName, nil)}, {c("ip", byDefault, nil)}, {c("ip", exact, ptr("10.0.0.1"))},
			{c("ip", exact, ptr("not an ip"))}, {c("ip", anyName, nil), c("user", anyName, nil)}, {c("user", anyName, nil), c("user", anyName, nil)},
			{c("nope", anyName, nil)}, {c("", anyName, nil)}, {c("user", byDefault, ptr("x"))}, {c("user", anyName, ptr("x"))},
		} {
			steps = append(steps, filter(strict, components...))
		}
	}
	return append(steps,
		filter(false, c("user", exact, ptr(""))),
		otherwise("nobody has an empty name; Kafka fails", filter(true, c("user", exact, ptr("")))),
		otherwise("a match without its name is an invalid request; Kafka fails", filter(false, c("user", exact, nil))),
		otherwise("an unknown match is an invalid request; Kafka fails", filter(false, c("user", 7, nil))),
		rawBody(48, 0, 255, 255, 255, 255, 0))
}

func scramSteps() []step {
	type upsert = kmsg.AlterUserSCRAMCredentialsRequestUpsertion
	type deletion = kmsg.AlterUserSCRAMCredentialsRequestDeletion
	password := []byte(strings.Repeat("s", 32))
	alter := func(deletions []deletion, upserts ...upsert) step {
		r := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
		r.Deletions, r.Upsertions = deletions, upserts
		return at(0, r)
	}
	up := func(name string, mechanism int8, iterations int32) upsert {
		return upsert{Name: name, Mechanism: mechanism, Iterations: iterations, Salt: []byte("salt"), SaltedPassword: password}
	}
	describe := func(users ...string) step {
		r := kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
		for _, u := range users {
			r.Users = append(r.Users, kmsg.DescribeUserSCRAMCredentialsRequestUser{Name: u})
		}
		return at(0, r)
	}
	empty := kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
	empty.Users = []kmsg.DescribeUserSCRAMCredentialsRequestUser{}
	return []step{
		alter(nil, up("alice", 1, 4096), up("alice", 2, 8192)), alter(nil, up("bob", 1, 4095)), alter(nil, up("bob", 1, 16384)), alter(nil, up("bob", 1, 16385)),
		alter(nil, up("bob", 0, 4096)), alter(nil, up("bob", 3, 4096)), alter(nil, up("", 1, 4096)), alter(nil, up("dup", 1, 4096), up("dup", 1, 4096)),
		otherwise("an empty salted password is an unacceptable credential; Kafka fails", alter(nil, upsert{Name: "bob", Mechanism: 1, Iterations: 4096})),
		alter([]deletion{{Name: "dup", Mechanism: 1}}, up("dup", 1, 4096)), alter([]deletion{{Name: "dup", Mechanism: 2}}, up("dup", 1, 4096)),
		alter([]deletion{{Name: "nobody", Mechanism: 1}}), alter([]deletion{{Name: "alice", Mechanism: 0}}),
		alter([]deletion{{Name: "alice", Mechanism: 1}}), alter(nil, up("carol x", 1, 4096)), alter(nil),
		alter([]deletion{{Name: "z", Mechanism: 1}, {Name: "", Mechanism: 1}, {Name: "a", Mechanism: 9}}),
		describe(), at(0, empty), describe("alice"), describe("alice", "nobody", "", "bob"), describe("alice", "alice"), describe("alice", "alice", "bob"),
		rawBody(51, 0, 0, 1, 0),
	}
}
