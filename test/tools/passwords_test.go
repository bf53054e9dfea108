package tools

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"barnabas/test/real"
)

// Dynamic passwords that one of Kafka and Barnabas has written are read by the
// other when it takes the broker's place, also when the secret changes.
func TestPasswordsOfABrokerAreReadByTheOne(t *testing.T) {
	zk := real.ZooKeeper(t)
	// Kafka encodes anew only while another broker is the controller.
	other := real.Barnabas(t, 2, "zookeeper.connect="+zk, "inter.broker.protocol.version=2.8")
	const first, second = "listener.name.plaintext.ssl.key.password", "listener.name.plaintext.plain.sasl.jaas.config"
	const password = "pässwörd: 1"
	run := func(addr string, args ...string) string {
		return real.Run(t, time.Minute, exec.Command(real.Binary(t), append([]string{"configs", "--bootstrap-server", addr}, args...)...))
	}
	// What can't be decoded is not in force, and so not shown.
	shows := func(who, addr string, keys ...string) {
		t.Helper()
		for _, key := range keys {
			real.Until(t, 30*time.Second, who+" to have "+key, func() bool {
				return strings.Contains(run(addr, "--describe", "--broker", "1"), "  "+key+"=null sensitive=true synonyms={DYNAMIC_BROKER_CONFIG:"+key+"=null")
			})
		}
	}
	kafka := real.Kafka(t, "3.9.1", 1, zk, "password.encoder.secret=one")
	run(kafka.Addr, "--alter", "--broker", "1", "--add-config", first+"="+password)
	shows("Kafka", kafka.Addr, first)
	kafka.Stop()

	dir := t.TempDir()
	ours := real.Barnabas(t, 1, "zookeeper.connect="+zk, "inter.broker.protocol.version=2.8", "log.dirs="+filepath.Join(dir, "a"), "password.encoder.secret=one")
	shows("Barnabas after Kafka", ours.Addr, first)
	run(ours.Addr, "--alter", "--broker", "1", "--add-config", second+"=[org.apache.kafka.common.security.plain.PlainLoginModule required username=u password=p;]")
	shows("Barnabas", ours.Addr, first, second)
	ours.Stop()

	kafka = real.Kafka(t, "3.9.1", 1, zk, "password.encoder.secret=two", "password.encoder.old.secret=one")
	shows("Kafka after Barnabas, with a new secret", kafka.Addr, first, second)
	kafka.Stop()

	ours = real.Barnabas(t, 1, "zookeeper.connect="+zk, "inter.broker.protocol.version=2.8", "log.dirs="+filepath.Join(dir, "b"), "password.encoder.secret=three", "password.encoder.old.secret=two")
	shows("Barnabas with a third secret", ours.Addr, first, second)
	ours.Stop()
	kafka = real.Kafka(t, "3.9.1", 1, zk, "password.encoder.secret=three")
	shows("Kafka after that", kafka.Addr, first, second)
	stored := real.Run(t, time.Minute, exec.Command(real.Binary(t), "zookeeper-shell", zk, "get", "/config/brokers/1"))
	if strings.Contains(stored, password) || strings.Contains(stored, "username") {
		t.Errorf("a password is there to be read: %s", stored)
	}

	_, said, err := real.Try(t, time.Minute, exec.Command(real.Binary(t), "configs", "--bootstrap-server", other.Addr, "--alter", "--broker", "2", "--add-config", first+"=x"))
	if err == nil || !strings.Contains(said, "Password encoder secret not configured") {
		t.Errorf("without a secret: %v, %s", err, said)
	}
}
