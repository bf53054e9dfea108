package cluster

import (
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
	"barnabas/test/load"
	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestMain(m *testing.M) { real.Main(m) }

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

// produceOne sends a record and fails the test if it is not acknowledged.
func produceOne(t *testing.T, addr, topic, value string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.AllowAutoTopicCreation(), kgo.RecordDeliveryTimeout(30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr(); err != nil {
		t.Fatalf("produce %q: %v", value, err)
	}
}

// endOffset returns the end of partition 0.
func endOffset(t *testing.T, addr, topic string) int64 {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	end, ok := ends.Lookup(topic, 0)
	if !ok || end.Err != nil {
		t.Fatalf("end of %s: %+v", topic, end)
	}
	return end.Offset
}

// epochAndOwner returns the czxid and the session of broker 1's registration,
// or zeros when there is none.
func epochAndOwner(t *testing.T, zk *zookeeper.Client) (epoch, owner int64) {
	t.Helper()
	stat, ok, err := zk.Exists(t.Context(), znode.BrokerPath(1))
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return 0, 0
	}
	return stat.Czxid, stat.EphemeralOwner
}

func controllerEpoch(t *testing.T, zk *zookeeper.Client) int32 {
	t.Helper()
	data, _, err := zk.Get(t.Context(), "/controller_epoch")
	if err != nil {
		t.Fatal(err)
	}
	epoch, err := znode.DecodeControllerEpoch(data)
	if err != nil {
		t.Fatal(err)
	}
	return epoch
}

// onBoth runs a test with a broker on its embedded ZooKeeper and with one on
// Apache ZooKeeper 3.8.
func onBoth(t *testing.T, f func(t *testing.T, broker *real.BarnabasBroker, zkAddr string)) {
	const session = "zookeeper.session.timeout.ms=6000"
	t.Run("embedded", func(t *testing.T) {
		broker := real.Barnabas(t, 1, session)
		f(t, broker, broker.Keeper)
	})
	t.Run("zookeeper-3.8", func(t *testing.T) {
		zk := real.ZooKeeper(t)
		f(t, real.Barnabas(t, 1, "zookeeper.connect="+zk, session), zk)
	})
}

// TestRestartAfterKillWithinTheSessionTimeout: Apache Kafka exits with
// NodeExists here (case 16).
func TestRestartAfterKillWithinTheSessionTimeout(t *testing.T) {
	onBoth(t, func(t *testing.T, broker *real.BarnabasBroker, zkAddr string) {
		produceOne(t, broker.Addr, "t", "before")
		broker.Kill()
		broker.Restart(t)
		produceOne(t, broker.Addr, "t", "after")
		if end := endOffset(t, broker.Addr, "t"); end != 2 {
			t.Errorf("2 records were acknowledged, the log ends at %d", end)
		}
		if epoch, _ := epochAndOwner(t, connect(t, zkAddr)); epoch == 0 {
			t.Error("the broker is not registered")
		}
	})
}

// TestStoppedPastTheSessionTimeoutRegistersAgain: new owner, higher broker
// epoch, controller epoch +1, and it serves (case 16).
func TestStoppedPastTheSessionTimeoutRegistersAgain(t *testing.T) {
	zkAddr := real.ZooKeeper(t)
	broker := real.Barnabas(t, 1, "zookeeper.connect="+zkAddr, "zookeeper.session.timeout.ms=6000")
	zk := connect(t, zkAddr)
	produceOne(t, broker.Addr, "t", "before")
	epoch, owner := epochAndOwner(t, zk)
	term := controllerEpoch(t, zk)
	broker.Signal(syscall.SIGSTOP)
	real.Until(t, 30*time.Second, "the session expires", func() bool {
		e, _ := epochAndOwner(t, zk)
		return e == 0
	})
	broker.Signal(syscall.SIGCONT)
	real.Until(t, 30*time.Second, "the broker registers again and is controller", func() bool {
		e, o := epochAndOwner(t, zk)
		return e > epoch && o != owner && controllerEpoch(t, zk) == term+1
	})
	produceOne(t, broker.Addr, "t", "after")
}

// TestRegistrationDeletedByHandComesBack: Apache Kafka stays unregistered
// (KAFKA-14845, case 16).
func TestRegistrationDeletedByHandComesBack(t *testing.T) {
	onBoth(t, func(t *testing.T, broker *real.BarnabasBroker, zkAddr string) {
		zk := connect(t, zkAddr)
		produceOne(t, broker.Addr, "t", "before")
		epoch, _ := epochAndOwner(t, zk)
		if err := zk.Delete(t.Context(), znode.BrokerPath(1), -1); err != nil {
			t.Fatal(err)
		}
		real.Until(t, 30*time.Second, "registered again", func() bool {
			e, _ := epochAndOwner(t, zk)
			return e > epoch
		})
		produceOne(t, broker.Addr, "t", "after")
	})
}

// TestControllerNodeDeletedByHand: the next epoch, in the node's own data too
// (case 17).
func TestControllerNodeDeletedByHand(t *testing.T) {
	onBoth(t, func(t *testing.T, broker *real.BarnabasBroker, zkAddr string) {
		zk := connect(t, zkAddr)
		term := controllerEpoch(t, zk)
		if err := zk.Delete(t.Context(), "/controller", -1); err != nil {
			t.Fatal(err)
		}
		real.Until(t, 30*time.Second, "a new term", func() bool { return controllerEpoch(t, zk) == term+1 })
		produceOne(t, broker.Addr, "t", "after")
	})
}

// TestSecondBrokerWithALiveIDEnds names the host that has the id (M2.2).
func TestSecondBrokerWithALiveIDEnds(t *testing.T) {
	zkAddr := real.ZooKeeper(t)
	real.Barnabas(t, 1, "zookeeper.connect="+zkAddr)
	second := start(t, t.TempDir(), "broker.id=1", "zookeeper.connect="+zkAddr)
	if code := second.Wait(time.Minute); code == 0 {
		t.Error("the second broker ended with status 0")
	}
	out := second.Output()
	if !strings.Contains(out, "127.0.0.1") || !strings.Contains(out, "broker.id") {
		t.Errorf("the message names neither the id nor the host that has it:\n%s", out)
	}
}

// start runs "barnabas start" on a folder without waiting for anything.
func start(t *testing.T, dir string, properties ...string) *real.Process {
	t.Helper()
	args := []string{"start"}
	defaults := []string{"listeners=PLAINTEXT://127.0.0.1:" + real.FreePort(t), "log.dirs=" + filepath.Join(dir, "data"),
		"keeper.dir=" + filepath.Join(dir, "keeper"), "keeper.listen="}
	for _, p := range append(defaults, properties...) {
		args = append(args, "--override", p)
	}
	return real.Start(t, "barnabas", exec.Command(real.Binary(t), args...))
}

// endsWith runs a broker that cannot start and checks what it says.
func endsWith(t *testing.T, p *real.Process, words ...string) {
	t.Helper()
	if code := p.Wait(30 * time.Second); code == 0 {
		t.Error("the broker ended with status 0")
	}
	for _, w := range words {
		if !strings.Contains(p.Output(), w) {
			t.Errorf("the message does not say %q:\n%s", w, p.Output())
		}
	}
}

func TestStartRefusesWithAClearError(t *testing.T) {
	t.Run("port in use", func(t *testing.T) {
		first := real.Barnabas(t, 1)
		endsWith(t, start(t, t.TempDir(), "listeners=PLAINTEXT://"+first.Addr), first.Addr, "in use")
	})
	t.Run("embedded ZooKeeper's port in use", func(t *testing.T) {
		first := real.Barnabas(t, 1)
		endsWith(t, start(t, t.TempDir(), "keeper.listen="+first.Keeper), first.Keeper, "in use", "keeper.listen")
	})
	t.Run("log dir held by another process", func(t *testing.T) {
		zk := real.ZooKeeper(t)
		first := real.Barnabas(t, 1, "zookeeper.connect="+zk)
		endsWith(t, start(t, t.TempDir(), "broker.id=2", "zookeeper.connect="+zk, "log.dirs="+first.Dir), first.Dir)
	})
	t.Run("keeper.dir held by another process", func(t *testing.T) {
		dir := t.TempDir()
		first := start(t, dir)
		first.UntilRunning(30*time.Second, "started", func() bool {
			_, err := os.Stat(filepath.Join(dir, "data", "meta.properties"))
			return err == nil
		})
		endsWith(t, start(t, dir, "log.dirs="+filepath.Join(t.TempDir(), "data")), filepath.Join(dir, "keeper"))
	})
	t.Run("meta.properties of another broker", func(t *testing.T) {
		dir := t.TempDir()
		writeMeta(t, dir, "version=0\nbroker.id=7\n")
		endsWith(t, start(t, dir, "broker.id=1"), "meta.properties", "7", "1")
	})
	t.Run("meta.properties of another cluster", func(t *testing.T) {
		dir := t.TempDir()
		writeMeta(t, dir, "version=0\nbroker.id=0\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\n")
		endsWith(t, start(t, dir), "meta.properties", "AAAAAAAAAAAAAAAAAAAAAA", "ZooKeeper")
	})
	t.Run("a folder that cannot be made", func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "file")
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		endsWith(t, start(t, dir, "log.dirs="+file+"/data"), file)
	})
	t.Run("a folder that cannot be written", func(t *testing.T) {
		dir := t.TempDir()
		locked := filepath.Join(dir, "locked")
		if err := os.Mkdir(locked, 0o555); err != nil {
			t.Fatal(err)
		}
		args := []string{real.Binary(t), "start", "--override", "listeners=PLAINTEXT://127.0.0.1:" + real.FreePort(t), "--override", "keeper.listen="}
		if os.Getuid() == 0 { // who may write anywhere, unless that is taken away
			args = append([]string{"setpriv", "--bounding-set=-dac_override,-dac_read_search"}, args...)
		}
		with := func(logs, keeper string) *real.Process {
			return real.Start(t, "barnabas", exec.Command(args[0], append(args[1:len(args):len(args)], "--override", "log.dirs="+logs, "--override", "keeper.dir="+keeper)...))
		}
		logs := with(locked, filepath.Join(dir, "keeper"))
		endsWith(t, logs, "no log directory is online", locked, "permission denied")
		if out := logs.Output(); strings.Contains(out, "ZooKeeper session: ") {
			t.Errorf("it complains of what follows from that too:\n%s", out)
		}
		endsWith(t, with(filepath.Join(dir, "data"), locked), "keeper.dir "+locked, "permission denied")
		one := with(filepath.Join(dir, "data")+","+locked, filepath.Join(dir, "keeper")) // Kafka too goes on with the others
		one.UntilRunning(30*time.Second, "is ready and says what failed", func() bool {
			return strings.Contains(one.Output(), "try:") && strings.Contains(one.Output(), "a log dir failed")
		})
		if strings.Contains(one.Output(), "keeps its data in "+locked) {
			t.Errorf("it says:\n%s", one.Output())
		}
		if code := one.Stop(); code != 0 {
			t.Errorf("status %d", code)
		}
	})
	t.Run("wildcard as advertised address", func(t *testing.T) {
		endsWith(t, start(t, t.TempDir(), "listeners=PLAINTEXT://127.0.0.1:0", "advertised.listeners=PLAINTEXT://0.0.0.0:9092"), "advertised.listeners", "0.0.0.0")
		endsWith(t, start(t, t.TempDir(), "listeners=PLAINTEXT://0.0.0.0:9092"), "advertised.listeners, which is not set", "0.0.0.0", "advertised.listeners=PLAINTEXT://localhost:9092")
	})
	t.Run("no listener for the brokers among themselves", func(t *testing.T) {
		named := []string{"listeners=IN://127.0.0.1:0,OUT://127.0.0.1:0", "listener.security.protocol.map=IN:PLAINTEXT,OUT:PLAINTEXT"}
		endsWith(t, start(t, t.TempDir(), named...), "set inter.broker.listener.name=IN")
		endsWith(t, start(t, t.TempDir(), "listeners=SASL_PLAINTEXT://127.0.0.1:0"), "set inter.broker.listener.name=SASL_PLAINTEXT")
	})
	t.Run("SASL without mechanisms and users", func(t *testing.T) {
		sasl := []string{"listeners=SASL_PLAINTEXT://127.0.0.1:0", "security.inter.broker.protocol=SASL_PLAINTEXT"}
		endsWith(t, start(t, t.TempDir(), sasl...), "sasl.enabled.mechanisms", "GSSAPI", "SCRAM-SHA-256")
		sasl = append(sasl, "sasl.enabled.mechanisms=PLAIN", "sasl.mechanism.inter.broker.protocol=PLAIN")
		endsWith(t, start(t, t.TempDir(), sasl...), "listener.name.sasl_plaintext.plain.sasl.jaas.config is not set", "PlainLoginModule")
	})
	t.Run("TLS", func(t *testing.T) {
		ssl := []string{"listeners=SSL://127.0.0.1:0", "security.inter.broker.protocol=SSL"}
		endsWith(t, start(t, t.TempDir(), ssl...), "ssl.keystore.location is not set", "PEM")
		endsWith(t, start(t, t.TempDir(), append(ssl, "ssl.keystore.location=/no/keystore.jks")...), "ssl.keystore.type=JKS", "PEM", "convert")
		endsWith(t, start(t, t.TempDir(), append(ssl, "ssl.keystore.location=/no/keystore.pem", "ssl.keystore.type=PEM")...), "/no/keystore.pem")
	})
	t.Run("bad value, with file and line", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "server.properties")
		if err := os.WriteFile(file, []byte("broker.id=1\n# a comment\nnum.partitions=many\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		p := real.Start(t, "barnabas", exec.Command(real.Binary(t), "start", file))
		endsWith(t, p, "num.partitions", "many", file+":3")
	})
}

func writeMeta(t *testing.T, dir, text string) {
	t.Helper()
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "meta.properties"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestZooKeeperAbsentAtStartAndGoneLater: the broker waits and says so, serves
// while ZooKeeper is away, and is whole again when it is back.
func TestZooKeeperAbsentAtStartAndGoneLater(t *testing.T) {
	zk := real.StartZooKeeper(t)
	zk.Kill()
	dir := t.TempDir()
	addr := "127.0.0.1:" + real.FreePort(t)
	broker := start(t, dir, "broker.id=1", "zookeeper.connect="+zk.Addr, "listeners=PLAINTEXT://"+addr, "zookeeper.session.timeout.ms=6000")
	broker.UntilRunning(30*time.Second, "says that ZooKeeper is absent", func() bool {
		return strings.Contains(broker.Output(), zk.Addr)
	})
	zk.Restart(t)
	client := connect(t, zk.Addr)
	broker.UntilRunning(time.Minute, "is registered", func() bool {
		epoch, _ := epochAndOwner(t, client)
		return epoch != 0
	})
	produceOne(t, addr, "t", "first")

	before := len(broker.Output())
	zk.Kill()
	produceOne(t, addr, "t", "while ZooKeeper is away")
	broker.UntilRunning(30*time.Second, "says that ZooKeeper is gone", func() bool {
		return strings.Contains(broker.Output()[before:], "ZooKeeper") && strings.Contains(broker.Output()[before:], zk.Addr)
	})
	zk.Restart(t)
	real.Until(t, time.Minute, "registered after ZooKeeper came back", func() bool {
		_, ok, err := client.Exists(t.Context(), znode.BrokerPath(1))
		return err == nil && ok
	})
	produceOne(t, addr, "made-after", "new topics work again")
	if end := endOffset(t, addr, "t"); end != 2 {
		t.Errorf("log ends at %d, want 2", end)
	}
}

// TestBrokersStopWithoutZooKeeper: nobody can take their leaderships over, and
// they do not wait for it as long as controlled.shutdown.max.retries would.
func TestBrokersStopWithoutZooKeeper(t *testing.T) {
	zk := real.StartZooKeeper(t)
	brokers := []*real.BarnabasBroker{real.Barnabas(t, 1, "zookeeper.connect="+zk.Addr), real.Barnabas(t, 2, "zookeeper.connect="+zk.Addr)}
	a := load.NewAdmin(t, []string{brokers[0].Addr})
	load.CreateTopic(t, a, "t", 6, []int32{1, 2}, nil)
	load.UntilInSync(t, a, "t", 6, 2)
	zk.Kill()
	for _, b := range brokers {
		b.UntilRunning(time.Minute, "says that ZooKeeper is gone", func() bool { return strings.Contains(b.Output(), "connection to ZooKeeper lost") })
	}
	for _, b := range brokers {
		b.Signal(syscall.SIGTERM)
	}
	for _, b := range brokers {
		if code := b.Wait(time.Minute); code != 0 {
			t.Errorf("broker at %s: status %d", b.Addr, code)
		}
		if n := strings.Count(b.Output(), "did not take this broker's leaderships away"); n > 1 {
			t.Errorf("broker at %s asked %d times", b.Addr, n)
		}
	}
}

// TestStoppedWhileStarting: it was asked to, so nothing failed.
func TestStoppedWhileStarting(t *testing.T) {
	broker := start(t, t.TempDir(), "zookeeper.connect=127.0.0.1:"+real.FreePort(t))
	broker.UntilRunning(30*time.Second, "says that ZooKeeper is absent", func() bool { return strings.Contains(broker.Output(), "ZooKeeper does not answer") })
	broker.Signal(syscall.SIGTERM)
	if code := broker.Wait(30 * time.Second); code != 0 {
		t.Errorf("status %d", code)
	}
	if out := broker.Output(); !strings.Contains(out, "stopped while starting") || strings.Contains(out, "context canceled") {
		t.Errorf("it says:\n%s", out)
	}
}

// A misspelt property must not be overlooked, and must not stop a broker whose
// file has what other programs read.
func TestUnknownPropertiesAreWarnedOf(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "server.properties")
	if err := os.WriteFile(file, []byte("broker.id=1\nnum.partition=3\nconfluent.support.customer.id=anonymous\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	addr := "127.0.0.1:" + real.FreePort(t)
	broker := real.Start(t, "barnabas", exec.Command(real.Binary(t), "start", file, "--override", "listeners=PLAINTEXT://"+addr,
		"--override", "log.dirs="+filepath.Join(dir, "data"), "--override", "keeper.dir="+filepath.Join(dir, "keeper"), "--override", "keeper.listen="))
	broker.UntilRunning(30*time.Second, "answers", func() bool { return real.Ready(addr) })
	for _, want := range []string{file + ":2: num.partition is not known, and has no effect; is num.partitions meant?",
		file + ":3: confluent.support.customer.id is not known"} {
		if !strings.Contains(broker.Output(), want) {
			t.Errorf("it does not say %q:\n%s", want, broker.Output())
		}
	}
}

func TestTheLogNamesWhereTheEmbeddedZooKeeperListens(t *testing.T) {
	broker := real.Barnabas(t, 1)
	if out := broker.Output(); !strings.Contains(out, "server="+broker.Keeper) {
		t.Errorf("not at %s:\n%s", broker.Keeper, out)
	}
}

func TestCleanStopLeavesNothingBehind(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			zkAddr := real.ZooKeeper(t)
			broker := real.Barnabas(t, 1, "zookeeper.connect="+zkAddr)
			zk := connect(t, zkAddr)
			produceOne(t, broker.Addr, "t", "x")
			broker.Signal(signal)
			if code := broker.Wait(30 * time.Second); code != 0 {
				t.Errorf("status %d", code)
			}
			if _, err := os.Stat(filepath.Join(broker.Dir, ".kafka_cleanshutdown")); err != nil {
				t.Errorf("no clean mark: %v", err)
			}
			if epoch, _ := epochAndOwner(t, zk); epoch != 0 {
				t.Error("the registration outlived the broker")
			}
			broker.Restart(t)
			if end := endOffset(t, broker.Addr, "t"); end != 1 {
				t.Errorf("log ends at %d, want 1", end)
			}
		})
	}
}

// What timeout(1) and many process managers send is one wish to stop.
func TestTwoSignalsTogetherAreOne(t *testing.T) {
	broker := real.Barnabas(t, 1)
	produceOne(t, broker.Addr, "t", "x")
	broker.Signal(syscall.SIGINT)
	broker.Signal(syscall.SIGTERM)
	if code := broker.Wait(30 * time.Second); code != 0 {
		t.Errorf("status %d", code)
	}
	if _, err := os.Stat(filepath.Join(broker.Dir, ".kafka_cleanshutdown")); err != nil {
		t.Errorf("no clean mark: %v", err)
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	broker := real.Barnabas(t, 1)
	big := make([]byte, 900_000)
	for i := range big {
		big[i] = byte(rand.Uint32()) // nothing that compresses
	}
	for range 20 { // more than the buffers of the sockets hold
		produceOne(t, broker.Addr, "t", string(big))
	}
	// A client that does not read its answer holds a clean stop up.
	fetch := kmsg.NewPtrFetchRequest()
	fetch.Version, fetch.ReplicaID, fetch.MaxBytes = 4, -1, 50<<20
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic = "t"
	part := kmsg.NewFetchRequestTopicPartition()
	part.PartitionMaxBytes = 50 << 20
	topic.Partitions = append(topic.Partitions, part)
	fetch.Topics = append(fetch.Topics, topic)
	c, err := net.Dial("tcp", broker.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(kmsg.NewRequestFormatter().AppendRequest(nil, fetch, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	broker.Signal(syscall.SIGINT) // two that come together are one
	broker.Signal(syscall.SIGTERM)
	broker.UntilRunning(10*time.Second, "waits for the client", func() bool { return strings.Contains(broker.Output(), "still stopping") })
	broker.Signal(syscall.SIGTERM)
	if code := broker.Wait(30 * time.Second); code != 1 || !strings.Contains(broker.Output(), "second signal, stopping at once") {
		t.Errorf("status %d, want 1", code)
	}
}

// A script that starts a broker and asks at once for a topic of yesterday is not
// told that there is none.
func TestTheFirstAnswerAfterARestartKnowsTheTopics(t *testing.T) {
	broker := real.Barnabas(t, 1)
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Version, create.TimeoutMillis = 4, 10_000
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "t", 300, 1
	create.Topics = append(create.Topics, topic)
	raw.Ask[*kmsg.CreateTopicsResponse](t, broker.Addr, create)
	ask := kmsg.NewPtrMetadataRequest()
	ask.Version = 1
	about := kmsg.NewMetadataRequestTopic()
	about.Topic = kmsg.StringPtr("t")
	ask.Topics = append(ask.Topics, about)
	for range 5 {
		broker.Kill()
		first := make(chan *kmsg.MetadataResponse, 1)
		go func() {
			real.Until(t, 20*time.Second, "the port opens", func() bool {
				c, err := net.Dial("tcp", broker.Addr)
				if err == nil {
					c.Close()
				}
				return err == nil
			})
			first <- raw.Ask[*kmsg.MetadataResponse](t, broker.Addr, ask)
		}()
		broker.Restart(t)
		if r := <-first; len(r.Brokers) != 1 || r.Topics[0].ErrorCode != 0 || len(r.Topics[0].Partitions) != 300 {
			t.Fatalf("%d brokers, code %d, %d partitions", len(r.Brokers), r.Topics[0].ErrorCode, len(r.Topics[0].Partitions))
		}
	}
}
