package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
	"barnabas/test/load"
	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// large is more than anybody should write, and just what a ZooKeeper takes.
const large = 900_000

// manyTimes repeats an item up to that size.
func manyTimes(before, item, after string) string {
	return before + strings.TrimSuffix(strings.Repeat(item+",", large/(len(item)+1)), ",") + after
}

// noJSON is what is no node of any family.
func noJSON() []string {
	return []string{"", "[", "nonsense", "null", "[]", `{"version":[]}`, `{"version":1}`, `{"version":99999999999999999999}`, strings.Repeat("9", large), strings.Repeat("[", large)}
}

// junk is what anyone may write, family by family: no JSON, JSON of other kinds,
// what does not exist, repeats, or is huge.
func junk() map[string][]string {
	broken := noJSON()
	entry := `{"topic":"nobody","partition":2147483647,"replicas":[1,2]}`
	topics := append(noJSON(),
		manyTimes(`{"version":1,"partitions":{"0":[`, "1", `]}}`),
		`{"version":1,"partitions":{"0":[2147483647,-1],"-1":[1],"x":[1],"1":[1,1],"99999999999":[1]}}`,
		`{"version":3,"topic_id":"not an id","partitions":{"0":[1]},"adding_replicas":{"7":[1]},"removing_replicas":[]}`)
	configs := append(noJSON(),
		`{"version":1,"config":{"retention.ms":"`+strings.Repeat("1", large)+`","log.retention.ms":"x","nobody.knows":"x"}}`,
		`{"version":1,"config":{"retention.ms":12345,"cleanup.policy":null}}`, `{"version":1,"config":[]}`)
	acls := append(noJSON(),
		manyTimes(`{"version":1,"acls":[`, `{"principal":"User:x","permissionType":"Nonsense","operation":"x","host":""}`, `]}`),
		`{"version":1,"acls":{}}`, `{"version":1,"acls":[{"principal":5},{}]}`)
	return map[string][]string{
		"/brokers/topics/junk-N":                           topics,
		"/config/topics/junk-N":                            configs,
		"/config/topics/good":                              configs,
		"/config/brokers/1":                                configs,
		"/config/brokers/<default>":                        configs,
		"/config/users/junk-N":                             configs,
		"/config/users/<default>":                          configs,
		"/config/clients/junk-N":                           configs,
		"/config/ips/10.0.0.N":                             configs,
		"/config/changes/config_change_":                   append(noJSON(), `{"version":2,"entity_path":"`+strings.Repeat("x/", large/2)+`"}`, `{"version":2,"entity_path":"topics/../brokers"}`, `{"version":2,"entity_path":"nobody/x"}`, `{"version":1,"entity_type":"topics","entity_name":""}`),
		"/config/changes/not_a_change":                     {"x"},
		"/admin/reassign_partitions":                       append(noJSON(), manyTimes(`{"version":1,"partitions":[`, entry, `]}`), manyTimes(`{"version":1,"partitions":[{"topic":"good","partition":0,"replicas":[`, "2", `]}]}`), `{"version":1,"partitions":[{"topic":"good","partition":0,"replicas":[1,1]},{"topic":"good","partition":"0"}]}`),
		"/admin/preferred_replica_election":                append(noJSON(), manyTimes(`{"version":1,"partitions":[`, `{"topic":"nobody","partition":-7}`, `]}`), `{"version":1,"partitions":[{"topic":"good"},{"partition":0}]}`),
		"/admin/delete_topics/junk name N":                 {"", "x", strings.Repeat("x", large)},
		"/admin/delete_topics/" + strings.Repeat("n", 300): {""},
		"/isr_change_notification/isr_change_":             append(noJSON(), manyTimes(`{"version":1,"partitions":[`, `{"topic":"nobody","partition":0}`, `]}`)),
		"/isr_change_notification/something":               {"x"},
		"/log_dir_event_notification/log_dir_event_":       append(noJSON(), `{"version":1,"broker":2147483647,"event":1}`, `{"version":1,"broker":1,"event":99}`),
		"/brokers/ids/77":                                  append(noJSON(), manyTimes(`{"version":5,"host":"h","port":1,"jmx_port":-1,"timestamp":"0","listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"features":{},"endpoints":[`, `"PLAINTEXT://h:1"`, `]}`)),
		"/brokers/ids/not a number":                        {"x"},
		"/brokers/topics/good/partitions/nonsense":         {"x"},
		// Nobody reads these before there is an authorizer.
		"/kafka-acl":                                broken,
		"/kafka-acl/Topic/junk-N":                   acls,
		"/kafka-acl/Topic/good":                     acls,
		"/kafka-acl/Cluster/kafka-cluster":          acls,
		"/kafka-acl/Nonsense/junk-N":                acls,
		"/kafka-acl-extended/prefixed/Group/junk-N": acls,
		"/kafka-acl-extended/nonsense/Topic/x":      acls,
		"/kafka-acl-changes/acl_changes_":           append(noJSON(), "Topic", ":", "Nonsense:x", "Topic:"+strings.Repeat("x", large)),
		"/kafka-acl-changes/not_a_change":           {"x"},
		"/kafka-acl-extended-changes/acl_changes_":  append(noJSON(), `{"version":1,"resourceType":"NONSENSE","name":"x","patternType":"PREFIXED"}`, `{"version":1,"resourceType":"TOPIC","name":"x","patternType":"NONSENSE"}`),
		"/feature":                       broken,
		"/consumers/junk/offsets/good/0": append(noJSON(), "-5"),
	}
}

// put makes or sets a node; it fails for none.
func (o operator) put(path, data string) {
	o.t.Helper()
	parent := path[:strings.LastIndexByte(path, '/')]
	if _, _, err := o.zk.CreateRecursive(o.t.Context(), parent, nil, zookeeper.Persistent); err != nil && o.gone(parent) {
		o.t.Fatalf("%s: %v", parent, err)
	}
	if strings.HasSuffix(path, "_") || o.gone(path) {
		mode := zookeeper.Persistent
		if strings.HasSuffix(path, "_") {
			mode = zookeeper.PersistentSequential
		}
		if _, _, err := o.zk.Create(o.t.Context(), path, []byte(data), mode); err == nil || !o.gone(path) {
			return // or the controller has removed it meanwhile
		}
	}
	_, _ = o.zk.Set(o.t.Context(), path, []byte(data), zookeeper.AnyVersion) // or it was removed meanwhile
}

// works makes a topic, moves it, elects in it, writes to it and deletes it, all
// through znodes: nothing that somebody wrote holds that up.
func (w *toolWorld) works(topic string) {
	w.t.Helper()
	w.create("/brokers/topics/"+topic, `{"version":1,"partitions":{"0":[1,2]}}`)
	w.replicas(topic, 0, 1, 1, 2)
	fill(w.t, w.seeds[:2], topic, 3000)
	real.Until(w.t, 20*time.Second, "room for a reassignment", func() bool { return w.gone("/admin/reassign_partitions") })
	w.create("/admin/reassign_partitions", fmt.Sprintf(`{"version":1,"partitions":[{"topic":"%s","partition":0,"replicas":[2,1]}]}`, topic))
	w.replicas(topic, 0, 1, 2, 1)
	real.Until(w.t, 20*time.Second, "room for an election", func() bool { return w.gone("/admin/preferred_replica_election") })
	w.create("/admin/preferred_replica_election", fmt.Sprintf(`{"version":1,"partitions":[{"topic":"%s","partition":0}]}`, topic))
	w.replicas(topic, 0, 2, 2, 1)
	w.create("/config/topics/"+topic, `{"version":1,"config":{"retention.ms":"4321"}}`)
	w.create("/config/changes/config_change_", fmt.Sprintf(`{"version":2,"entity_path":"topics/%s"}`, topic))
	w.config(1, kmsg.ConfigResourceTypeTopic, topic, "retention.ms", "4321")
	w.create("/admin/delete_topics/"+topic, "")
	real.Until(w.t, 30*time.Second, topic+" is deleted", func() bool { return w.gone("/brokers/topics/" + topic) })
}

func TestZnodesThatAnyoneMayWrite(t *testing.T) {
	server := real.ZooKeeper(t)
	w := &toolWorld{}
	for id := 1; id <= 2; id++ {
		b := real.Barnabas(t, id, "zookeeper.connect="+server, "auto.leader.rebalance.enable=false")
		w.brokers, w.seeds = append(w.brokers, b), append(w.seeds, b.Addr)
	}
	w.operator, w.admin = newOperator(t, server), load.NewAdmin(t, w.seeds)
	w.create("/brokers/topics/good", `{"version":1,"partitions":{"0":[1,2]}}`)
	w.replicas("good", 0, 1, 1, 2)
	block, _ := w.get("/latest_producer_id_block")
	for family, values := range junk() {
		for i, value := range values {
			w.put(strings.ReplaceAll(family, "N", fmt.Sprint(i)), value)
			if strings.HasPrefix(family, "/config/") { // what it names is read
				w.put("/config/changes/config_change_", fmt.Sprintf(`{"version":2,"entity_path":"%s"}`, strings.TrimPrefix(strings.ReplaceAll(family, "N", fmt.Sprint(i)), "/config/")))
			}
		}
	}
	w.works("after-junk")
	fill(t, w.seeds, "good", 3000)

	// A state that is no state, while its leader serves on; another controller
	// leaves it alone, too.
	state, _ := w.get(znode.StatePath("good", 0))
	for _, s := range []string{"nonsense", manyTimes(`{"version":1,"leader":1,"leader_epoch":0,"controller_epoch":1,"isr":[`, "1", `]}`), `{"version":1,"leader":77,"leader_epoch":-3,"controller_epoch":0,"isr":[]}`} {
		w.put(znode.StatePath("good", 0), s)
		fill(t, w.seeds, "good", 1000)
	}
	if err := w.zk.Delete(t.Context(), "/controller", -1); err != nil {
		t.Fatal(err)
	}
	w.works("after-failover")
	w.put(znode.StatePath("good", 0), state)
	if err := w.zk.Delete(t.Context(), "/controller", -1); err != nil {
		t.Fatal(err)
	}
	w.replicas("good", 0, 1, 1, 2)
	w.brokers[1].Stop()
	w.brokers[1].Restart(t)
	w.replicas("good", 0, 1, 1, 2)
	w.works("after-restart")

	offsets := kmsg.NewPtrOffsetFetchRequest()
	offsets.Group = "junk"
	offsets.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "good", Partitions: []int32{0}}}
	raw.Ask[*kmsg.OffsetFetchResponse](t, w.seeds[0], offsets) // any answer
	// Ids that may have been given out can't be told from such a node: there are
	// no new ones until it is mended.
	ids := kmsg.NewPtrInitProducerIDRequest()
	ids.Version = 4
	for _, value := range append(noJSON(), `{"version":1,"broker":1,"block_start":"5","block_end":"-5"}`, `{"version":1,"broker":1,"block_start":"9223372036854775000","block_end":"9223372036854775807"}`) {
		w.put("/latest_producer_id_block", value)
	}
	for answered := 0; raw.Ask[*kmsg.InitProducerIDResponse](t, w.seeds[0], ids).ErrorCode == 0; answered++ {
		if answered > 2000 {
			t.Fatal("more ids than a block and its successor have")
		}
	}
	w.put("/latest_producer_id_block", block)
	real.Until(t, 20*time.Second, "producer ids again", func() bool {
		return raw.Ask[*kmsg.InitProducerIDResponse](t, w.seeds[0], ids).ErrorCode == 0
	})
	for _, b := range w.brokers {
		said := map[string]int{}
		for line := range strings.Lines(b.Output()) {
			// What was written to one node several times is said as often.
			_, what, _ := strings.Cut(line, " ")
			if said[what]++; said[what] == 20 {
				t.Errorf("broker says over and over: %.300s", what)
			}
			if strings.Contains(line, "kafka-acl") {
				t.Errorf("nobody reads what is said here: %.300s", line)
			}
			if len(line) > 4096 {
				t.Errorf("broker logs a line of %d bytes: %s...", len(line), line[:300])
			}
		}
	}
}
