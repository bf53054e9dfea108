package tool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"barnabas/client"

	"github.com/twmb/franz-go/pkg/kgo"
)

// consoleProducerCommand is kafka-console-producer
// (kafka.tools.ConsoleProducer).
func consoleProducerCommand() *Command {
	return &Command{
		Name: "console-producer", Script: "kafka-console-producer", Short: "Send lines of standard input as records",
		Purpose: "This tool helps to read data from standard input and publish it to Kafka.",
		Example: []string{
			"barnabas console-producer --bootstrap-server localhost:9092 --topic orders",
			"barnabas console-producer --bootstrap-server localhost:9092 --topic orders --property parse.key=true --property key.separator=:",
		},
		Options: []Option{
			{Name: "batch-size", Arg: "Integer: size", Default: "16384", Text: "Number of bytes to send in a single batch if they are not being sent synchronously. please note that this option will be replaced if max-partition-memory-bytes is also set"},
			bootstrap,
			{Name: "broker-list", Arg: "String: broker-list", Text: "DEPRECATED, use --bootstrap-server instead; ignored if --bootstrap-server is specified. The broker list string in the form HOST1:PORT1,HOST2:PORT2."},
			{Name: "compression-codec", Arg: "String: compression-codec", Optional: true, Values: []string{"none", "gzip", "snappy", "lz4", "zstd"}, Text: "The compression codec: either 'none', 'gzip', 'snappy', 'lz4', or 'zstd'. If specified without value, then it defaults to 'gzip'"},
			{Name: "line-reader", Arg: "String: reader_class", Default: "kafka.tools.ConsoleProducer$LineMessageReader", Text: "The class name of the class to use for reading lines from standard in. By default each line is read as a separate message."},
			{Name: "max-block-ms", Arg: "Long: max block on send", Default: "60000", Text: "The max time that the producer will block for during a send request."},
			{Name: "max-memory-bytes", Arg: "Long: total memory in bytes", Default: "33554432", Text: "The total memory used by the producer to buffer records waiting to be sent to the server. This is the option to control `buffer.memory` in producer configs."},
			{Name: "max-partition-memory-bytes", Arg: "Integer: memory in bytes per partition", Default: "16384", Text: "The size of a partition's batches. This is the option to control `batch.size` in producer configs."},
			{Name: "message-send-max-retries", Arg: "Integer", Default: "3", Text: "How often the producer tries again before it gives up and drops the message. This is the option to control `retries` in producer configs."},
			{Name: "metadata-expiry-ms", Arg: "Long: metadata expiration interval", Default: "300000", Text: "The period of time in milliseconds after which we force a refresh of metadata even if we haven't seen any leadership changes."},
			{Name: "producer-property", Arg: "String: producer_prop", Text: "A mechanism to pass user-defined properties in the form key=value to the producer."},
			{Name: "producer.config", Arg: "String: config file", Text: "Producer config properties file. Note that [producer-property] takes precedence over this config."},
			{Name: "property", Arg: "String: prop", Text: "A property in the form key=value for the reader of lines. Default properties include:\nparse.key=false\nparse.headers=false\nignore.error=false\nkey.separator=\\t\nheaders.delimiter=\\t\nheaders.separator=,\nheaders.key.separator=:\nnull.marker=   When set, any fields (key, value and headers) equal to this will be replaced by null\nDefault parsing pattern when:\nparse.headers=true and parse.key=true: \"h1:v1,h2:v2...\\tkey\\tvalue\"\nparse.key=true: \"key\\tvalue\"\nparse.headers=true: \"h1:v1,h2:v2...\\tvalue\""},
			{Name: "reader-config", Arg: "String: config file", Text: "Config properties file for the message reader. Note that [property] takes precedence over this config."},
			{Name: "request-required-acks", Arg: "String: request required acks", Default: "-1", Text: "The required `acks` of the producer requests"},
			{Name: "request-timeout-ms", Arg: "Integer: request timeout ms", Default: "1500", Text: "The ack timeout of the producer requests. Value must be non-negative and non-zero."},
			{Name: "retry-backoff-ms", Arg: "Long", Default: "100", Text: "The pause before each retry. This is the option to control `retry.backoff.ms` in producer configs."},
			{Name: "socket-buffer-size", Arg: "Integer: size", Default: "102400", Text: "The size of the tcp RECV size. (Left to the system here.)"},
			{Name: "sync", Text: "If set message send requests to the brokers are synchronously, one at a time as they arrive."},
			{Name: "timeout", Arg: "Long: timeout_ms", Default: "1000", Text: "If set and the producer is running in asynchronous mode, this gives the maximum amount of time a message will queue awaiting sufficient batch size. The value is given in ms. This is the option to control `linger.ms` in producer configs."},
			{Name: "topic", Arg: "String: topic", Required: true, Topic: true, Text: "The topic id to produce messages to."},
		},
		Run: runConsoleProducer,
	}
}

func runConsoleProducer(c *Call) error {
	a := c.Args
	if err := a.needs("topic"); err != nil {
		return err
	}
	servers := a.Text("bootstrap-server")
	if servers == "" {
		servers = a.Text("broker-list")
	}
	if servers == "" {
		return usage("Missing required option(s) [bootstrap-server]")
	}
	if !validServers(servers) {
		return usage("Please provide valid host:port like host1:9091,host2:9092\n ")
	}
	props, err := c.producerProperties(servers)
	if err != nil {
		return err
	}
	reader, err := newLineReader(a)
	if err != nil {
		return err
	}
	secure, err := takeSecurity(props)
	if err != nil {
		return err
	}
	p, err := client.NewProducer(client.ClientID("console-producer"), client.ProducerProperties(props), client.Native(append(secure, kgo.DialTimeout(5*time.Second))...))
	if err != nil {
		return err
	}
	return c.produceLines(p, reader)
}

// producerProperties lays the options over --producer.config, and
// --producer-property over both.
func (c *Call) producerProperties(servers string) (map[string]string, error) {
	a := c.Args
	props, err := properties(a.Text("producer.config"))
	if err != nil {
		return nil, err
	}
	props["bootstrap.servers"] = servers
	if a.Has("compression-codec") {
		codec := a.Text("compression-codec")
		if codec == "" {
			codec = "gzip"
		}
		switch codec {
		case "none", "gzip", "snappy", "lz4", "zstd":
		default:
			return nil, terse("Invalid value %s for configuration compression.type: String must be one of: none, gzip, snappy, lz4, zstd", codec)
		}
		props["compression.type"] = codec
	}
	for option, name := range map[string]string{
		"timeout": "linger.ms", "request-required-acks": "acks", "request-timeout-ms": "request.timeout.ms", "message-send-max-retries": "retries",
		"retry-backoff-ms": "retry.backoff.ms", "max-memory-bytes": "buffer.memory", "metadata-expiry-ms": "metadata.max.age.ms", "max-block-ms": "max.block.ms",
	} {
		if _, set := props[name]; !set || a.Has(option) {
			props[name] = a.Text(option)
		}
	}
	size := "batch-size"
	if a.Has("max-partition-memory-bytes") {
		size = "max-partition-memory-bytes"
	}
	if _, set := props["batch.size"]; !set || a.Has(size) {
		props["batch.size"] = a.Text(size)
	}
	for _, pair := range a.All("producer-property") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			props[name] = value
		}
	}
	return props, nil
}

// produceLines sends until the input ends. A line that cannot be read ends it
// with an error; what came before is sent.
func (c *Call) produceLines(p *client.Producer, reader *lineReader) error {
	var mu sync.Mutex
	var failed error
	failures := 0
	done := func(r client.Result) {
		if r.Err == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		failures++
		if failed == nil {
			failed = r.Err
		}
		fmt.Fprintf(c.Err, "Error when sending message to topic %s: %s\n", r.Record.Topic, text(r.Err))
	}
	ctx := context.WithoutCancel(c.Context) // what was read is sent, Ctrl-C or not; a second one ends the process
	input := bufio.NewReaderSize(c.In, 1<<16)
	topic := c.Args.Text("topic")
	var bad error
	for n := 1; bad == nil && c.Context.Err() == nil; n++ {
		if c.Keyboard != nil {
			fmt.Fprint(c.Out, ">")
		}
		line, err := input.ReadString('\n')
		if err != nil && line == "" {
			if !errors.Is(err, io.EOF) && c.Context.Err() == nil {
				bad = err
			}
			break
		}
		r, err := reader.record(topic, strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), n)
		if err != nil {
			bad = err
			break
		}
		if c.Args.Has("sync") {
			if _, err := p.SendSync(ctx, r); err != nil {
				bad = err
			}
			continue
		}
		bad = p.SendAsync(ctx, r, done)
	}
	if err := p.Close(ctx); err != nil && bad == nil {
		bad = err
	}
	mu.Lock()
	defer mu.Unlock()
	if bad != nil {
		return bad
	}
	if failed != nil {
		c.hint(failed)
	}
	return nil // as Kafka's script: what could not be sent is told, and the status is 0
}

// lineReader is kafka.tools.ConsoleProducer.LineMessageReader.
type lineReader struct {
	parseKey, parseHeaders, ignoreError   bool
	keySeparator, headersDelimiter        string
	headersSeparator, headersKeySeparator string
	nullMarker                            string
	hasNull                               bool
}

func newLineReader(a *Args) (*lineReader, error) {
	props, err := properties(a.Text("reader-config"))
	if err != nil {
		return nil, err
	}
	if bad := pairs(props, a.All("property")); bad != "" {
		return nil, terse("Invalid command line properties: %s", bad)
	}
	get := func(name, otherwise string) string {
		if v, ok := props[name]; ok {
			return v
		}
		return otherwise
	}
	l := &lineReader{
		keySeparator: get("key.separator", "\t"), headersDelimiter: get("headers.delimiter", "\t"),
		headersSeparator: get("headers.separator", ","), headersKeySeparator: get("headers.key.separator", ":"),
	}
	for name, to := range map[string]*bool{"parse.key": &l.parseKey, "parse.headers": &l.parseHeaders, "ignore.error": &l.ignoreError} {
		*to = strings.EqualFold(strings.TrimSpace(get(name, "false")), "true")
	}
	l.nullMarker, l.hasNull = props["null.marker"]
	if l.keySeparator == l.headersDelimiter && l.parseKey && l.parseHeaders && l.keySeparator != "\t" {
		return nil, terse("headers.delimiter and key.separator may not be equal")
	}
	if l.headersDelimiter == l.headersSeparator {
		return nil, terse("headers.delimiter and headers.separator may not be equal")
	}
	if l.headersSeparator == l.headersKeySeparator {
		return nil, terse("headers.separator and headers.key.separator may not be equal")
	}
	return l, nil
}

func (l *lineReader) null(s string) any {
	if l.hasNull && s == l.nullMarker {
		return nil
	}
	return s
}

// cut takes what stands before a separator.
func (l *lineReader) cut(wanted bool, line, separator, what string, n int) (before, rest string, found bool, err error) {
	if !wanted {
		return "", line, false, nil
	}
	before, rest, found = strings.Cut(line, separator)
	switch {
	case found:
		return before, rest, true, nil
	case l.ignoreError:
		return "", line, false, nil
	}
	return "", "", false, terse("No %s found on line number %s: '%s'", what, strconv.Itoa(n), line)
}

func (l *lineReader) record(topic, line string, n int) (*client.Record, error) {
	r := &client.Record{Topic: topic, Timestamp: time.Now()}
	headers, rest, found, err := l.cut(l.parseHeaders, line, l.headersDelimiter, "headers delimiter", n)
	if err != nil {
		return nil, err
	}
	if found && l.null(headers) != nil {
		for pair := range strings.SplitSeq(headers, l.headersSeparator) {
			name, value, ok := strings.Cut(pair, l.headersKeySeparator)
			switch {
			case ok:
				h := client.Header{Key: name, Value: []byte(value)}
				if l.null(value) == nil {
					h.Value = nil
				}
				r.Headers = append(r.Headers, h)
			case l.ignoreError:
				r.Headers = append(r.Headers, client.Header{Key: pair})
			default:
				return nil, terse("No header key separator found in pair '%s' on line number %d", pair, n)
			}
		}
	}
	key, rest, found, err := l.cut(l.parseKey, rest, l.keySeparator, "key separator", n)
	if err != nil {
		return nil, err
	}
	if found {
		r.Key = l.null(key)
	}
	r.Value = l.null(rest)
	return r, nil
}
