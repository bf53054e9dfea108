package security

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"barnabas/internal/pemstore"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// encrypted starts a broker with a listener SSL, whose clients must show a
// certificate, and a listener SASL_SSL, whose clients need not unless its own
// ssl.client.auth says so. Its own keys are in the properties of one listener
// and in a file for the other.
func encrypted(t *testing.T, pem real.PEMStores) (ssl, saslSSL string, broker *real.Process) {
	t.Helper()
	ssl, saslSSL = "localhost:"+real.FreePort(t), "localhost:"+real.FreePort(t)
	text, err := os.ReadFile(pem.Server)
	if err != nil {
		t.Fatal(err)
	}
	inline := strings.ReplaceAll(string(text), "\n", `\n`)
	key, chain, _ := strings.Cut(inline, `-----BEGIN CERTIFICATE`)
	file := filepath.Join(t.TempDir(), "server.properties")
	lines := []string{"broker.id=1", "listeners=SSL://" + ssl + ",SASL_SSL://" + saslSSL, "security.inter.broker.protocol=SSL", "keeper.listen=",
		"log.dirs=" + t.TempDir(), "keeper.dir=" + t.TempDir(), "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512",
		"ssl.keystore.type=PEM", "ssl.truststore.type=PEM", "ssl.truststore.location=" + pem.Authority,
		"listener.name.ssl.ssl.keystore.key=" + key, "listener.name.ssl.ssl.keystore.certificate.chain=-----BEGIN CERTIFICATE" + chain,
		"ssl.client.auth=required", "listener.name.sasl_ssl.ssl.keystore.location=" + pem.Server,
		"listener.name.sasl_ssl.plain.sasl.jaas.config=" + plainModule + ` required user_admin="of admin";`}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return ssl, saslSSL, real.Start(t, "barnabas", exec.Command(real.Binary(t), "start", file))
}

func tlsClient(t *testing.T, addr, keys, trusted string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := pemstore.Client(keys, trusted, true)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(addr), kgo.DialTLSConfig(c), kgo.AllowAutoTopicCreation(), kgo.RecordDeliveryTimeout(30 * time.Second)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func javaTLS(t *testing.T, trusted string, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "client.properties")
	text := "ssl.truststore.type=PEM\nssl.truststore.location=" + trusted + "\n" + strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestClientsOverTLS has kcat, Java and Go write and read over both listeners,
// large answers too, and tells who gets nowhere and hears why.
func TestClientsOverTLS(t *testing.T) {
	pem := real.PEM(t)
	ssl, saslSSL, broker := encrypted(t, pem)
	client := tlsClient(t, ssl, pem.Client, pem.Authority, kgo.ConsumeTopics("large"), kgo.ProducerBatchCompression(kgo.NoCompression()))
	broker.UntilRunning(30*time.Second, "answers", func() bool { return client.Ping(t.Context()) == nil })
	big := bytes.Repeat([]byte("0123456789abcdef"), 50_000)
	for i := range 10 {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "large", Value: append(fmt.Append(nil, i, " "), big...)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; i < 10; {
		fetches := client.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if want := fmt.Sprint(i, " "); !bytes.HasPrefix(r.Value, []byte(want)) || !bytes.HasSuffix(r.Value, big) {
				t.Errorf("record %d is damaged", i)
			}
			i++
		})
	}
	t.Run("kcat", func(t *testing.T) {
		for name, flags := range map[string][]string{
			"ssl": {"-b", ssl, "-X", "security.protocol=SSL", "-X", "ssl.ca.location=" + pem.Authority, "-X", "ssl.certificate.location=" + pem.Client, "-X", "ssl.key.location=" + pem.Client},
			"sasl-ssl": {"-b", saslSSL, "-X", "security.protocol=SASL_SSL", "-X", "ssl.ca.location=" + pem.Authority, "-X", "sasl.mechanism=PLAIN",
				"-X", "sasl.username=admin", "-X", "sasl.password=of admin"},
		} {
			cmd := real.Kcat(t, append(flags, "-P", "-t", "kcat-"+name)...)
			cmd.Stdin = strings.NewReader("x\n")
			real.Run(t, time.Minute, cmd)
			if got := real.Run(t, time.Minute, real.Kcat(t, append(flags, "-C", "-t", "kcat-"+name, "-e", "-q")...)); got != "x\n" {
				t.Errorf("%s: read %q", name, got)
			}
		}
	})
	t.Run("java", func(t *testing.T) {
		file := javaTLS(t, pem.Authority, "security.protocol=SASL_SSL", "sasl.mechanism=PLAIN", "sasl.jaas.config="+plainModule+` required username="admin" password="of admin";`)
		real.Run(t, time.Minute, consoleProducer(t, saslSSL, "java", file))
		mine := javaTLS(t, pem.Authority, "security.protocol=SSL", "ssl.keystore.type=PEM", "ssl.keystore.location="+pem.Client)
		got := real.Run(t, time.Minute, real.Java(t, "3.9.1", "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", ssl, "--topic", "java",
			"--from-beginning", "--max-messages", "1", "--timeout-ms", "30000", "--consumer.config", mine))
		if got != "java\n" {
			t.Errorf("read %q", got)
		}
	})
	t.Run("refused", func(t *testing.T) { refusedOverTLS(t, pem, ssl, saslSSL) })
	if out := broker.Output(); !strings.Contains(out, "TLS handshake") {
		t.Errorf("the log says nothing of failed handshakes:\n%s", out)
	}
}

func refusedOverTLS(t *testing.T, pem real.PEMStores, ssl, saslSSL string) {
	for _, bad := range []struct {
		what   string
		client *kgo.Client
	}{ // the broker's log has a line of the first, and no more of one address for a while
		{"no certificate", tlsClient(t, ssl, "", pem.Authority)},
		{"a certificate of another authority", tlsClient(t, ssl, pem.Alone, pem.Authority)},
		{"no SASL", tlsClient(t, saslSSL, "", pem.Authority)},
		{"a wrong password", tlsClient(t, saslSSL, "", pem.Authority, kgo.SASL(mechanism("PLAIN", "admin", "wrong")))},
	} {
		if err := bad.client.Ping(t.Context()); err == nil {
			t.Errorf("%s: connected", bad.what)
		}
	}
	plain := connect(t, saslSSL, "PLAIN", "admin", "of admin")
	if err := plain.Ping(t.Context()); err == nil {
		t.Error("connected without TLS")
	}
	old := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}}
	if c, err := old.DialContext(t.Context(), "tcp", saslSSL); err == nil {
		c.Close()
		t.Error("connected with TLS 1.1")
	}
	// A client that says nothing, or stops in the middle, holds nobody up.
	silent, err := net.Dial("tcp", saslSSL)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	_, errOut, _ := real.Try(t, time.Minute, consoleProducer(t, saslSSL, "t", javaTLS(t, pem.Alone, "security.protocol=SASL_SSL", "sasl.mechanism=PLAIN",
		"sasl.jaas.config="+plainModule+` required username="admin" password="of admin";`)))
	if !strings.Contains(errOut, "SslAuthenticationException") {
		t.Errorf("Java that trusts another authority: %s", errOut)
	}
}

// TestNewCertificatesWithoutARestart: the file of a key store is replaced, and the
// property that names it set again, as with Kafka (KIP-226).
func TestNewCertificatesWithoutARestart(t *testing.T) {
	first, second := real.PEM(t), real.PEM(t)
	store := filepath.Join(t.TempDir(), "keys.pem")
	replace := func(by string) {
		t.Helper()
		text, err := os.ReadFile(by)
		if err == nil {
			err = os.WriteFile(store, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	replace(first.Server)
	ssl := "localhost:" + real.FreePort(t)
	broker := real.Barnabas(t, 1, "listeners=PLAINTEXT://{addr},SSL://"+ssl, "ssl.keystore.type=PEM", "listener.name.ssl.ssl.keystore.location="+store)
	trusts := func(pem real.PEMStores) bool {
		client := tlsClient(t, ssl, "", pem.Authority)
		defer client.Close()
		return client.Ping(t.Context()) == nil
	}
	if !trusts(first) || trusts(second) {
		t.Fatal("not the first certificate")
	}
	renew := func() {
		real.Run(t, time.Minute, exec.Command(real.Binary(t), "configs", "--bootstrap-server", broker.Addr, "--alter", "--add-config",
			"listener.name.ssl.ssl.keystore.location="+store, "--entity-type", "brokers", "--entity-name", "1"))
	}
	replace(second.Server)
	renew()
	real.Until(t, 20*time.Second, "the second certificate is shown", func() bool { return trusts(second) })
	replace(second.Authority) // no key in it
	renew()
	broker.UntilRunning(20*time.Second, "says that it can't be used", func() bool { return strings.Contains(broker.Output(), "keeps the certificates") })
	if !trusts(second) {
		t.Error("a bad key store took the good one's place")
	}
}

// TestBrokersOverTLS has Kafka 3.9.1 and Barnabas replicate over an
// inter-broker listener SASL_SSL.
func TestBrokersOverTLS(t *testing.T) {
	pem := real.PEM(t)
	zk := real.ZooKeeper(t)
	properties := func() []string {
		tls := "127.0.0.1:" + real.FreePort(t)
		return []string{"zookeeper.connect=" + zk, "listeners=PLAINTEXT://{addr},SASL_SSL://" + tls, "security.inter.broker.protocol=SASL_SSL",
			"sasl.enabled.mechanisms=PLAIN", "sasl.mechanism.inter.broker.protocol=PLAIN", "inter.broker.protocol.version=3.9",
			"listener.name.sasl_ssl.plain.sasl.jaas.config=" + plainModule + ` required username="broker" password="of broker" user_broker="of broker";`,
			"ssl.keystore.type=PEM", "ssl.truststore.type=PEM", "ssl.keystore.location=" + pem.Server, "ssl.truststore.location=" + pem.Authority,
			"listener.name.sasl_ssl.ssl.client.auth=required", "offsets.topic.replication.factor=1"}
	}
	kafka := real.Kafka(t, "3.9.1", 1, zk, properties()...)
	ours := real.Barnabas(t, 2, properties()...)
	client, err := kgo.NewClient(kgo.SeedBrokers(kafka.Addr, ours.Addr), kgo.RecordDeliveryTimeout(30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	createOnBoth(t, kadm.NewClient(client), 2)
	for i := range 100 {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Key: fmt.Append(nil, i), Value: make([]byte, 10_000)}).FirstErr(); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
	}
}
