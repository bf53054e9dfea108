package real

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Jars returns the folder with the jars of a Kafka release: 0.8.2.2, 2.8.2,
// 3.9.1 (with ZooKeeper 3.8.4) or 4.1.0.
func Jars(t testing.TB, version string) string {
	t.Helper()
	need(t, "Java", "java")
	dir := filepath.Join(Cache(), "kafka", version)
	need(t, "Apache Kafka "+version, filepath.Join(dir, ".complete"))
	return dir
}

// Java returns a command that runs a class of a Kafka release with a small,
// quickly starting JVM. Extra JVM flags go first in args, up to "--".
func Java(t testing.TB, version, class string, args ...string) *exec.Cmd {
	t.Helper()
	small := []string{"-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"}
	for i, a := range args {
		if a == "--" {
			small, args = append(small, args[:i]...), args[i+1:]
			break
		}
	}
	return java(t, small, version, class, args...)
}

func java(t testing.TB, jvm []string, version, class string, args ...string) *exec.Cmd {
	t.Helper()
	jvm = append(jvm, Log4j(t), "-cp", Jars(t, version)+"/*", class)
	return exec.Command("java", append(jvm, args...)...)
}

// Log4j returns the flag that has a JVM log to its standard error.
func Log4j(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "log4j.properties")
	text := "log4j.rootLogger=INFO, E\nlog4j.appender.E=org.apache.log4j.ConsoleAppender\nlog4j.appender.E.Target=System.err\n" +
		"log4j.appender.E.layout=org.apache.log4j.PatternLayout\nlog4j.appender.E.layout.ConversionPattern=[%d] %p %m (%c)%n\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return "-Dlog4j.configuration=file:" + file
}

// KafkaBroker is a running Apache Kafka broker.
type KafkaBroker struct {
	*Process
	Addr string // host:port of its PLAINTEXT listener, or what {addr} stands for in its properties
	Dir  string // log.dirs, unless a property says else

	name, version, file string
	jvm                 []string
	ready               func(addr string) bool
}

// Launch starts the broker again with the same properties and waits for
// nothing.
func (b *KafkaBroker) Launch(t testing.TB) {
	t.Helper()
	b.Process = Start(t, b.name, java(t, b.jvm, b.version, "kafka.Kafka", b.file))
}

// Restart is Launch, and waits until the broker is registered and answers.
func (b *KafkaBroker) Restart(t testing.TB) {
	t.Helper()
	b.Launch(t)
	b.UntilRunning(5*time.Minute, "started", func() bool {
		return strings.Contains(b.Output(), "started (kafka.server.KafkaServer)") && b.ready(b.Addr)
	})
}

// Kafka starts an Apache Kafka broker (2.8.2 or 3.9.1) with this id on a
// ZooKeeper connect string and waits until it is registered and answers. More
// properties come as name=value and replace the defaults; {addr} in a value
// stands for Addr.
func Kafka(t testing.TB, version string, id int, zookeeper string, properties ...string) *KafkaBroker {
	t.Helper()
	return kafka(t, []string{"-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"}, version, id, zookeeper, properties...)
}

// KafkaFullSize is Kafka with the heap and collector of Kafka's own start
// script, and the compiler that a server runs with: for measuring.
func KafkaFullSize(t testing.TB, version string, id int, zookeeper string, properties ...string) *KafkaBroker {
	t.Helper()
	return kafka(t, []string{"-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
		"-XX:+ExplicitGCInvokesConcurrent"}, version, id, zookeeper, properties...)
}

func kafka(t testing.TB, jvm []string, version string, id int, zookeeper string, properties ...string) *KafkaBroker {
	t.Helper()
	dir := t.TempDir()
	port := FreePort(t)
	b := &KafkaBroker{Addr: "127.0.0.1:" + port, Dir: filepath.Join(dir, "data"), jvm: jvm, version: version,
		name: fmt.Sprintf("kafka-%s-%d", version, id), file: filepath.Join(dir, "server.properties")}
	properties, b.ready = withAddr(b.Addr, properties)
	lines := append([]string{fmt.Sprintf("broker.id=%d", id), "listeners=PLAINTEXT://" + b.Addr, "log.dirs=" + b.Dir,
		"zookeeper.connect=" + zookeeper, "inter.broker.protocol.version=2.8", "offsets.topic.replication.factor=1",
		"transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1", "group.initial.rebalance.delay.ms=0"}, properties...)
	if err := os.WriteFile(b.file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.Restart(t)
	return b
}

// Kcat returns a kcat command.
func Kcat(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	return exec.Command(need(t, "kcat", "kcat"), args...)
}

// Node returns a command that runs a script of Node.js with kafkajs.
func Node(t testing.TB, script string, args ...string) *exec.Cmd {
	t.Helper()
	need(t, "Node.js", "node")
	modules := filepath.Join(Cache(), "node", "node_modules")
	need(t, "kafkajs", filepath.Join(modules, "kafkajs"))
	cmd := exec.Command("node", append([]string{script}, args...)...)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	return cmd
}

// Python returns a command that runs a script in the virtual environment with
// kazoo, kafka-python, confluent-kafka and aiokafka.
func Python(t testing.TB, script string, args ...string) *exec.Cmd {
	t.Helper()
	need(t, "the Python clients", filepath.Join(Cache(), "python", ".complete"))
	return exec.Command(filepath.Join(Cache(), "python", "bin", "python"), append([]string{script}, args...)...)
}

// Streams returns the class path of Kafka Streams and of Kafka Connect with its
// file connectors, of release 3.9.1.
func Streams(t testing.TB) string {
	t.Helper()
	kafka := Jars(t, "3.9.1")
	need(t, "Kafka Streams", filepath.Join(Cache(), "streams", ".complete"))
	return filepath.Join(Cache(), "streams", "*") + ":" + filepath.Join(kafka, "*")
}

// Curator returns the class path of Apache Curator's recipes, on the client of
// ZooKeeper 3.8.
func Curator(t testing.TB) string {
	t.Helper()
	need(t, "javac", "javac")
	need(t, "Apache Curator", filepath.Join(Cache(), "curator", ".complete"))
	kafka := Jars(t, "3.9.1")
	var path []string
	for _, jar := range []string{"zookeeper-3.8.4.jar", "zookeeper-jute-3.8.4.jar", "metrics-core-4.1.12.1.jar", "snappy-java-1.1.10.5.jar"} {
		path = append(path, filepath.Join(kafka, jar))
	}
	return strings.Join(append(path, filepath.Join(Cache(), "curator", "*")), ":")
}

// Curator212 returns the class path of the Curator that CMAK has, 2.12, on the
// client of ZooKeeper 3.4.
func Curator212(t testing.TB) string {
	t.Helper()
	need(t, "javac", "javac")
	need(t, "Apache Curator 2.12", filepath.Join(Cache(), "curator-2.12", ".complete"))
	return filepath.Join(Cache(), "curator-2.12", "*")
}
