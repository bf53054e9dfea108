package keeper

import (
	"crypto/tls"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"barnabas/internal/pemstore"
	"barnabas/test/real"
)

// secureZooKeeper starts "barnabas zookeeper" with a TLS listener that asks for
// certificates.
func secureZooKeeper(t *testing.T, pem real.PEMStores) (addr string) {
	t.Helper()
	addr = "localhost:" + real.FreePort(t)
	p := real.Start(t, "barnabas zookeeper", exec.Command(real.Binary(t), "zookeeper", "--listen", "", "--dir", t.TempDir(),
		"--ssl-listen", addr, "--ssl-keystore-location", pem.Server, "--ssl-truststore-location", pem.Authority))
	p.UntilRunning(20*time.Second, "listening", func() bool { return strings.Contains(p.Output(), "listens on") })
	return addr
}

// zkCliSecure runs zkCli with the stores given, and returns what it printed.
func zkCliSecure(t *testing.T, addr, keys, trusted, commands string) (stdout, stderr string) {
	t.Helper()
	flags := []string{"-Dzookeeper.log.threshold=OFF", "-Dzookeeper.client.secure=true", "-Dzookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty",
		"-Dzookeeper.ssl.trustStore.location=" + trusted, "-Dzookeeper.ssl.trustStore.type=PEM",
		"-Dzookeeper.ssl.keyStore.location=" + keys, "-Dzookeeper.ssl.keyStore.type=PEM", "--", "-server", addr, "-waitforconnection", "-timeout", "30000"}
	cmd := real.Java(t, "3.9.1", "org.apache.zookeeper.ZooKeeperMain", flags...)
	cmd.Stdin = strings.NewReader(commands)
	stdout, stderr, _ = real.Try(t, time.Minute, cmd) // it ends with 1 when it could not connect
	return stdout, stderr
}

// Java's client over Netty and kazoo work over TLS with PEM stores; one with a
// certificate of another authority, and one without TLS, get nowhere.
func TestClientsWorkOverTLS(t *testing.T) {
	pem := real.PEM(t)
	addr := secureZooKeeper(t, pem)
	stdout, stderr := zkCliSecure(t, addr, pem.Client, pem.Authority, "create /java hello\nget /java\nquit\n")
	if !strings.Contains(stdout, "\nhello\n") {
		t.Errorf("zkCli:\n%s\n%s", stdout, stderr)
	}
	script := filepath.Join(t.TempDir(), "tls.py")
	if err := os.WriteFile(script, []byte(`
import sys
from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError
server, ca, mine, strange = sys.argv[1:]
def client(**options):
    return KazooClient(hosts=server, timeout=10, connection_retry=dict(max_tries=1), **options)
c = client(use_ssl=True, ca=ca, certfile=mine, keyfile=mine, verify_certs=True)
c.start(timeout=20)
print(c.get("/java")[0])
c.create("/large", b"x" * 500000)
print(len(c.get("/large")[0]))
c.stop()
for options in (dict(use_ssl=True, ca=ca, certfile=strange, keyfile=strange, verify_certs=True), dict()):
    try:
        client(**options).start(timeout=5)
        print("connected")
    except KazooTimeoutError:
        print("refused")
`), 0o600); err != nil {
		t.Fatal(err)
	}
	out := real.Run(t, time.Minute, real.Python(t, script, addr, pem.Authority, pem.Client, pem.Alone))
	if out != "b'hello'\n500000\nrefused\nrefused\n" {
		t.Error("kazoo:", out)
	}
}

// zookeeper.ssl.endpoint.identification.algorithm= leaves out the check of the
// server's name, and no other.
func TestANamesCheckCanBeLeftOut(t *testing.T) {
	pem := real.PEM(t)
	addr := secureZooKeeper(t, pem)
	for _, test := range []struct {
		trusted, name string
		check, want   bool
	}{
		{pem.Authority, "localhost", true, true}, {pem.Authority, "elsewhere", true, false},
		{pem.Authority, "elsewhere", false, true}, {pem.Alone, "localhost", false, false},
	} {
		c, err := pemstore.Client(pem.Client, test.trusted, test.check)
		if err != nil {
			t.Fatal(err)
		}
		c.ServerName = test.name
		nc, err := tls.Dial("tcp", addr, c)
		if (err == nil) != test.want {
			t.Errorf("%+v: %v", test, err)
		}
		if err == nil {
			_ = nc.Close()
		}
	}
}

// A Barnabas broker serves its embedded ZooKeeper over TLS too, and reaches one
// over TLS: ours, which Apache Kafka reaches in the same way, and Apache's.
func TestBrokersUseZooKeeperOverTLS(t *testing.T) {
	pem := real.PEM(t)
	towards := []string{"zookeeper.ssl.client.enable=true", "zookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty",
		"zookeeper.ssl.keystore.location=" + pem.Client, "zookeeper.ssl.keystore.type=PEM",
		"zookeeper.ssl.truststore.location=" + pem.Authority, "zookeeper.ssl.truststore.type=PEM"}

	port := real.FreePort(t)
	real.Barnabas(t, 0, "keeper.ssl.listen=127.0.0.1:"+port, "keeper.ssl.keystore.location="+pem.Server, "keeper.ssl.truststore.location="+pem.Authority)
	stdout, stderr := zkCliSecure(t, "localhost:"+port, pem.Client, pem.Authority, "get /brokers/ids/0\nquit\n")
	if !strings.Contains(stdout, `"PLAINTEXT"`) {
		t.Errorf("zkCli on a broker's own:\n%s\n%s", stdout, stderr)
	}

	ours := secureZooKeeper(t, pem)
	real.Barnabas(t, 1, append(towards, "zookeeper.connect="+ours)...)
	real.Kafka(t, "3.9.1", 2, ours, towards...)

	secure := real.FreePort(t)
	real.StartZooKeeper(t, "secureClientPort="+secure, "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
		"ssl.keyStore.location="+pem.Server, "ssl.keyStore.type=PEM", "ssl.trustStore.location="+pem.Authority, "ssl.trustStore.type=PEM")
	real.Barnabas(t, 3, append(towards, "zookeeper.connect=localhost:"+secure)...)
}

func TestStoresThatCantBeReadAreNamed(t *testing.T) {
	pem := real.PEM(t)
	for _, test := range []struct {
		want string
		args []string
	}{
		{"--ssl-listen: no key store", []string{"zookeeper", "--dir", t.TempDir(), "--listen", "", "--ssl-listen", "127.0.0.1:0"}},
		{pem.Client + ": trust store: " + pemstore.ErrNotPEM.Error(), []string{"start", "--override", "zookeeper.connect=localhost:1", "--override", "zookeeper.ssl.client.enable=true",
			"--override", "log.dirs=" + t.TempDir(), "--override", "zookeeper.ssl.truststore.location=" + notPEM(t, pem.Client)}},
		{"zookeeper.ssl.keystore.type=JKS: only PEM can be read", []string{"start", "--override", "zookeeper.connect=localhost:1", "--override", "zookeeper.ssl.client.enable=true",
			"--override", "log.dirs=" + t.TempDir(), "--override", "zookeeper.ssl.keystore.type=JKS"}},
	} {
		stdout, stderr, err := real.Try(t, 20*time.Second, exec.Command(real.Binary(t), test.args...))
		if err == nil || !strings.Contains(stderr, test.want) {
			t.Errorf("%v: %v, expected %s in\n%s%s", test.args, err, test.want, stdout, stderr)
		}
	}
}

// notPEM writes over a file what a store of Java begins with.
func notPEM(t *testing.T, file string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte{0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 2}, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
