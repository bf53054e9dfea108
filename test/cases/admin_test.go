package cases

import (
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"barnabas/internal/jute"
	"barnabas/internal/zookeeper"
	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func ieee(b []byte) uint32 { return crc32.ChecksumIEEE(b) }

func connect(t *testing.T, addr string) *zookeeper.Client {
	t.Helper()
	client, err := zookeeper.New(zookeeper.Options{Connect: addr, SessionTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// partitionsServed returns how many partitions of a topic have a leader.
func partitionsServed(t *testing.T, c *raw.Conn, topic string) int {
	r := metadata(4, []string{topic}, false)
	r.AllowAutoTopicCreation = false
	n := 0
	for _, p := range raw.Do[*kmsg.MetadataResponse](c, r).Topics[0].Partitions {
		if p.ErrorCode == 0 && p.Leader == 1 {
			n++
		}
	}
	return n
}

func describe(t *testing.T, c *raw.Conn, kind kmsg.ConfigResourceType, name string, keys []string) kmsg.DescribeConfigsResponseResource {
	t.Helper()
	r := kmsg.NewPtrDescribeConfigsRequest()
	r.Version = 4
	r.IncludeSynonyms = true
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceType, resource.ResourceName, resource.ConfigNames = kind, name, keys
	r.Resources = append(r.Resources, resource)
	return raw.Do[*kmsg.DescribeConfigsResponse](c, r).Resources[0]
}

// TestTopicsAndConfigsThatOthersWrite is case 18.
func TestTopicsAndConfigsThatOthersWrite(t *testing.T) {
	onBoth(t, func(t *testing.T, to target) {
		zk := connect(t, to.zk)
		c := raw.Dial(t, to.addr)
		create := func(path, data string, mode zookeeper.CreateMode) {
			t.Helper()
			if _, _, err := zk.Create(t.Context(), path, []byte(data), mode); err != nil {
				t.Fatalf("create %s: %v", path, err)
			}
		}
		create("/brokers/topics/z", `{"version":1,"partitions":{"0":[1],"1":[1]}}`, zookeeper.Persistent)
		real.Until(t, 20*time.Second, "the topic is served", func() bool { return partitionsServed(t, c, "z") == 2 })
		data, _, err := zk.Get(t.Context(), "/brokers/topics/z")
		if err != nil || !regexp.MustCompile(`"version":3`).Match(data) || !regexp.MustCompile(`"topic_id":"[A-Za-z0-9_-]{22}"`).Match(data) {
			t.Errorf("topic node %s, %v; want version 3 with an id", data, err)
		}
		if _, ok, err := zk.Exists(t.Context(), "/brokers/topics/z/partitions/1/state"); !ok || err != nil {
			t.Errorf("no state node: %v", err)
		}
		grown := strings.Replace(string(data), `"1":[1]`, `"1":[1],"2":[1]`, 1)
		if _, err := zk.Set(t.Context(), "/brokers/topics/z", []byte(grown), -1); err != nil {
			t.Fatal(err)
		}
		real.Until(t, 20*time.Second, "three partitions", func() bool { return partitionsServed(t, c, "z") == 3 })

		create("/config/topics/z", `{"version":1,"config":{"retention.ms":"12345"}}`, zookeeper.Persistent)
		got := describe(t, c, kmsg.ConfigResourceTypeTopic, "z", []string{"retention.ms"})
		if len(got.Configs) != 1 || got.Configs[0].Value == nil || *got.Configs[0].Value != "12345" {
			t.Errorf("retention.ms before any notification: %+v", got.Configs)
		}
		create("/config/changes/config_change_", `{"version":2,"entity_path":"topics/z"}`, zookeeper.PersistentSequential)
		create("/config/changes/config_change_", `{"version":1,"entity_type":"topics","entity_name":"z"}`, zookeeper.PersistentSequential)
		create("/config/changes/config_change_", `NOTJSON`, zookeeper.PersistentSequential)

		create("/admin/preferred_replica_election", `{"version":1,"partitions":[{"topic":"z","partition":0},{"topic":"ghost","partition":0}]}`, zookeeper.Persistent)
		create("/admin/delete_topics/ghost", ``, zookeeper.Persistent)
		create("/admin/delete_topics/z", ``, zookeeper.Persistent)
		for _, path := range []string{"/admin/preferred_replica_election", "/admin/delete_topics/ghost", "/admin/delete_topics/z", "/brokers/topics/z", "/config/topics/z"} {
			real.Until(t, 20*time.Second, path+" goes", func() bool {
				_, ok, err := zk.Exists(t.Context(), path)
				return err == nil && !ok
			})
		}
		if name, _ := newTopic(t, to); partitionsServed(t, c, name) != 1 {
			t.Error("garbage in /config/changes stopped the broker")
		}
	})
}

// TestDeletedTopicLeavesAMarkedFolder: the name of the folder on its way out.
func TestDeletedTopicLeavesAMarkedFolder(t *testing.T) {
	broker := real.Barnabas(t, 1)
	to := target{addr: broker.Addr, zk: broker.Keeper}
	name, _ := newTopic(t, to)
	zk := connect(t, to.zk)
	if _, _, err := zk.Create(t.Context(), "/admin/delete_topics/"+name, nil, zookeeper.Persistent); err != nil {
		t.Fatal(err)
	}
	pattern := regexp.MustCompile(`^` + name + `-0\.[0-9a-f]{32}-delete$`)
	real.Until(t, 20*time.Second, "the folder is renamed", func() bool {
		entries, err := os.ReadDir(broker.Dir)
		return err == nil && slices.ContainsFunc(entries, func(e os.DirEntry) bool { return pattern.MatchString(e.Name()) })
	})
	if _, err := os.Stat(filepath.Join(broker.Dir, name+"-0")); err == nil {
		t.Error("the old folder is still there")
	}
}

// TestDescribeConfigs is the first half of case 20.
func TestDescribeConfigs(t *testing.T) {
	onBoth(t, func(t *testing.T, to target) {
		topic, _ := newTopic(t, to, "cleanup.policy", "compact")
		c := raw.Dial(t, to.addr)
		one := describe(t, c, kmsg.ConfigResourceTypeTopic, topic, []string{"cleanup.policy"})
		if one.ErrorCode != 0 || len(one.Configs) != 1 {
			t.Fatalf("one key: error %d, %d entries", one.ErrorCode, len(one.Configs))
		}
		synonyms := one.Configs[0].ConfigSynonyms
		if len(synonyms) != 2 || synonyms[0].Name != "cleanup.policy" || synonyms[0].Source != 1 || *synonyms[0].Value != "compact" ||
			synonyms[1].Name != "log.cleanup.policy" || synonyms[1].Source != 5 || *synonyms[1].Value != "delete" {
			t.Errorf("synonyms of cleanup.policy: %+v", synonyms)
		}
		if got := describe(t, c, kmsg.ConfigResourceTypeTopic, topic, nil); len(got.Configs) != 36 {
			t.Errorf("null keys: %d entries, want 36", len(got.Configs))
		}
		if got := describe(t, c, kmsg.ConfigResourceTypeTopic, topic, []string{}); len(got.Configs) != 36 {
			t.Errorf("empty keys: %d entries, want all 36", len(got.Configs))
		}
		if got := describe(t, c, kmsg.ConfigResourceTypeTopic, topic, []string{"zzz"}); got.ErrorCode != 0 || len(got.Configs) != 0 {
			t.Errorf("unknown key: error %d, %d entries", got.ErrorCode, len(got.Configs))
		}
		if got := describe(t, c, kmsg.ConfigResourceTypeTopic, "not-there", nil); got.ErrorCode != 3 {
			t.Errorf("unknown topic: error %d, want 3", got.ErrorCode)
		}
		if got := describe(t, c, kmsg.ConfigResourceTypeBroker, "1", nil); got.ErrorCode != 0 || len(got.Configs) < 150 {
			t.Errorf("broker 1: error %d, %d entries", got.ErrorCode, len(got.Configs))
		}
		if got := describe(t, c, kmsg.ConfigResourceTypeBroker, "", nil); got.ErrorCode != 0 || len(got.Configs) != 0 {
			t.Errorf("the default broker: error %d, %d entries, want none", got.ErrorCode, len(got.Configs))
		}
		if got := describe(t, c, kmsg.ConfigResourceTypeBroker, "2", nil); got.ErrorCode != 42 {
			t.Errorf("another broker: error %d, want 42", got.ErrorCode)
		}
		if got := describe(t, c, kmsg.ConfigResourceType(99), "x", nil); got.ErrorCode != 42 {
			t.Errorf("resource type 99: error %d, want 42", got.ErrorCode)
		}
	})
}

// TestTopicThatMetadataLacks: a topic whose znode exists cannot be made again,
// and can be deleted, whatever the cache says.
func TestTopicThatMetadataLacks(t *testing.T) {
	broker := real.Barnabas(t, 1)
	zk := connect(t, broker.Keeper)
	// Its only replica is a broker that is not there, so it has no leader.
	if _, _, err := zk.Create(t.Context(), "/brokers/topics/lost", []byte(`{"version":1,"partitions":{"0":[77]}}`), zookeeper.Persistent); err != nil {
		t.Fatal(err)
	}
	c := raw.Dial(t, broker.Addr)
	if got := raw.Do[*kmsg.CreateTopicsResponse](c, createRequest("lost")).Topics[0]; got.ErrorCode != 36 {
		t.Errorf("create: error %d, want 36", got.ErrorCode)
	}
	r := kmsg.NewPtrDeleteTopicsRequest()
	r.Version = 3
	r.TimeoutMillis = 2000
	r.TopicNames = []string{"lost"}
	if got := raw.Do[*kmsg.DeleteTopicsResponse](c, r).Topics[0]; got.ErrorCode == 3 {
		t.Error("delete: unknown topic, though ZooKeeper has it")
	}
	if _, _, err := zk.Get(t.Context(), "/brokers/topics/none"); err != jute.ErrNoNode {
		t.Errorf("%v", err)
	}
}
