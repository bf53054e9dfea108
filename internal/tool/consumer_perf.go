package tool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// consumerPerfCommand is kafka-consumer-perf-test
// (org.apache.kafka.tools.ConsumerPerformance).
func consumerPerfCommand() *Command {
	return &Command{
		Name: "consumer-perf-test", Script: "kafka-consumer-perf-test", Short: "Measure how fast records are consumed",
		Purpose: "This tool is used to verify the consumer performance.",
		Example: []string{"barnabas consumer-perf-test --bootstrap-server localhost:9092 --topic t --messages 1000000"},
		Options: []Option{
			bootstrap,
			{Name: "broker-list", Arg: "String: broker-list", Text: "DEPRECATED, use --bootstrap-server instead; ignored if --bootstrap-server is specified. The broker list string in the form HOST1:PORT1,HOST2:PORT2."},
			{Name: "consumer.config", Arg: "String: config file", Text: "Consumer config properties file."},
			{Name: "date-format", Arg: "String: date format", Default: "yyyy-MM-dd HH:mm:ss:SSS", Text: "The date format to use for formatting the time field. (Here it is always the default.)"},
			{Name: "fetch-size", Arg: "Integer: size", Default: "1048576", Text: "The amount of data to fetch in a single request."},
			{Name: "from-latest", Text: "If the consumer does not already have an established offset to consume from, start with the latest message present in the log rather than the earliest message."},
			{Name: "group", Arg: "String: gid", Group: true, Text: "The group id to consume on."},
			{Name: "hide-header", Text: "If set, skips printing the header for the stats"},
			{Name: "messages", Arg: "Long: count", Required: true, Text: "The number of messages to send or consume"},
			{Name: "num-fetch-threads", Arg: "Integer: count", Default: "1", Text: "DEPRECATED AND IGNORED: Number of fetcher threads."},
			{Name: "print-metrics", Text: "Print out the metrics."},
			{Name: "reporting-interval", Arg: "Long: interval_ms", Default: "5000", Text: "Interval in milliseconds at which to print progress info."},
			{Name: "show-detailed-stats", Text: "If set, stats are reported for each reporting interval as configured by reporting-interval"},
			{Name: "socket-buffer-size", Arg: "Integer: size", Default: "2097152", Text: "The size of the tcp RECV size. (Left to the system here.)"},
			{Name: "threads", Arg: "Integer: count", Default: "10", Text: "DEPRECATED AND IGNORED: Number of processing threads."},
			{Name: "timeout", Arg: "Long: milliseconds", Optional: true, Default: "10000", Text: "The maximum allowed time in milliseconds between returned records."},
			{Name: "topic", Arg: "String: topic", Required: true, Topic: true, Text: "The topic to consume from."},
		},
		Run: runConsumerPerf,
	}
}

// consumed counts what a run has taken, and how long it waited for partitions.
type consumed struct {
	records, bytes int64
	joined         time.Duration
}

// joins adds up how long a member of a group is without its partitions.
//
// Lock: mu, over all.
type joins struct {
	mu    sync.Mutex
	since time.Time // the start, or what was revoked; zero: they are assigned
	all   time.Duration
}

func (j *joins) revoked(context.Context, *kgo.Client, map[string][]int32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.since.IsZero() {
		j.since = time.Now()
	}
}

func (j *joins) assigned(context.Context, *kgo.Client, map[string][]int32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.since.IsZero() {
		j.all += time.Since(j.since)
		j.since = time.Time{}
	}
}

func (j *joins) total() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.all
}

func runConsumerPerf(c *Call) error {
	a := c.Args
	servers := a.Text("bootstrap-server")
	if servers == "" {
		servers = a.Text("broker-list")
	}
	if servers == "" {
		return usage("Missing required option(s) [bootstrap-server]")
	}
	if err := a.needs("topic", "messages"); err != nil {
		return err
	}
	c.perfHeader()
	most, _, err := a.Integer("messages", 64)
	if err != nil {
		return err
	}
	wait, _, err := a.Integer("timeout", 64)
	if err != nil {
		return err
	}
	interval, _, err := a.Integer("reporting-interval", 64)
	if err != nil || interval <= 0 {
		return usage("Reporting interval must be greater than 0.")
	}
	size, _, err := a.Integer("fetch-size", 32)
	if err != nil {
		return err
	}
	props, err := properties(a.Text("consumer.config"))
	if err != nil {
		return err
	}
	group := a.Text("group")
	if group == "" {
		group = "perf-consumer-" + strconv.Itoa(rand.IntN(100000))
	}
	at := kgo.NewOffset().AtStart()
	if a.Has("from-latest") {
		at = kgo.NewOffset().AtEnd()
	}
	start := time.Now()
	join := &joins{since: start}
	k, err := c.kafkaAt(servers, props, kgo.ConsumeTopics(a.Text("topic")), kgo.ConsumerGroup(group), kgo.ConsumeResetOffset(at),
		kgo.FetchMaxPartitionBytes(int32(size)), kgo.FetchMaxWait(500*time.Millisecond), kgo.Balancers(kgo.RangeBalancer(), kgo.CooperativeStickyBalancer()),
		kgo.OnPartitionsAssigned(join.assigned), kgo.OnPartitionsLost(join.revoked),
		kgo.OnPartitionsRevoked(func(ctx context.Context, k *kgo.Client, parts map[string][]int32) {
			if err := k.CommitUncommittedOffsets(ctx); err != nil {
				fmt.Fprintln(c.Err, "Offsets were not committed: "+text(err))
			}
			join.revoked(ctx, k, parts)
		}))
	if err != nil {
		return err
	}
	defer k.Close()
	return c.measure(k, join, start, most, time.Duration(wait)*time.Millisecond, time.Duration(interval)*time.Millisecond)
}

func (c *Call) perfHeader() {
	detailed := c.Args.Has("show-detailed-stats")
	if !c.Args.Has("hide-header") && !c.JSON {
		if detailed {
			fmt.Fprintln(c.Out, "time, threadId, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec")
		} else {
			fmt.Fprintln(c.Out, "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec")
		}
	}
}

// perfTime writes a time as yyyy-MM-dd HH:mm:ss:SSS.
func perfTime(t time.Time) string {
	return t.Format("2006-01-02 15:04:05") + fmt.Sprintf(":%03d", t.Nanosecond()/1e6)
}

func (c *Call) measure(k *kgo.Client, join *joins, start time.Time, most int64, wait, interval time.Duration) error {
	detailed := c.Args.Has("show-detailed-stats")
	run := consumed{}
	window, before := start, run
	bar := c.progress("records consumed", most)
	defer bar.end()
	last := start // when records came
	for run.records < most && c.Context.Err() == nil {
		bar.show(run.records)
		poll, cancel := context.WithDeadline(c.Context, last.Add(wait))
		fetches := k.PollFetches(poll)
		cancel()
		for _, f := range fetches.Errors() {
			if !passing(f.Err) {
				return f.Err
			}
		}
		if fetches.NumRecords() > 0 {
			last = time.Now()
		} else if errors.Is(poll.Err(), context.DeadlineExceeded) {
			to := c.Out
			if c.JSON {
				to = c.Err
			}
			fmt.Fprintf(to, "WARNING: Exiting before consuming the expected number of messages: timeout (%d ms) exceeded. You can use the --timeout option to increase the timeout.\n", wait.Milliseconds())
			break
		}
		fetches.EachRecord(func(r *kgo.Record) {
			run.records++
			run.bytes += int64(len(r.Key) + len(r.Value))
		})
		if detailed && time.Since(window) >= interval {
			run.joined = join.total()
			now := time.Now()
			c.printPerf("", window, now, consumed{run.records - before.records, run.bytes - before.bytes, run.joined - before.joined}, run)
			window, before = now, run
		}
	}
	bar.end()
	if detailed && !c.JSON {
		return nil
	}
	run.joined = join.total()
	return c.printPerf(perfTime(start)+", ", start, time.Now(), run, run)
}

// printPerf writes one line: of a window, with the totals so far, or of all.
func (c *Call) printPerf(first string, from, to time.Time, part, total consumed) error {
	mb, passed := float64(part.bytes)/(1<<20), to.Sub(from).Seconds()
	join := part.joined.Milliseconds()
	fetch := max(passed-float64(join)/1000, 0.001)
	if c.JSON {
		return c.printJSON(map[string]any{"mb": mb, "mbPerSec": mb / passed, "records": part.records, "recordsPerSec": float64(part.records) / passed, "rebalanceMs": join})
	}
	if first == "" {
		first = perfTime(to) + ", 0, "
	} else {
		first += perfTime(to) + ", "
	}
	fmt.Fprintf(c.Out, "%s%.4f, %.4f, %d, %.4f, %d, %d, %.4f, %.4f\n", first, float64(total.bytes)/(1<<20), mb/passed, total.records, float64(part.records)/passed,
		join, int64(fetch*1000), mb/fetch, float64(part.records)/fetch)
	return nil
}
