package znode

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"barnabas/internal/wire"
)

func ptr[T any](v T) *T { return &v }

func check[T any](t *testing.T, what string, decode func([]byte) (T, error), data string, want T) {
	t.Helper()
	got, err := decode([]byte(data))
	if err != nil {
		t.Errorf("%s: %v", what, err)
	} else if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

func refuse[T any](t *testing.T, what string, decode func([]byte) (T, error), data string, cause error) {
	t.Helper()
	got, err := decode([]byte(data))
	if !errors.Is(err, cause) {
		t.Errorf("%s: got %+v, %v, want %v", what, got, err, cause)
	}
	if err != nil && !reflect.ValueOf(got).IsZero() {
		t.Errorf("%s: a value beside the error: %+v", what, got)
	}
}

func TestBrokerVersions(t *testing.T) {
	plain := Endpoint{"PLAINTEXT", "PLAINTEXT", "h", 9092}
	check(t, "v1", DecodeBroker, `{"version":1,"host":"h","port":9092,"jmx_port":9999,"timestamp":"5"}`,
		Broker{Version: 1, Endpoints: []Endpoint{plain}, Host: "h", Port: 9092, JMXPort: 9999, Timestamp: 5})
	check(t, "v2", DecodeBroker, `{"version":2,"host":"h","port":9092,"jmx_port":-1,"timestamp":"5","endpoints":["PLAINTEXT://h:9092","SSL://[::1]:9093"]}`,
		Broker{Version: 2, Endpoints: []Endpoint{plain, {"SSL", "SSL", "::1", 9093}}, Host: "h", Port: 9092, JMXPort: -1, Timestamp: 5})
	check(t, "v3", DecodeBroker, `{"version":3,"host":"h","port":9092,"jmx_port":-1,"timestamp":"5","endpoints":["PLAINTEXT://h:9092"],"rack":"r"}`,
		Broker{Version: 3, Endpoints: []Endpoint{plain}, Host: "h", Port: 9092, JMXPort: -1, Timestamp: 5, Rack: ptr("r")})
	check(t, "v4 without PLAINTEXT", DecodeBroker, `{"version":4,"host":null,"port":-1,"jmx_port":-1,"timestamp":"x","endpoints":["client://:9092"],"listener_security_protocol_map":{"CLIENT":"SASL_SSL"},"rack":null,"new":[{"a":1.5e3}]}`,
		Broker{Version: 4, Endpoints: []Endpoint{{"CLIENT", "SASL_SSL", "", 9092}}, Port: -1, JMXPort: -1})
	check(t, "v5 as 3.x writes it", DecodeBroker, `{"features":{"f":{"min_version":1,"max_version":3}},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"endpoints":["PLAINTEXT://127.0.0.1:9092"],"jmx_port":-1,"port":9092,"host":"127.0.0.1","version":5,"timestamp":"1623250802168"}`,
		Broker{Version: 5, Endpoints: []Endpoint{{"PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092}}, Host: "127.0.0.1", Port: 9092, JMXPort: -1, Timestamp: 1623250802168,
			Features: map[string]VersionRange{"f": {1, 3}}})
	for what, data := range map[string]string{
		"no version":           `{"host":"h","port":1,"jmx_port":-1}`,
		"no jmx_port":          `{"version":1,"host":"h","port":1}`,
		"v1 null host":         `{"version":1,"host":null,"port":1,"jmx_port":-1}`,
		"v4 without endpoints": `{"jmx_port":-1,"host":"192.168.100.21","timestamp":"1533452008040","port":9092,"version":4}`,
		"unmapped listener":    `{"version":4,"jmx_port":-1,"endpoints":["A://h:1"],"listener_security_protocol_map":{}}`,
		"unknown protocol":     `{"version":2,"jmx_port":-1,"endpoints":["A://h:1"]}`,
		"no endpoint":          `{"version":2,"jmx_port":-1,"endpoints":["h:1"]}`,
		"big port":             `{"version":1,"host":"h","port":2147483648,"jmx_port":-1}`,
		"fraction":             `{"version":1.0,"host":"h","port":1,"jmx_port":-1}`,
	} {
		refuse(t, what, DecodeBroker, data, ErrFormat)
	}
	refuse(t, "version 0", DecodeBroker, `{"version":0,"jmx_port":-1}`, ErrVersion)
}

func TestBrokerEncodeChoosesTheLayoutOfItsVersion(t *testing.T) {
	endpoints := []Endpoint{{"SSL", "SSL", "h", 9093}, {"IN", "PLAINTEXT", "fe80::1", 9092}}
	for version, want := range map[int32]string{
		1: `{"jmx_port":-1,"port":9092,"host":"fe80::1","version":1,"timestamp":"7"}`,
		2: `{"endpoints":["SSL://h:9093","IN://[fe80::1]:9092"],"jmx_port":-1,"port":9092,"host":"fe80::1","version":2,"timestamp":"7"}`,
		3: `{"endpoints":["SSL://h:9093","IN://[fe80::1]:9092"],"rack":"r\"1","jmx_port":-1,"port":9092,"host":"fe80::1","version":3,"timestamp":"7"}`,
		4: `{"listener_security_protocol_map":{"SSL":"SSL","IN":"PLAINTEXT"},"endpoints":["SSL://h:9093","IN://[fe80::1]:9092"],"rack":"r\"1","jmx_port":-1,"port":9092,"host":"fe80::1","version":4,"timestamp":"7"}`,
		5: `{"features":{},"listener_security_protocol_map":{"SSL":"SSL","IN":"PLAINTEXT"},"endpoints":["SSL://h:9093","IN://[fe80::1]:9092"],"rack":"r\"1","jmx_port":-1,"port":9092,"host":"fe80::1","version":5,"timestamp":"7"}`,
	} {
		if got := string(NewBroker(version, endpoints, ptr(`r"1`), 7).Encode()); got != want {
			t.Errorf("v%d:\n got %s\nwant %s", version, got, want)
		}
	}
	got := string(NewBroker(5, endpoints[:1], nil, 7).Encode())
	want := `{"features":{},"listener_security_protocol_map":{"SSL":"SSL"},"endpoints":["SSL://h:9093"],"jmx_port":-1,"port":-1,"host":null,"version":5,"timestamp":"7"}`
	if got != want {
		t.Errorf("without PLAINTEXT:\n got %s\nwant %s", got, want)
	}
}

func TestTopicVersions(t *testing.T) {
	id, _ := wire.ParseUUID("u6PVSPhlRpKMF2gjjCN3jg")
	check(t, "v1", DecodeTopic, `{"version": 1,"partitions": {"2": [2, 1, 0],"0": [0, 2, 1]}}`,
		Topic{Version: 1, Partitions: map[int32]Assignment{0: {Replicas: []int32{0, 2, 1}}, 2: {Replicas: []int32{2, 1, 0}}}})
	check(t, "v2", DecodeTopic, `{"version":2,"partitions":{"0":[2],"1":[0]},"adding_replicas":{},"removing_replicas":{}}`,
		Topic{Version: 2, Partitions: map[int32]Assignment{0: {Replicas: []int32{2}}, 1: {Replicas: []int32{0}}}})
	moving := Topic{Version: 3, ID: id, Partitions: map[int32]Assignment{
		0: {Replicas: []int32{2, 1, 3}, Adding: []int32{2}, Removing: []int32{1, 3}}, 10: {Replicas: []int32{1}}, 9: {Replicas: []int32{}}}}
	text := `{"removing_replicas":{"0":[1,3]},"partitions":{"0":[2,1,3],"9":[],"10":[1]},"topic_id":"u6PVSPhlRpKMF2gjjCN3jg","adding_replicas":{"0":[2]},"version":3}`
	if got := string(moving.Encode()); got != text {
		t.Errorf("v3:\n got %s\nwant %s", got, text)
	}
	check(t, "v3", DecodeTopic, text, moving)
	moving.Version = 2
	if got, want := string(moving.Encode()), `{"removing_replicas":{"0":[1,3]},"partitions":{"0":[2,1,3],"9":[],"10":[1]},"adding_replicas":{"0":[2]},"version":2}`; got != want {
		t.Errorf("v2:\n got %s\nwant %s", got, want)
	}
	moving.Version = 1
	if got, want := string(moving.Encode()), `{"partitions":{"0":[2,1,3],"9":[],"10":[1]},"version":1}`; got != want {
		t.Errorf("v1:\n got %s\nwant %s", got, want)
	}
	check(t, "empty", DecodeTopic, `{}`, Topic{Partitions: map[int32]Assignment{}})
	check(t, "last double counts", DecodeTopic, `{"partitions":{"0":[1]},"partitions":{"1":[2]}}`,
		Topic{Partitions: map[int32]Assignment{1: {Replicas: []int32{2}}}})
	check(t, "adding for a partition that is not there", DecodeTopic, `{"adding_replicas":{"5":[1]},"partitions":{}}`,
		Topic{Partitions: map[int32]Assignment{}})
	for _, bad := range []string{``, `null`, `[]`, `{"partitions":{"x":[1]}}`, `{"partitions":{"-1":[1]}}`, `{"partitions":{"0":[1.0]}}`,
		`{"partitions":{"0":1}}`, `{"topic_id":"short"}`, `{"partitions":{"0":[1,2}}`, `{"partitions":{"0":[01]}}`} {
		refuse(t, bad, DecodeTopic, bad, ErrFormat)
	}
	refuse(t, "5 MiB", DecodeTopic, `{"x":"`+strings.Repeat("a", 5<<20)+`"}`, ErrTooLarge)
}

func TestPartitionState(t *testing.T) {
	text := `{"controller_epoch":61,"leader":0,"version":1,"leader_epoch":64,"isr":[0,2,1]}`
	state := PartitionState{Leader: 0, LeaderEpoch: 64, ControllerEpoch: 61, ISR: []int32{0, 2, 1}}
	check(t, "a broker of 2.x", DecodePartitionState, text, state)
	if got := string(state.Encode()); got != text {
		t.Errorf("got %s\nwant %s", got, text)
	}
	text = `{"controller_epoch":1,"leader":-1,"version":1,"leader_epoch":2,"isr":[3],"leader_recovery_state":1}`
	state = PartitionState{Leader: NoLeader, LeaderEpoch: 2, ControllerEpoch: 1, ISR: []int32{3}, RecoveryState: Recovering}
	check(t, "recovering", DecodePartitionState, text, state)
	if got := string(state.Encode()); got != text {
		t.Errorf("got %s\nwant %s", got, text)
	}
	for _, bad := range []string{
		`{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0}`,
		`{"controller_epoch":1,"leader":1,"isr":[1]}`,
		`{"controller_epoch":1,"leader":"1","leader_epoch":0,"isr":[1]}`,
		`{"controller_epoch":1,"leader":1,"leader_epoch":0,"isr":null}`,
		`{"controller_epoch":1,"leader":1,"leader_epoch":0,"isr":[1],"leader_recovery_state":2}`,
		`{"controller_epoch":1,"Leader":1,"leader_epoch":0,"isr":[1]}`,
	} {
		refuse(t, bad, DecodePartitionState, bad, ErrFormat)
	}
}

func TestController(t *testing.T) {
	check(t, "v1", DecodeController, `{"version":1,"brokerid":0,"timestamp":"1623250803161"}`,
		Controller{Version: 1, Timestamp: 1623250803161, KRaftEpoch: NoKRaftEpoch})
	check(t, "v1 with a space", DecodeController, ` {"version":1, "brokerid":7,"timestamp":12} trailing`,
		Controller{Version: 1, BrokerID: 7, Timestamp: 12, KRaftEpoch: NoKRaftEpoch})
	check(t, "v2 under KRaft", DecodeController, `{"version":2,"brokerid":3000,"timestamp":"1","kraftControllerEpoch":4}`,
		Controller{Version: 2, BrokerID: 3000, Timestamp: 1, KRaftEpoch: 4})
	for _, bad := range []string{``, `1`, `{"version":1,"brokerid":"1"}`, `{"version":1}`, `{"brokerid":1.5}`,
		"{\u201cversion\u201d:1}", `{"brokerid":1`} {
		refuse(t, bad, DecodeController, bad, ErrFormat)
	}
	refuse(t, "epoch", DecodeControllerEpoch, "2147483648", ErrFormat)
	refuse(t, "epoch", DecodeControllerEpoch, "", ErrFormat)
	check(t, "epoch", DecodeControllerEpoch, "0", InitialControllerEpoch)
}

func TestConfigEntities(t *testing.T) {
	star, def := EntityName{Name: "a*/b c~+\u00e9<default>"}, EntityName{Default: true}
	encoded := "a%2A%2Fb%20c%7E%2B%C3%A9%3Cdefault%3E"
	for path, want := range map[string]ConfigEntity{
		"topics/t_1.x":                    TopicConfig("t_1.x"),
		"brokers/12":                      BrokerConfig(12),
		"brokers/<default>":               BrokerDefaultConfig(),
		"clients/" + encoded:              ClientConfig(star),
		"clients/<default>":               ClientConfig(def),
		"clients/%3Cdefault%3E":           ClientConfig(EntityName{Name: "<default>"}),
		"users/" + encoded:                UserConfig(star),
		"users/<default>":                 UserConfig(def),
		"users/<default>/clients/" + "c":  UserClientConfig(def, EntityName{Name: "c"}),
		"users/u/clients/<default>":       UserClientConfig(EntityName{Name: "u"}, def),
		"users/CN%3Dx/clients/" + encoded: UserClientConfig(EntityName{Name: "CN=x"}, star),
		"ips/<default>":                   IPConfig(def),
		"ips/%3A%3A1":                     IPConfig(EntityName{Name: "::1"}),
	} {
		if got := want.EntityPath(); got != path {
			t.Errorf("%+v: path %q, want %q", want, got, path)
		}
		if got, err := ParseEntityPath(path); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", path, got, err, want)
		}
		check(t, path, DecodeConfigChange, string(EncodeConfigChange(want)), want)
	}
	for _, bad := range []string{"", "topics", "topics/", "topics/a/b", "users/u/topics/t", "clients/c/clients/d", "users/u/clients/", "x/y", "users/%2", "users/%zz"} {
		if got, err := ParseEntityPath(bad); !errors.Is(err, ErrPath) {
			t.Errorf("%q: %+v, %v", bad, got, err)
		}
	}
	if got := UserClientsPath(star); got != "/config/users/"+encoded+"/clients" {
		t.Error(got)
	}
}

func TestConfigChangeVersions(t *testing.T) {
	check(t, "v1", DecodeConfigChange, `{"version":1,"entity_type":"topics","entity_name":"x"}`, TopicConfig("x"))
	check(t, "v1", DecodeConfigChange, `{"version":1,"entity_type":"clients","entity_name":"x"}`, ClientConfig(EntityName{Name: "x"}))
	refuse(t, "v1 users", DecodeConfigChange, `{"version":1,"entity_type":"users","entity_name":"x"}`, ErrFormat)
	refuse(t, "v3", DecodeConfigChange, `{"version":3,"entity_path":"topics/x"}`, ErrVersion)
	refuse(t, "v2 without path", DecodeConfigChange, `{"version":2}`, ErrFormat)
	refuse(t, "not JSON", DecodeConfigChange, "topic", ErrFormat)
}

func TestConfig(t *testing.T) {
	check(t, "null", DecodeConfig, "", map[string]string{})
	check(t, "none", DecodeConfig, `{"version":1}`, map[string]string{})
	check(t, "escapes", DecodeConfig, `{"version":1,"config":{"k\u00e9\ud83d\ude00":"a\"\\\/\b\f\n\r\t\u0001"}}`,
		map[string]string{"k\u00e9\U0001F600": "a\"\\/\b\f\n\r\t\x01"})
	config := map[string]string{"b": "1,2", "a": "\"\\\n\x02\u00e9<>&"}
	want := `{"version":1,"config":{"a":"\"\\\n\u0002` + "\u00e9" + `<>&","b":"1,2"}}`
	if got := string(EncodeConfig(config)); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	for _, bad := range []string{`{"config":{"a":1}}`, `{"config":{"a":null}}`, `{"config":[]}`, "{\"config\":{\"a\":\"\xff\"}}",
		"{\"config\":{\"a\":\"\n\"}}", `{"config":{"a":"\x"}}`, `{"config":{"a":"\u12"}}`, `{"config":{"a":"`, `{"config":{"a":"\`,
		`{"x":` + strings.Repeat("[", 1000) + `}`, `{"x":-}`, `{"x":1.}`, `{"x":1e}`, `{"x":tru}`, `{"x" 1}`, `{x:1}`, `{"x":1,,}`} {
		refuse(t, bad, DecodeConfig, bad, ErrFormat)
	}
}

func TestAdminNodes(t *testing.T) {
	a, b := wire.TopicPartition{Topic: "t", Partition: 0}, wire.TopicPartition{Topic: "u", Partition: 3}
	reassign := []Reassignment{{a, []int32{1, 2}}, {b, []int32{}}}
	text := `{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]},{"topic":"u","partition":3,"replicas":[]}]}`
	if got := string(EncodeReassignments(reassign)); got != text {
		t.Errorf("got %s", got)
	}
	check(t, "reassign", DecodeReassignments, text, reassign)
	check(t, "reassign with log_dirs", DecodeReassignments, `{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["any","any"]}]}`, reassign[:1])
	refuse(t, "no replicas", DecodeReassignments, `{"partitions":[{"topic":"t","partition":0}]}`, ErrFormat)
	list := []wire.TopicPartition{a, b}
	text = `{"version":1,"partitions":[{"topic":"t","partition":0},{"topic":"u","partition":3}]}`
	if got := string(EncodePreferredElection(list)); got != text {
		t.Errorf("got %s", got)
	}
	check(t, "election", DecodePreferredElection, text, list)
	check(t, "isr", DecodeISRChange, text, list)
	refuse(t, "election", DecodePreferredElection, `{"partitions":[{"topic":"t"}]}`, ErrFormat)
	check(t, "log dir", DecodeLogDirEvent, string(EncodeLogDirEvent(4)), 4)
	if got := string(EncodeLogDirEvent(4)); got != `{"version":1,"broker":4,"event":1}` {
		t.Errorf("got %s", got)
	}
}

func TestFeatureVersions(t *testing.T) {
	v1 := Features{Version: 1, Status: FeaturesEnabled, Features: map[string]FeatureLevels{"f": {1, 3}}}
	text := `{"features":{"f":{"min_version_level":1,"max_version_level":3}},"version":1,"status":1}`
	if got := string(v1.Encode()); got != text {
		t.Errorf("got %s", got)
	}
	check(t, "v1", DecodeFeatures, text, v1)
	v2 := Features{Version: 2, Status: FeaturesEnabled, Features: map[string]FeatureLevels{"f": {0, 1}}}
	text = `{"features":{"f":{"max_version_level":1}},"version":2,"status":1}`
	if got := string(v2.Encode()); got != text {
		t.Errorf("got %s", got)
	}
	check(t, "v2", DecodeFeatures, text, v2)
	refuse(t, "v1 without min", DecodeFeatures, `{"features":{"f":{"max_version_level":1}},"version":1,"status":1}`, ErrFormat)
	refuse(t, "v3", DecodeFeatures, `{"features":{},"version":3,"status":1}`, ErrVersion)
	refuse(t, "status", DecodeFeatures, `{"features":{},"version":1,"status":2}`, ErrFormat)
}

func TestProducerIDBlocks(t *testing.T) {
	first := FirstProducerIDs(2)
	if got := string(first.Encode()); got != `{"version":1,"broker":2,"block_start":"0","block_end":"999"}` {
		t.Errorf("got %s", got)
	}
	next, ok := first.Next(1)
	if want := (ProducerIDs{1, 1000, 1999}); !ok || next != want {
		t.Errorf("next: %+v", next)
	}
	if _, ok := (ProducerIDs{End: 9223372036854775000}).Next(1); ok {
		t.Error("a block beyond the last id")
	}
	refuse(t, "number", DecodeProducerIDs, `{"version":1,"broker":2,"block_start":0,"block_end":"9"}`, ErrFormat)
	refuse(t, "turned", DecodeProducerIDs, `{"version":1,"broker":2,"block_start":"10","block_end":"9"}`, ErrFormat)
}

func TestConsumerNodes(t *testing.T) {
	c := ConsumerRegistration{map[string]int32{"t1": 1}, PatternStatic, 1533452008040}
	text := `{"version":1,"subscription":{"t1":1},"pattern":"static","timestamp":"1533452008040"}`
	if got := string(c.Encode()); got != text {
		t.Errorf("got %s", got)
	}
	check(t, "consumer", DecodeConsumerRegistration, text, c)
	check(t, "wildcard", DecodeConsumerRegistration, `{"version": 1, "subscription": {"a.*|b": 2}, "pattern": "white_list", "timestamp": "x"}`,
		ConsumerRegistration{map[string]int32{"a.*|b": 2}, PatternWhiteList, 0})
	refuse(t, "consumer", DecodeConsumerRegistration, `{"version":1,"pattern":"static"}`, ErrFormat)
	id := ConsumerID("g", "host", 1533452008040, 0xabc)
	if id != "g_host-1533452008040-00000abc" {
		t.Error(id)
	}
	if got := ConsumerThreadID(id, 1); got != "g_host-1533452008040-00000abc-1" {
		t.Error(got)
	}
	for got, want := range map[string]string{
		ConsumerIDPath("g", id):          "/consumers/g/ids/" + id,
		ConsumerOwnerPath("g", "t", 3):   "/consumers/g/owners/t/3",
		ConsumerOffsetPath("g", "t", 12): "/consumers/g/offsets/t/12",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	check(t, "offset", DecodeConsumerOffset, string(EncodeConsumerOffset(1<<40)), 1<<40)
	refuse(t, "offset", DecodeConsumerOffset, "1.0", ErrFormat)
	refuse(t, "offset", DecodeConsumerOffset, strings.Repeat("1", 100), ErrFormat)
}

func TestACLs(t *testing.T) {
	entries := []ACLEntry{{"User:alice", "Allow", "Read", "*"}, {"User:CN=a,O=\"b\"", "Deny", "DescribeConfigs", "10.0.0.1"}}
	text := `{"version":1,"acls":[{"principal":"User:alice","permissionType":"Allow","operation":"Read","host":"*"},{"principal":"User:CN=a,O=\"b\"","permissionType":"Deny","operation":"DescribeConfigs","host":"10.0.0.1"}]}`
	if got := string(EncodeACLs(entries)); got != text {
		t.Errorf("got %s", got)
	}
	check(t, "acls", DecodeACLs, text, entries)
	check(t, "empty", DecodeACLs, "", nil)
	refuse(t, "v2", DecodeACLs, `{"version":2,"acls":[]}`, ErrVersion)
	refuse(t, "no host", DecodeACLs, `{"version":1,"acls":[{"principal":"User:a","permissionType":"Allow","operation":"Read"}]}`, ErrFormat)

	literal := ACLResource{"TransactionalId", "a:b", Literal}
	prefixed := ACLResource{"Topic", "n/\"", Prefixed}
	if got := literal.Path(); got != "/kafka-acl/TransactionalId/a:b" {
		t.Error(got)
	}
	if got := prefixed.Path(); got != `/kafka-acl-extended/prefixed/Topic/n/"` {
		t.Error(got)
	}
	for _, r := range []ACLResource{literal, prefixed} {
		if got, err := ParseACLPath(r.Path()); err != nil || got != r {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if got := string(EncodeACLChange(literal)); got != "TRANSACTIONAL_ID:a:b" {
		t.Error(got)
	}
	if got := string(EncodeACLChange(prefixed)); got != `{"version":1,"resourceType":"TOPIC","name":"n/\"","patternType":"PREFIXED"}` {
		t.Error(got)
	}
	check(t, "literal", DecodeACLChange, "TRANSACTIONAL_ID:a:b", literal)
	check(t, "literal, other case", DecodeACLChange, "TransactionalId:a:b", literal)
	check(t, "prefixed", DecodeExtendedACLChange, string(EncodeACLChange(prefixed)), prefixed)
	refuse(t, "no colon", DecodeACLChange, "TOPIC", ErrFormat)
	refuse(t, "no type", DecodeACLChange, "X:y", ErrFormat)
	refuse(t, "pattern", DecodeExtendedACLChange, `{"version":1,"resourceType":"TOPIC","name":"n","patternType":"ANY"}`, ErrFormat)
	if got := ACLChangesPath(Prefixed) + ACLChangesPath(Literal); got != "/kafka-acl-extended-changes/kafka-acl-changes" {
		t.Error(got)
	}
}

func TestDelegationTokenVersions(t *testing.T) {
	v1 := DelegationToken{Version: 1, ID: "id", Owner: "User:a", Requester: "User:a", Renewers: []string{"User:b c"}, IssueTimestamp: 1533452008040, MaxTimestamp: 2, ExpiryTimestamp: 3}
	text := `{"version":1,"owner":"User%3Aa","renewers":["User%3Ab%20c"],"issueTimestamp":1533452008040,"maxTimestamp":2,"expiryTimestamp":3,"tokenId":"id"}`
	if got := string(v1.Encode()); got != text {
		t.Errorf("got %s", got)
	}
	check(t, "v1", DecodeDelegationToken, text, v1)
	v3 := v1
	v3.Version, v3.Requester, v3.Renewers = 3, "User:r", []string{}
	text = `{"version":3,"owner":"User%3Aa","tokenRequester":"User%3Ar","renewers":[],"issueTimestamp":1533452008040,"maxTimestamp":2,"expiryTimestamp":3,"tokenId":"id"}`
	if got := string(v3.Encode()); got != text {
		t.Errorf("got %s", got)
	}
	check(t, "v3", DecodeDelegationToken, text, v3)
	refuse(t, "v4", DecodeDelegationToken, strings.Replace(text, ":3,", ":4,", 1), ErrVersion)
	refuse(t, "v3 without requester", DecodeDelegationToken, strings.Replace(text, "tokenRequester", "x", 1), ErrFormat)
}

func TestSCRAMCredentialErrorsHideTheSecret(t *testing.T) {
	c := SCRAMCredential{"c2FsdA==", "c3RvcmVk", "c2VydmVy", 4096}
	if got, err := ParseSCRAMCredential(c.String()); err != nil || got != c {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "secret", "salt=secret,stored_key=secret,server_key=secret,iterations=secret",
		"salt=secret,stored_key=,server_key=secret,iterations=1", "salt=secret,stored_key=secret,server_key=secret,secret=1"} {
		if _, err := ParseSCRAMCredential(bad); !errors.Is(err, ErrFormat) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestBootPathsComeInKafkasOrder(t *testing.T) {
	want := "/consumers /brokers/ids /brokers/topics /config/changes /admin/delete_topics /brokers/seqid /isr_change_notification " +
		"/latest_producer_id_block /log_dir_event_notification /config/topics /config/clients /config/users /config/brokers /config/ips"
	if got := strings.Join(BootPaths(), " "); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestSecurePaths(t *testing.T) {
	for path, want := range map[string]bool{"/config/users/a": true, "/config/brokers": true, "/delegation_token/tokens/x": true,
		"/config/topics/t": false, "/brokers/ids/1": false} {
		if got := Sensitive(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if !WorldWritable("/consumers") || WorldWritable("/brokers") {
		t.Error("only /consumers is open to everybody")
	}
}

func TestSequence(t *testing.T) {
	if n, err := Sequence("config_change_0000000012", ConfigChangePrefix); n != 12 || err != nil {
		t.Error(n, err)
	}
	// ZooKeeper's counter wraps at 2^31 and is then printed with its sign.
	if n, err := Sequence("config_change_-2147483648", ConfigChangePrefix); n != -2147483648 || err != nil {
		t.Error(n, err)
	}
	for _, bad := range []string{"", "x", "config_change_", "config_change_x"} {
		if _, err := Sequence(bad, ConfigChangePrefix); !errors.Is(err, ErrPath) {
			t.Error(bad, err)
		}
	}
}

// decoders are all of them, behind one shape.
var decoders = map[string]func([]byte) error{
	"broker":       func(b []byte) error { _, err := DecodeBroker(b); return err },
	"topic":        func(b []byte) error { _, err := DecodeTopic(b); return err },
	"state":        func(b []byte) error { _, err := DecodePartitionState(b); return err },
	"controller":   func(b []byte) error { _, err := DecodeController(b); return err },
	"epoch":        func(b []byte) error { _, err := DecodeControllerEpoch(b); return err },
	"config":       func(b []byte) error { _, err := DecodeConfig(b); return err },
	"change":       func(b []byte) error { _, err := DecodeConfigChange(b); return err },
	"reassign":     func(b []byte) error { _, err := DecodeReassignments(b); return err },
	"election":     func(b []byte) error { _, err := DecodePreferredElection(b); return err },
	"cluster":      func(b []byte) error { _, err := DecodeClusterID(b); return err },
	"feature":      func(b []byte) error { _, err := DecodeFeatures(b); return err },
	"producer ids": func(b []byte) error { _, err := DecodeProducerIDs(b); return err },
	"isr":          func(b []byte) error { _, err := DecodeISRChange(b); return err },
	"log dir":      func(b []byte) error { _, err := DecodeLogDirEvent(b); return err },
	"consumer":     func(b []byte) error { _, err := DecodeConsumerRegistration(b); return err },
	"offset":       func(b []byte) error { _, err := DecodeConsumerOffset(b); return err },
	"acls":         func(b []byte) error { _, err := DecodeACLs(b); return err },
	"acl":          func(b []byte) error { _, err := DecodeACLChange(b); return err },
	"extended acl": func(b []byte) error { _, err := DecodeExtendedACLChange(b); return err },
	"token":        func(b []byte) error { _, err := DecodeDelegationToken(b); return err },
}

var seeds = []string{
	`{"features":{"f":{"min_version":1,"max_version":3}},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"endpoints":["PLAINTEXT://[::1]:9092"],"jmx_port":-1,"port":9092,"host":"127.0.0.1","version":5,"timestamp":"1623250802168"}`,
	`{"version":3,"topic_id":"u6PVSPhlRpKMF2gjjCN3jg","partitions":{"0":[2,1]},"adding_replicas":{"0":[2]},"removing_replicas":{}}`,
	`{"controller_epoch":1,"leader":-1,"version":1,"leader_epoch":2,"isr":[3],"leader_recovery_state":1}`,
	`{"version":2,"brokerid":2,"timestamp":"1","kraftControllerEpoch":-1}`,
	`{"version":1,"config":{"k":"v\u00e9\ud83d\ude00\n"}}`,
	`{"version":2,"entity_path":"users/a%2F/clients/<default>"}`,
	`{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}`,
	`{"version":1,"features":{"f":{"min_version_level":1,"max_version_level":3}},"status":1}`,
	`{"version":1,"broker":2,"block_start":"0","block_end":"999"}`,
	`{"version":1,"acls":[{"principal":"User:a","permissionType":"Allow","operation":"Read","host":"*"}]}`,
	`{"version":3,"owner":"User%3Aa","tokenRequester":"User%3Ar","renewers":["x"],"issueTimestamp":1e9,"maxTimestamp":2,"expiryTimestamp":3,"tokenId":"id"}`,
	`{"version":1,"resourceType":"TOPIC","name":"n","patternType":"PREFIXED"}`,
}

func documented(err error) bool {
	return err == nil || errors.Is(err, ErrFormat) || errors.Is(err, ErrVersion) || errors.Is(err, ErrTooLarge)
}

// Invariant 1, on every prefix of each kind and on random damage to it.
func TestDamagedDataIsRefusedWithADocumentedError(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, text := range seeds {
		for n := range len(text) + 1 {
			for name, decode := range decoders {
				if err := decode([]byte(text[:n])); !documented(err) {
					t.Fatalf("%s of %q: %v", name, text[:n], err)
				}
			}
		}
		for range 300 {
			data := []byte(text)
			for range 1 + rng.IntN(3) {
				data[rng.IntN(len(data))] = "{}[]\",:\\0-9.eu\x00\xff"[rng.IntN(16)]
			}
			for name, decode := range decoders {
				if err := decode(data); !documented(err) {
					t.Fatalf("%s of %q: %v", name, data, err)
				}
			}
		}
	}
}

func FuzzDecoders(f *testing.F) {
	for _, text := range seeds {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, decode := range decoders {
			if err := decode(data); !documented(err) {
				t.Fatalf("%s: %v", name, err)
			}
		}
		// Invariant 5.
		if topic, err := DecodeTopic(data); err == nil {
			topic.Version = 3
			if again, err := DecodeTopic(topic.Encode()); err != nil || !reflect.DeepEqual(again, topic) {
				t.Fatalf("%+v, %v, want %+v", again, err, topic)
			}
		}
		if config, err := DecodeConfig(data); err == nil {
			if again, err := DecodeConfig(EncodeConfig(config)); err != nil || !reflect.DeepEqual(again, config) {
				t.Fatalf("%q, %v, want %q", again, err, config)
			}
		}
	})
}

func BenchmarkDecodePartitionState(b *testing.B) {
	data := []byte(`{"controller_epoch":61,"leader":0,"version":1,"leader_epoch":64,"isr":[0,2,1]}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodePartitionState(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodePartitionState(b *testing.B) {
	state := PartitionState{Leader: 0, LeaderEpoch: 64, ControllerEpoch: 61, ISR: []int32{0, 2, 1}}
	b.ReportAllocs()
	for b.Loop() {
		state.Encode()
	}
}
