package security

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"barnabas/test/real"
)

func writeLines(t *testing.T, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tls.properties")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func inlinePEM(t *testing.T, file string) (key, chain string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	key, chain, _ = strings.Cut(strings.ReplaceAll(string(text), "\n", `\n`), "-----BEGIN CERTIFICATE")
	return key, "-----BEGIN CERTIFICATE" + chain
}

// TestCommandsOverTLS has our commands reach a listener that asks for
// certificates, with stores in files and in the properties themselves, and tells
// who gets nowhere.
func TestCommandsOverTLS(t *testing.T) {
	pem := real.PEM(t)
	ssl, _, broker := encrypted(t, pem)
	client := tlsClient(t, ssl, pem.Client, pem.Authority)
	broker.UntilRunning(30*time.Second, "answers", func() bool { return client.Ping(t.Context()) == nil })
	key, chain := inlinePEM(t, pem.Client)
	_, authority := inlinePEM(t, pem.Authority)
	files := writeLines(t, "security.protocol=SSL", "ssl.truststore.type=PEM", "ssl.truststore.location="+pem.Authority,
		"ssl.keystore.type=PEM", "ssl.keystore.location="+pem.Client, "ssl.enabled.protocols=TLSv1.3")
	inline := writeLines(t, "security.protocol=SSL", "ssl.truststore.type=PEM", "ssl.truststore.certificates="+authority,
		"ssl.keystore.type=PEM", "ssl.keystore.key="+key, "ssl.keystore.certificate.chain="+chain)
	ours := func(input string, args ...string) *exec.Cmd {
		cmd := exec.Command(real.Binary(t), args...)
		cmd.Stdin = strings.NewReader(input)
		return cmd
	}
	for _, file := range []string{files, inline} {
		topic := "t" + filepath.Base(filepath.Dir(file))
		real.Run(t, time.Minute, ours("", "topics", "--bootstrap-server", ssl, "--command-config", file, "--create", "--topic", topic, "--partitions", "1"))
		real.Run(t, time.Minute, ours("secret\n", "console-producer", "--bootstrap-server", ssl, "--producer.config", file, "--topic", topic))
		got := real.Run(t, time.Minute, ours("", "console-consumer", "--bootstrap-server", ssl, "--consumer.config", file, "--topic", topic, "--from-beginning", "--max-messages", "1", "--group", "g"))
		if got != "secret\n" {
			t.Errorf("read %q", got)
		}
		real.Run(t, time.Minute, ours("", "producer-perf-test", "--topic", topic, "--num-records", "5", "--record-size", "10", "--throughput", "-1",
			"--producer.config", file, "--producer-props", "bootstrap.servers="+ssl))
		real.Run(t, time.Minute, ours("", "consumer-perf-test", "--bootstrap-server", ssl, "--consumer.config", file, "--topic", topic, "--messages", "5"))
		for _, args := range [][]string{
			{"configs", "--describe", "--topic", topic}, {"consumer-groups", "--describe", "--group", "g"}, {"get-offsets", "--topic", topic},
			{"leader-election", "--election-type", "preferred", "--all-topic-partitions"}, {"reassign-partitions", "--list"},
			{"transactions", "list"}, {"why", "--topic", topic},
		} {
			with := []string{args[0], "--bootstrap-server", ssl, "--command-config", file}
			if args[0] == "leader-election" {
				with[3] = "--admin.config"
			}
			real.Run(t, time.Minute, ours("", append(with, args[1:]...)...))
		}
	}
	// That names are not looked at does not let a foreign certificate pass.
	trust := []string{"security.protocol=SSL", "ssl.truststore.type=PEM", "ssl.truststore.location=" + pem.Authority}
	for _, c := range []struct {
		name  string
		lines []string
		said  string
	}{
		{"no certificate of its own", trust, "certificate"},
		{"one of another authority", append(trust[:3:3], "ssl.keystore.type=PEM", "ssl.keystore.location="+pem.Alone), "certificate"},
		{"a server that nobody vouches for", []string{"security.protocol=SSL", "ssl.truststore.type=PEM", "ssl.truststore.location=" + pem.Alone, "ssl.endpoint.identification.algorithm="}, "certificate"},
		{"a Java key store", append(trust[:3:3], "ssl.keystore.type=JKS", "ssl.keystore.location="+pem.Client), "convert the store"},
	} {
		_, said, err := real.Try(t, time.Minute, ours("", "topics", "--bootstrap-server", ssl, "--command-config", writeLines(t, c.lines...), "--list"))
		if err == nil || !strings.Contains(said, c.said) {
			t.Errorf("%s: %v, %q", c.name, err, said)
		}
	}
}

// TestZooKeeperCommandsOverTLS has those that speak to ZooKeeper reach the TLS
// port of the embedded one.
func TestZooKeeperCommandsOverTLS(t *testing.T) {
	pem := real.PEM(t)
	addr := "127.0.0.1:" + real.FreePort(t)
	broker := real.Barnabas(t, 1, "keeper.ssl.listen="+addr, "keeper.ssl.keystore.location="+pem.Server, "keeper.ssl.truststore.location="+pem.Authority)
	stores := []string{"zookeeper.ssl.client.enable=true", "zookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty",
		"zookeeper.ssl.truststore.type=PEM", "zookeeper.ssl.truststore.location=" + pem.Authority}
	mine := append(stores[:4:4], "zookeeper.ssl.keystore.type=PEM", "zookeeper.ssl.keystore.location="+pem.Client)
	file := writeLines(t, mine...)
	ours := func(args ...string) *exec.Cmd { return exec.Command(real.Binary(t), args...) }
	real.Run(t, time.Minute, ours("topics", "--bootstrap-server", broker.Addr, "--create", "--topic", "t", "--partitions", "1"))
	shell := func(file string, args ...string) []string {
		return append([]string{"zookeeper-shell", addr, "-zk-tls-config-file", file}, args...)
	}
	if out := real.Run(t, time.Minute, ours(shell(file, "ls", "/brokers/topics")...)); !strings.Contains(out, "\n[t]\n") {
		t.Errorf("the shell shows %q", out)
	}
	if out := real.Run(t, time.Minute, ours(shell(file, "create", "-c", "/box")...)); !strings.Contains(out, "SyncConnected") {
		t.Errorf("the shell shows %q", out)
	}
	for _, dashes := range []string{"-", "--"} {
		if out := real.Run(t, time.Minute, ours("zookeeper-shell", addr, dashes+"zk-tls-config-file", file, "getAllChildrenNumber", "/brokers/topics")); !strings.Contains(out, "\n4\n") {
			t.Errorf("the shell shows %q", out)
		}
	}
	if out := real.Run(t, time.Minute, ours("configs", "--zookeeper", addr, "--zk-tls-config-file", file, "--alter", "--add-config", "retention.ms=7", "--entity-type", "topics", "--entity-name", "t")); !strings.Contains(out, "Completed") {
		t.Errorf("configs says %q", out)
	}
	for name, lines := range map[string][]string{
		"no certificate of its own":        stores,
		"one of another authority":         append(stores[:4:4], "zookeeper.ssl.keystore.type=PEM", "zookeeper.ssl.keystore.location="+pem.Alone),
		"a server that nobody vouches for": {"zookeeper.ssl.client.enable=true", "zookeeper.ssl.truststore.type=PEM", "zookeeper.ssl.truststore.location=" + pem.Alone, "zookeeper.ssl.endpoint.identification.algorithm="},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits until the shell gives up
			_, said, err := real.Try(t, time.Minute, ours(shell(writeLines(t, lines...), "ls", "/")...))
			if err == nil || !strings.Contains(said, "certificate") {
				t.Errorf("%v, %q", err, said)
			}
		})
	}
	if _, said, err := real.Try(t, time.Minute, ours(shell(writeLines(t, append(mine, "zookeeper.ssl.ocsp.enable=true")...), "ls", "/")...)); err == nil || !strings.Contains(said, "ocsp") {
		t.Errorf("ocsp: %v, %q", err, said)
	}
}
