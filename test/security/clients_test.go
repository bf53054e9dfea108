package security

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"barnabas/test/real"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func TestMain(m *testing.M) { real.Main(m) }

const (
	plainModule = "org.apache.kafka.common.security.plain.PlainLoginModule"
	scramModule = "org.apache.kafka.common.security.scram.ScramLoginModule"
)

var mechanisms = []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}

// saslOnly starts a broker whose only listener has SASL, which it also uses
// towards itself: admin and alice are users of PLAIN.
func saslOnly(t *testing.T, properties ...string) *real.BarnabasBroker {
	t.Helper()
	return real.Barnabas(t, 1, append([]string{"listeners=SASL_PLAINTEXT://{addr}", "security.inter.broker.protocol=SASL_PLAINTEXT",
		"sasl.enabled.mechanisms=" + strings.Join(mechanisms, ","), "sasl.mechanism.inter.broker.protocol=PLAIN",
		"listener.name.sasl_plaintext.plain.sasl.jaas.config=" + plainModule + ` required username="admin" password="of admin" user_admin="of admin" user_alice="of alice";`,
	}, properties...)...)
}

func mechanism(name, user, password string) sasl.Mechanism {
	switch a := (scram.Auth{User: user, Pass: password}); name {
	case "PLAIN":
		return plain.Auth{User: user, Pass: password}.AsMechanism()
	case "SCRAM-SHA-256":
		return a.AsSha256Mechanism()
	default:
		return a.AsSha512Mechanism()
	}
}

func connect(t *testing.T, addr, name, user, password string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(addr), kgo.SASL(mechanism(name, user, password)), kgo.AllowAutoTopicCreation(),
		kgo.RecordDeliveryTimeout(30 * time.Second)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func setScram(t *testing.T, addr, user, password string, names ...kadm.ScramMechanism) {
	t.Helper()
	var upserts []kadm.UpsertSCRAM
	for _, m := range names {
		upserts = append(upserts, kadm.UpsertSCRAM{User: user, Mechanism: m, Iterations: 4096, Password: password})
	}
	answers, err := kadm.NewClient(connect(t, addr, "PLAIN", "admin", "of admin")).AlterUserSCRAMs(t.Context(), nil, upserts)
	if err != nil || answers.Error() != nil {
		t.Fatalf("SCRAM of %s: %v %+v", user, err, answers)
	}
}

// pingAs tells whether a user may connect.
func pingAs(t *testing.T, addr, name, user, password string) error {
	t.Helper()
	client := connect(t, addr, name, user, password)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return client.Ping(ctx)
}

// java is a properties file of Java's clients.
func java(t *testing.T, name, user, password string) string {
	t.Helper()
	module := scramModule
	if name == "PLAIN" {
		module = plainModule
	}
	file := filepath.Join(t.TempDir(), "client.properties")
	text := fmt.Sprintf("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=%s\nsasl.jaas.config=%s required username=\"%s\" password=\"%s\";\n", name, module, user, password)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func kcat(t *testing.T, addr, name, user, password string, args ...string) *exec.Cmd {
	t.Helper()
	return real.Kcat(t, append([]string{"-b", addr, "-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.mechanism=" + name,
		"-X", "sasl.username=" + user, "-X", "sasl.password=" + password}, args...)...)
}

func consoleProducer(t *testing.T, addr, topic, file string) *exec.Cmd {
	cmd := real.Java(t, "3.9.1", "kafka.tools.ConsoleProducer", "--bootstrap-server", addr, "--topic", topic, "--producer.config", file,
		"--request-timeout-ms", "20000")
	cmd.Stdin = strings.NewReader("java\n")
	return cmd
}

// TestClientsAuthenticate has each client write and read through a listener
// that takes nobody without a password.
func TestClientsAuthenticate(t *testing.T) {
	broker := saslOnly(t)
	addr := broker.Addr
	admin := java(t, "PLAIN", "admin", "of admin")
	real.Run(t, time.Minute, exec.Command(real.Binary(t), "configs", "--bootstrap-server", addr, "--command-config", admin,
		"--alter", "--add-config", "SCRAM-SHA-256=[password=of alice]", "--entity-type", "users", "--entity-name", "alice"))
	real.Run(t, time.Minute, real.Java(t, "3.9.1", "kafka.admin.ConfigCommand", "--bootstrap-server", addr, "--command-config", admin,
		"--alter", "--add-config", "SCRAM-SHA-512=[iterations=8192,password=of alice]", "--entity-type", "users", "--entity-name", "alice"))
	for _, name := range mechanisms {
		t.Run("kcat "+name, func(t *testing.T) {
			cmd := kcat(t, addr, name, "alice", "of alice", "-P", "-t", "kcat-"+name)
			cmd.Stdin = strings.NewReader("kcat\n")
			real.Run(t, time.Minute, cmd)
			if got := real.Run(t, time.Minute, kcat(t, addr, name, "alice", "of alice", "-C", "-t", "kcat-"+name, "-e", "-q")); got != "kcat\n" {
				t.Errorf("read %q", got)
			}
		})
		t.Run("franz-go "+name, func(t *testing.T) {
			client := connect(t, addr, name, "alice", "of alice", kgo.ConsumeTopics("franz-"+name), kgo.ConsumerGroup("franz-"+name), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
			if err := client.ProduceSync(t.Context(), kgo.StringRecord("franz")).FirstErr(); err == nil {
				t.Error("a record without a topic")
			}
			if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "franz-" + name, Value: []byte("franz")}).FirstErr(); err != nil {
				t.Fatal(err)
			}
			if got := client.PollRecords(t.Context(), 1).Records(); len(got) != 1 || string(got[0].Value) != "franz" {
				t.Errorf("read %v", got)
			}
		})
	}
	t.Run("kafka-python", func(t *testing.T) {
		for _, name := range mechanisms[:2] {
			got := real.Run(t, time.Minute, real.Python(t, "testdata/kafka_python.py", addr, "python-"+name, name, "alice", "of alice"))
			if got != "kafka-python "+name+"\n" {
				t.Errorf("%s: read %q", name, got)
			}
		}
	})
	t.Run("sarama", func(t *testing.T) { saramaRoundTrips(t, addr) })
	t.Run("java", func(t *testing.T) {
		file := java(t, "SCRAM-SHA-512", "alice", "of alice")
		real.Run(t, time.Minute, consoleProducer(t, addr, "java", file))
		got := real.Run(t, time.Minute, real.Java(t, "3.9.1", "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", addr, "--topic", "java",
			"--from-beginning", "--max-messages", "1", "--timeout-ms", "30000", "--consumer.config", file))
		if got != "java\n" {
			t.Errorf("read %q", got)
		}
	})
	t.Run("barnabas", func(t *testing.T) {
		cmd := exec.Command(real.Binary(t), "topics", "--bootstrap-server", addr, "--command-config", java(t, "SCRAM-SHA-256", "alice", "of alice"), "--list")
		if got := real.Run(t, time.Minute, cmd); !strings.Contains(got, "kcat-PLAIN") {
			t.Errorf("topics: %q", got)
		}
	})
}

// saramaRoundTrips uses both framings of tokens.
func saramaRoundTrips(t *testing.T, addr string) {
	for version := range int16(2) {
		config := sarama.NewConfig()
		config.Version = sarama.V2_8_0_0
		config.ApiVersionsRequest = version > 0 // sarama's own rule
		config.Net.SASL.Enable, config.Net.SASL.Version = true, version
		config.Net.SASL.Mechanism, config.Net.SASL.User, config.Net.SASL.Password = sarama.SASLTypePlaintext, "alice", "of alice"
		config.Producer.Return.Successes = true
		client, err := sarama.NewClient([]string{addr}, config)
		if err != nil {
			t.Fatalf("SASL v%d: %v", version, err)
		}
		defer client.Close()
		producer, err := sarama.NewSyncProducerFromClient(client)
		if err != nil {
			t.Fatal(err)
		}
		topic := fmt.Sprint("sarama-", version)
		if _, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("sarama")}); err != nil {
			t.Fatalf("SASL v%d: %v", version, err)
		}
		consumer, err := sarama.NewConsumerFromClient(client)
		if err != nil {
			t.Fatal(err)
		}
		partition, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case m := <-partition.Messages():
			if string(m.Value) != "sarama" {
				t.Errorf("read %q", m.Value)
			}
		case <-time.After(30 * time.Second):
			t.Errorf("SASL v%d: nothing read", version)
		}
		partition.Close()
	}
}

// TestWrongPasswordIsAClearError, with every client and at once.
func TestWrongPasswordIsAClearError(t *testing.T) {
	broker := saslOnly(t)
	addr := broker.Addr
	setScram(t, addr, "alice", "of alice", kadm.ScramSha256, kadm.ScramSha512)
	for name, says := range map[string]string{
		"PLAIN":         "Invalid username or password",
		"SCRAM-SHA-256": "invalid credentials with SASL mechanism SCRAM-SHA-256",
		"SCRAM-SHA-512": "invalid credentials with SASL mechanism SCRAM-SHA-512",
	} {
		for _, user := range []string{"alice", "nobody"} {
			if err := pingAs(t, addr, name, user, "wrong"); err == nil || !strings.Contains(err.Error(), "SASL_AUTHENTICATION_FAILED") {
				t.Errorf("franz-go, %s as %s: %v", name, user, err)
			}
			cmd := kcat(t, addr, name, user, "wrong", "-P", "-t", "t")
			cmd.Stdin = strings.NewReader("x\n")
			out, errOut, err := real.Try(t, time.Minute, cmd)
			if err == nil || !strings.Contains(errOut, says) {
				t.Errorf("kcat, %s as %s: %v\n%s%s", name, user, err, out, errOut)
			}
		}
	}
	_, errOut, _ := real.Try(t, time.Minute, consoleProducer(t, addr, "t", java(t, "PLAIN", "alice", "wrong")))
	if !strings.Contains(errOut, "SaslAuthenticationException: Authentication failed: Invalid username or password") {
		t.Errorf("Java: %s", errOut)
	}
	for version, says := range []string{"EOF", "Invalid username or password"} {
		config := sarama.NewConfig()
		config.Net.SASL.Enable, config.Net.SASL.Version, config.ApiVersionsRequest = true, int16(version), version > 0
		config.Net.SASL.User, config.Net.SASL.Password = "alice", "wrong"
		config.Metadata.Retry.Max = 0
		if client, err := sarama.NewClient([]string{addr}, config); err == nil {
			client.Close()
			t.Errorf("sarama, SASL v%d: no error", version)
		} else {
			t.Logf("sarama, SASL v%d: %v", version, err)
			if !strings.Contains(err.Error(), says) {
				t.Errorf("sarama, SASL v%d: %v does not say %q", version, err, says)
			}
		}
	}
	// One line in 10 s for an address: which of them is chance.
	if out := broker.Output(); !strings.Contains(out, "authentication failed: ") || strings.Contains(out, "of alice") {
		t.Errorf("the broker's log says too little, or too much:\n%s", out)
	}
}

// TestCredentialsChangeAtOnce, and outlive the broker.
func TestCredentialsChangeAtOnce(t *testing.T) {
	broker := saslOnly(t)
	addr := broker.Addr
	check := func(what, password string, ok bool) {
		t.Helper()
		real.Until(t, 20*time.Second, what, func() bool { return (pingAs(t, addr, "SCRAM-SHA-512", "carol", password) == nil) == ok })
	}
	check("no user yet", "one", false)
	setScram(t, addr, "carol", "one", kadm.ScramSha512)
	check("a user", "one", true)
	setScram(t, addr, "carol", "two", kadm.ScramSha512)
	check("another password", "two", true)
	check("the old password", "one", false)
	broker.Kill()
	broker.Restart(t)
	check("after a restart", "two", true)
	admin := kadm.NewClient(connect(t, addr, "PLAIN", "admin", "of admin"))
	if answers, err := admin.AlterUserSCRAMs(t.Context(), []kadm.DeleteSCRAM{{User: "carol", Mechanism: kadm.ScramSha512}}, nil); err != nil || answers.Error() != nil {
		t.Fatalf("%v %v", err, answers)
	}
	check("deleted", "two", false)
}
