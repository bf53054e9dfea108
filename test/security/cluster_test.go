package security

import (
	"crypto/pbkdf2"
	"crypto/sha512"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"barnabas/internal/security"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// between are the properties of brokers whose only listener has SASL, and who
// authenticate to each other with a mechanism as user "broker".
func between(zk, mechanism string) []string {
	return []string{"listeners=SASL_PLAINTEXT://{addr}", "security.inter.broker.protocol=SASL_PLAINTEXT", "zookeeper.connect=" + zk,
		"sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512", "sasl.mechanism.inter.broker.protocol=" + mechanism,
		"listener.name.sasl_plaintext.plain.sasl.jaas.config=" + plainModule + ` required username="broker" password="of broker" user_broker="of broker" user_admin="of admin";`,
		"listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config=" + scramModule + ` required username="broker" password="of broker";`,
		"listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config=" + scramModule + ` required username="broker" password="of broker";`,
		"inter.broker.protocol.version=3.9", "offsets.topic.replication.factor=1", "transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
		"group.initial.rebalance.delay.ms=0", "auto.create.topics.enable=false", "default.replication.factor=2",
		// Short enough that connections between brokers are renewed meanwhile.
		"listener.name.sasl_plaintext.connections.max.reauth.ms=1500"}
}

// createOnBoth makes the topic t once the controller knows of both brokers.
func createOnBoth(t *testing.T, admin *kadm.Client, partitions int32) {
	t.Helper()
	real.Until(t, time.Minute, "the controller knows both brokers", func() bool {
		_, err := admin.CreateTopic(t.Context(), partitions, 2, map[string]*string{"min.insync.replicas": kadm.StringPtr("2")}, "t")
		if err != nil && !errors.Is(err, kerr.InvalidReplicationFactor) {
			t.Fatal(err)
		}
		return err == nil
	})
}

// replicated makes a topic on both brokers with each as leader of a partition,
// and writes and reads it.
func replicated(t *testing.T, seeds ...string) {
	t.Helper()
	client := connect(t, seeds[0], "PLAIN", "admin", "of admin", kgo.SeedBrokers(seeds...))
	admin := kadm.NewClient(client)
	createOnBoth(t, admin, 4)
	real.Until(t, time.Minute, "both brokers are in every ISR", func() bool {
		topics, err := admin.ListTopics(t.Context(), "t")
		leaders, whole := map[int32]bool{}, 0
		for _, p := range topics["t"].Partitions {
			if leaders[p.Leader] = true; len(p.ISR) == 2 {
				whole++
			}
		}
		return err == nil && whole == 4 && len(leaders) == 2
	})
	// Over more than two sessions.
	for began, n := time.Now(), 0; time.Since(began) < 4*time.Second; n++ {
		record := &kgo.Record{Topic: "t", Key: fmt.Append(nil, n), Value: []byte("x")}
		if err := client.ProduceSync(t.Context(), record).FirstErr(); err != nil {
			t.Fatalf("record %d: %v", n, err)
		}
	}
	cmd := kcat(t, strings.Join(seeds, ","), "PLAIN", "admin", "of admin", "-P", "-t", "t", "-p", "0", "-X", "acks=all")
	cmd.Stdin = strings.NewReader("of kcat\n")
	real.Run(t, time.Minute, cmd)
	if got := real.Run(t, time.Minute, kcat(t, strings.Join(seeds, ","), "PLAIN", "admin", "of admin", "-C", "-t", "t", "-e", "-q")); !strings.Contains(got, "of kcat\n") {
		t.Errorf("kcat read %d bytes, not its own record", len(got))
	}
	topics, err := admin.ListTopics(t.Context(), "t")
	for _, p := range topics["t"].Partitions {
		if len(p.ISR) != 2 {
			t.Errorf("partition %d: ISR %v", p.Partition, p.ISR)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// TestMixedClusterOnSASLAlone has Kafka 3.9.1 and Barnabas in one cluster whose
// only listeners have SASL, and compares their registrations (host null and
// port -1: there is nothing for clients of 0.8).
func TestMixedClusterOnSASLAlone(t *testing.T) {
	zk := real.ZooKeeper(t)
	properties := between(zk, "PLAIN")
	kafka := real.Kafka(t, "3.9.1", 1, zk, properties...)
	ours := real.Barnabas(t, 2, properties...)
	replicated(t, kafka.Addr, ours.Addr)
	want, got := registration(t, zk, 1), registration(t, zk, 2)
	if want != got || !strings.Contains(got, `"host":null`) || !strings.Contains(got, `"port":-1`) {
		t.Errorf("registered\n%s\nKafka\n%s", got, want)
	}
	for _, out := range []string{ours.Output(), kafka.Output()} {
		if m := regexp.MustCompile(`(?i)[^\n]*(session has expired|authentication failed|failed authentication|failed re-auth)[^\n]*`).FindString(out); m != "" {
			t.Errorf("the brokers had trouble: %s", m)
		}
	}
}

// registration is /brokers/ids/N without its time and port.
func registration(t *testing.T, zk string, id int32) string {
	t.Helper()
	data, _, err := keeper(t, zk).Get(t.Context(), znode.BrokerPath(id))
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	delete(fields, "timestamp")
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(string(text), "address")
}

func keeper(t *testing.T, addr string) *zookeeper.Client {
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

// TestABrokerThatOthersDoNotTakeSaysWhy, and so do the others.
func TestABrokerThatOthersDoNotTakeSaysWhy(t *testing.T) {
	zk := real.ZooKeeper(t)
	good := real.Barnabas(t, 1, between(zk, "PLAIN")...)
	bad := real.Barnabas(t, 2, append(between(zk, "PLAIN"), "listener.name.sasl_plaintext.plain.sasl.jaas.config="+plainModule+
		` required username="broker" password="not the others'" user_broker="not the others'" user_admin="of admin";`)...)
	const why = "Invalid username or password"
	good.UntilRunning(30*time.Second, "says why it can't ask broker 2", func() bool { return strings.Contains(good.Output(), "another broker can't be asked") })
	bad.UntilRunning(30*time.Second, "says whom it refused", func() bool { return strings.Contains(bad.Output(), why) })
	if out := good.Output(); !strings.Contains(out, why) || !strings.Contains(out, bad.Addr) {
		t.Errorf("it says:\n%s", out)
	}
}

// TestBrokersAuthenticateWithSCRAM has two Barnabas brokers do so with
// credentials that were in ZooKeeper before them.
func TestBrokersAuthenticateWithSCRAM(t *testing.T) {
	zk := real.ZooKeeper(t)
	m := security.SCRAMs[1]
	salted, err := pbkdf2.Key(sha512.New, "of broker", []byte("salt"), int(m.MinIterations), sha512.Size)
	if err != nil {
		t.Fatal(err)
	}
	data := znode.EncodeConfig(map[string]string{m.Name: m.Credential([]byte("salt"), salted, m.MinIterations).String()})
	if _, _, err := keeper(t, zk).CreateRecursive(t.Context(), znode.UserConfig(znode.EntityName{Name: "broker"}).Path(), data, zookeeper.Persistent); err != nil {
		t.Fatal(err)
	}
	properties := between(zk, m.Name)
	replicated(t, real.Barnabas(t, 1, properties...).Addr, real.Barnabas(t, 2, properties...).Addr)
}
