package tool

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"barnabas/client"
)

// producerPerfCommand is kafka-producer-perf-test
// (org.apache.kafka.tools.ProducerPerformance).
func producerPerfCommand() *Command {
	return &Command{
		Name: "producer-perf-test", Script: "kafka-producer-perf-test", Short: "Measure how fast records are sent",
		Purpose: "This tool is used to verify the producer performance.",
		Example: []string{"barnabas producer-perf-test --topic t --num-records 1000000 --record-size 100 --throughput -1 --producer-props bootstrap.servers=localhost:9092"},
		OwnArgs: true,
		Options: []Option{
			{Name: "topic", Arg: "TOPIC", Required: true, Topic: true, Text: "produce messages to this topic"},
			{Name: "num-records", Arg: "NUM-RECORDS", Required: true, Text: "number of messages to produce"},
			{Name: "payload-delimiter", Arg: "PAYLOAD-DELIMITER", Default: `\n`, Text: "provides delimiter to be used when --payload-file is provided."},
			{Name: "throughput", Arg: "THROUGHPUT", Required: true, Text: "throttle maximum message throughput to *approximately* THROUGHPUT messages/sec. Set this to -1 to disable throttling."},
			{Name: "producer-props", Arg: "PROP-NAME=PROP-VALUE ...", Text: "kafka producer related configuration properties like bootstrap.servers,client.id etc. These configs take precedence over those passed via --producer.config."},
			{Name: "producer.config", Arg: "CONFIG-FILE", Text: "producer config properties file."},
			{Name: "print-metrics", Text: "print out metrics at the end of the test."},
			{Name: "record-size", Arg: "RECORD-SIZE", Text: "message size in bytes. Note that you must provide exactly one of --record-size or --payload-file or --payload-monotonic."},
			{Name: "payload-file", Arg: "PAYLOAD-FILE", Text: "file to read the message payloads from. Payloads will be read from this file and a payload will be randomly selected when sending messages."},
			{Name: "transactional-id", Arg: "TRANSACTIONAL-ID", Default: "performance-producer-default-transactional-id", Text: "The transactionalId to use if transaction-duration-ms is > 0. Useful when testing the performance of concurrent transactions."},
			{Name: "transaction-duration-ms", Arg: "TRANSACTION-DURATION", Default: "0", Text: "The max age of each transaction. The commitTransaction will be called after this time has elapsed. Transactions are only enabled if this value is positive."},
			{Name: "payload-monotonic", Text: "payload is monotonically increasing integer."},
		},
		Run: runProducerPerf,
	}
}

// argparse reads a command line as argparse4j does: an option may take several
// values, up to the next option.
func argparse(raw []string) (map[string][]string, error) {
	values := map[string][]string{}
	name := ""
	for _, a := range raw {
		if strings.HasPrefix(a, "--") {
			var value string
			var given bool
			name, value, given = strings.Cut(a[2:], "=")
			values[name] = values[name][:len(values[name]):len(values[name])]
			if given {
				values[name] = append(values[name], value)
			}
			continue
		}
		if name == "" {
			return nil, terse("unrecognized arguments: '%s'", a)
		}
		values[name] = append(values[name], a)
	}
	return values, nil
}

type perfRun struct {
	topic      string
	records    int64
	throughput float64
	props      map[string]string
	payload    func(n int64) []byte
	// transactions of this length; 0: none
	transaction time.Duration
	id          string // of the transactional producer
}

func (c *Call) readPerf() (*perfRun, error) {
	values, err := argparse(c.raw)
	if err != nil {
		return nil, err
	}
	for name := range values {
		if _, ok := c.command.option(name); !ok {
			return nil, terse("unrecognized arguments: '--%s'", name)
		}
	}
	one := func(name string) string {
		if v := values[name]; len(v) > 0 {
			return v[0]
		}
		return ""
	}
	for _, name := range []string{"topic", "num-records", "throughput"} {
		if one(name) == "" {
			return nil, terse("argument --%s is required", name)
		}
	}
	r := &perfRun{topic: one("topic")}
	if r.records, err = strconv.ParseInt(one("num-records"), 10, 64); err != nil {
		return nil, terse("argument --num-records: could not convert '%s' to Long", one("num-records"))
	}
	if r.throughput, err = strconv.ParseFloat(one("throughput"), 64); err != nil {
		return nil, terse("argument --throughput: could not convert '%s' to Double", one("throughput"))
	}
	if r.props, err = properties(one("producer.config")); err != nil {
		return nil, err
	}
	if bad := pairs(r.props, values["producer-props"]); bad != "" {
		return nil, says("Invalid property: %s", bad)
	}
	if len(values["producer-props"]) == 0 && one("producer.config") == "" {
		return nil, terse("Either --producer-props or --producer.config must be specified.")
	}
	if ms := one("transaction-duration-ms"); ms != "" {
		n, err := strconv.ParseInt(ms, 10, 64)
		if err != nil {
			return nil, terse("argument --transaction-duration-ms: could not convert '%s' to Long", ms)
		}
		r.transaction = time.Duration(n) * time.Millisecond
	}
	if r.id = one("transactional-id"); r.id == "" {
		r.id = "performance-producer-default-transactional-id"
	}
	r.payload, err = c.payloads(values, one)
	if out := one("output"); out == "json" {
		c.JSON = true
	}
	return r, err
}

func (c *Call) payloads(values map[string][]string, one func(string) string) (func(int64) []byte, error) {
	_, monotonic := values["payload-monotonic"]
	given := 0
	for _, name := range []string{"record-size", "payload-file", "payload-monotonic"} {
		if _, ok := values[name]; ok {
			given++
		}
	}
	if given != 1 {
		return nil, terse("exactly one of the arguments --record-size --payload-file --payload-monotonic is required")
	}
	switch {
	case monotonic:
		return func(n int64) []byte { return strconv.AppendInt(nil, n, 10) }, nil
	case one("payload-file") != "":
		data, err := os.ReadFile(one("payload-file"))
		if err != nil {
			return nil, says("File does not exist or empty file provided.")
		}
		delimiter := "\n"
		if d := one("payload-delimiter"); d != "" && d != `\n` {
			delimiter = d
		}
		list := bytes.Split(bytes.TrimSuffix(data, []byte(delimiter)), []byte(delimiter))
		if one("output") != "json" {
			path, err := filepath.Abs(one("payload-file"))
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(c.Out, "Reading payloads from: %s\nNumber of messages read: %d\n", path, len(list))
		}
		return func(int64) []byte { return list[rand.IntN(len(list))] }, nil
	}
	size, err := strconv.Atoi(one("record-size"))
	if err != nil || size <= 0 {
		return nil, says("--record-size should be greater than zero.")
	}
	data := make([]byte, size)
	for i := range data {
		data[i] = byte('A' + rand.IntN(26))
	}
	return func(int64) []byte { return data }, nil
}

// latencies gathers what a run measures.
//
// Lock: mu, over all.
type latencies struct {
	start time.Time

	mu struct {
		sync.Mutex
		all         []int32 // ms
		bytes       int64
		windowStart time.Time
		windowCount int64
		windowBytes int64
		windowSum   int64
		windowMax   int64
		failed      int64
		failure     error
	}
}

func (l *latencies) add(c *Call, ms int64, size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.all = append(l.mu.all, int32(min(ms, 1<<31-1)))
	l.mu.bytes += int64(size)
	l.mu.windowCount++
	l.mu.windowBytes += int64(size)
	l.mu.windowSum += ms
	l.mu.windowMax = max(l.mu.windowMax, ms)
	if passed := time.Since(l.mu.windowStart); passed >= 5*time.Second {
		if !c.JSON {
			fmt.Fprintf(c.Out, "%d records sent, %.1f records/sec (%.2f MB/sec), %.1f ms avg latency, %.1f ms max latency.\n", l.mu.windowCount,
				float64(l.mu.windowCount)/passed.Seconds(), float64(l.mu.windowBytes)/passed.Seconds()/(1<<20), float64(l.mu.windowSum)/float64(l.mu.windowCount), float64(l.mu.windowMax))
		}
		l.mu.windowStart, l.mu.windowCount, l.mu.windowBytes, l.mu.windowSum, l.mu.windowMax = time.Now(), 0, 0, 0, 0
	}
}

func (l *latencies) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.failed++
	l.mu.failure = err
}

func (l *latencies) report(c *Call) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	passed := time.Since(l.start).Seconds()
	n := len(l.mu.all)
	if n == 0 {
		return l.mu.failure
	}
	slices.Sort(l.mu.all)
	var sum int64
	for _, ms := range l.mu.all {
		sum += int64(ms)
	}
	at := func(q float64) int32 { return l.mu.all[min(int(q*float64(n)), n-1)] }
	rate, mb := float64(n)/passed, float64(l.mu.bytes)/passed/(1<<20)
	if c.JSON {
		return c.printJSON(map[string]any{"records": n, "failed": l.mu.failed, "recordsPerSec": rate, "mbPerSec": mb, "avgLatencyMs": float64(sum) / float64(n),
			"maxLatencyMs": l.mu.all[n-1], "p50": at(0.5), "p95": at(0.95), "p99": at(0.99), "p999": at(0.999)})
	}
	fmt.Fprintf(c.Out, "%d records sent, %f records/sec (%.2f MB/sec), %.2f ms avg latency, %.2f ms max latency, %d ms 50th, %d ms 95th, %d ms 99th, %d ms 99.9th.\n",
		n, rate, mb, float64(sum)/float64(n), float64(l.mu.all[n-1]), at(0.5), at(0.95), at(0.99), at(0.999))
	if l.mu.failed > 0 {
		fmt.Fprintf(c.Err, "%d records were not sent: %s\n", l.mu.failed, text(l.mu.failure))
		return ErrReported
	}
	return nil
}

func runProducerPerf(c *Call) error {
	r, err := c.readPerf()
	if err != nil {
		return err
	}
	if _, set := r.props["linger.ms"]; !set {
		r.props["linger.ms"] = "0"
	}
	if _, set := r.props["retries"]; !set {
		r.props["retries"] = "2147483647"
	}
	if _, set := r.props["delivery.timeout.ms"]; !set {
		r.props["delivery.timeout.ms"] = "120000"
	}
	secure, err := takeSecurity(r.props)
	if err != nil {
		return err
	}
	if r.transaction > 0 {
		r.props["transactional.id"] = r.id
	}
	p, err := client.NewProducer(client.ClientID("perf-producer-client"), client.Queue(1<<20, 32<<20), client.ProducerProperties(r.props), client.Native(secure...))
	if err != nil {
		return err
	}
	l := &latencies{start: time.Now()}
	l.mu.windowStart = l.start
	err = c.perfSend(r, p, l)
	if e := p.Close(c.Context); err == nil && c.Context.Err() == nil {
		err = e
	}
	if err != nil && c.Context.Err() == nil {
		return err
	}
	return l.report(c)
}

// perfSend sends the records at the rate asked for. The error is that of a
// transaction; a record's goes to l.
func (c *Call) perfSend(r *perfRun, p *client.Producer, l *latencies) error {
	bar := c.progress("records sent", r.records)
	defer bar.end()
	var began time.Time // the transaction; zero: there is none
	for n := range r.records {
		if c.Context.Err() != nil {
			break
		}
		value := r.payload(n)
		sent := time.Now()
		if r.transaction > 0 && began.IsZero() {
			if err := p.Begin(); err != nil {
				return err
			}
			began = sent
		}
		err := p.SendAsync(c.Context, &client.Record{Topic: r.topic, Value: value, Timestamp: sent}, func(result client.Result) {
			if result.Err != nil {
				l.fail(result.Err)
				return
			}
			l.add(c, time.Since(sent).Milliseconds(), len(value))
		})
		if err != nil {
			l.fail(err)
		}
		if r.transaction > 0 && sent.Sub(began) >= r.transaction {
			if err := p.Commit(c.Context); err != nil {
				return err
			}
			began = time.Time{}
		}
		bar.show(n + 1)
		if r.throughput > 0 {
			due := l.start.Add(time.Duration(float64(n+1) / r.throughput * float64(time.Second)))
			if !pause(c.Context, time.Until(due)) {
				break
			}
		}
	}
	if !began.IsZero() {
		return p.Commit(c.Context)
	}
	return nil
}

// pause waits; false: the command was interrupted.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
