package api

import (
	"math"
	"strings"
	"testing"

	"barnabas/internal/config"
	"barnabas/internal/coordinator"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestTopicNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "A.b_c-9": true, strings.Repeat("x", 249): true, "...": true,
		"": false, ".": false, "..": false, strings.Repeat("x", 250): false, "a/b": false, "a b": false, "ä": false, "a\x00": false,
	} {
		if (badTopicName(name) == "") != ok {
			t.Errorf("%q: %q", name, badTopicName(name))
		}
	}
	if !collide("a.b", "a_b") || collide("a.b", "a.b") || collide("a.b", "a-b") || mayCollide("ab-c") {
		t.Error("'.' and '_' collide, nothing else does")
	}
}

func TestAssignments(t *testing.T) {
	for _, c := range []struct {
		m  map[int32][]int32
		ok bool
	}{
		{map[int32][]int32{0: {1, 2}, 1: {2, 1}}, true}, {map[int32][]int32{0: {1}, 2: {1}}, false}, {map[int32][]int32{-1: {1}}, false},
		{map[int32][]int32{0: {1}, 1: {1, 2}}, false}, {map[int32][]int32{0: {1, 1}}, false}, {map[int32][]int32{0: {}}, false}, {map[int32][]int32{0: {-3}}, false},
	} {
		if _, err := checkAssignment(c.m); (err == nil) != c.ok {
			t.Errorf("%v: %v", c.m, err)
		}
	}
}

// The hashes are those of Java's String.hashCode, made positive by Utils.abs.
func TestCoordinatorHash(t *testing.T) {
	for key, want := range map[string]uint32{"": 0, "a": 97, "gr5": 102570, "polygenelubricants": 0, "my-group": 1906497762, "é😀": 1996812} {
		if got := uint32(coordinator.PartitionOf(key, math.MaxInt32)); got != want {
			t.Errorf("%q: %d, want %d", key, got, want)
		}
	}
}

func TestQuotaValuesAsKafkaWritesThem(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.0", 3: "3.0", 12.5: "12.5", 1e6: "1000000.0", 1e7: "1.0E7", 123456789: "1.23456789E8", 0.001: "0.001", 0.00012: "1.2E-4", -2: "-2.0", 1e9: "1.0E9",
	} {
		if got := javaDouble(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	for _, c := range []struct {
		t    config.Type
		v    float64
		want string
	}{
		{config.TypeLong, 1e10, "10000000000"}, {config.TypeLong, 0, "0"}, {config.TypeLong, 1.5, ""}, {config.TypeLong, -1, ""}, {config.TypeLong, 1e30, ""}, {config.TypeLong, math.NaN(), ""},
		{config.TypeInt, 5, "5"}, {config.TypeInt, 1e10, ""}, {config.TypeInt, math.Inf(1), ""},
	} {
		if got, ok := quotaText(c.t, c.v); ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%v: %q %v, want %q", c.v, got, ok, c.want)
		}
	}
}

// The keys are those that Kafka 3.9.1 stored for the same salted passwords.
func TestSCRAMCredential(t *testing.T) {
	password := []byte(strings.Repeat("s", 64))
	got := scramByNumber(2).Credential([]byte("salt"), password, 8192).String()
	want := "salt=c2FsdA==,stored_key=bCzg9WTJfqu6rHHdM7YEFAMZDDm6Dq9r47NejDDfJcoJydKZnJz5haaNUk3GKlXOZyTOLhykpQ6tG1aEOr1D5Q==," +
		"server_key=d9RJYBsBx8EQd62NWZC9h7nywuQr1fiU9+DqOopsXpqiMg44eaLd2w4OIZJ+Ob6pvxp1cjyT0pEdcZqnmmh5Vg==,iterations=8192"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	got = scramByNumber(1).Credential([]byte("salt"), password[:32], 4096).String()
	want = "salt=c2FsdA==,stored_key=lxYfhO2tTVuZTBuiSXuHhh7jbU20+UHsYgCvxfThgzc=,server_key=KiWp8bLpBKTiHQ42vNpp/K9RLWMk8XQiWbz6Um9hUnI=,iterations=4096"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestIncrementalChanges(t *testing.T) {
	value := func(s string) *string { return &s }
	const set, del, add, sub = kmsg.IncrementalAlterConfigOpSet, kmsg.IncrementalAlterConfigOpDelete, kmsg.IncrementalAlterConfigOpAppend, kmsg.IncrementalAlterConfigOpSubtract
	for _, c := range []struct {
		from map[string]string
		op   kmsg.IncrementalAlterConfigOp
		key  string
		v    *string
		want string // "-": the key is gone; "!": refused
	}{
		{nil, set, "retention.ms", value("5"), "5"}, {map[string]string{"retention.ms": "5"}, del, "retention.ms", nil, "-"}, {nil, del, "zzz", nil, "-"},
		{nil, add, "cleanup.policy", value("compact"), "delete,compact"}, {map[string]string{"cleanup.policy": "compact"}, add, "cleanup.policy", value("compact,delete"), "compact,delete"},
		{nil, sub, "cleanup.policy", value("delete"), ""}, {map[string]string{"cleanup.policy": ""}, add, "cleanup.policy", value("delete"), "delete"},
		{nil, add, "retention.ms", value("5"), "!"}, {nil, sub, "retention.ms", value("5"), "!"}, {nil, add, "zzz", value("5"), "!"}, {nil, 9, "cleanup.policy", value("5"), "!"},
	} {
		props := map[string]string{}
		for k, v := range c.from {
			props[k] = v
		}
		err := applyChanges(props, []configChange{{Name: c.key, Op: c.op, Value: c.v}}, config.TopicDefinitions())
		got, there := props[c.key]
		switch {
		case err != nil:
			got = "!"
		case !there:
			got = "-"
		}
		if got != c.want {
			t.Errorf("%v on %v: %q (%v), want %q", c.op, c.from, got, err, c.want)
		}
	}
}

func TestQuotaFilters(t *testing.T) {
	name := "a"
	entities := []quotaEntity{
		{map[string]*string{userPart: &name}}, {map[string]*string{userPart: nil}}, {map[string]*string{userPart: &name, clientPart: nil}}, {map[string]*string{ipPart: nil}},
	}
	c := func(kind string, match kmsg.QuotasMatchType) kmsg.DescribeClientQuotasRequestComponent {
		return kmsg.DescribeClientQuotasRequestComponent{EntityType: kind, MatchType: match, Match: &name}
	}
	for _, test := range []struct {
		strict     bool
		components []kmsg.DescribeClientQuotasRequestComponent
		want       string // for each entity
	}{
		{false, nil, "yyyy"}, {true, nil, "nnnn"},
		{false, []kmsg.DescribeClientQuotasRequestComponent{c(userPart, kmsg.QuotasMatchTypeAny)}, "yyyn"},
		{true, []kmsg.DescribeClientQuotasRequestComponent{c(userPart, kmsg.QuotasMatchTypeAny)}, "yynn"},
		{false, []kmsg.DescribeClientQuotasRequestComponent{c(userPart, kmsg.QuotasMatchTypeExact)}, "ynyn"},
		{true, []kmsg.DescribeClientQuotasRequestComponent{c(userPart, kmsg.QuotasMatchTypeDefault)}, "nynn"},
		{true, []kmsg.DescribeClientQuotasRequestComponent{c(userPart, kmsg.QuotasMatchTypeExact), c(clientPart, kmsg.QuotasMatchTypeDefault)}, "nnyn"},
	} {
		f, err := quotaFilterOf(&kmsg.DescribeClientQuotasRequest{Components: test.components, Strict: test.strict})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, e := range entities {
			if f.matches(e) {
				got += "y"
			} else {
				got += "n"
			}
		}
		if got != test.want {
			t.Errorf("strict %v %v: %s, want %s", test.strict, test.components, got, test.want)
		}
	}
}

func TestGroupsThatMakeNoPathAreRefused(t *testing.T) {
	for group, ok := range map[string]bool{"g": true, "a/b": true, "": false, "a//b": false, ".": false, "a/..": false, "/a": false, "a\x00b": false, "\ue000": false, "grüppe": true} {
		if groupInPath(group) != ok {
			t.Errorf("%q", group)
		}
	}
}

func TestCodesForOldClientsStayInTheirRange(t *testing.T) {
	b := handlersBroker(t, nil)
	if c := b.oldClientCode("", refuse(wire.InvalidConfig, "")); c != wire.UnknownServerError {
		t.Error(c)
	}
	if c := b.oldClientCode("", refuse(wire.UnknownTopicOrPartition, "")); c != wire.UnknownTopicOrPartition {
		t.Error(c)
	}
}
