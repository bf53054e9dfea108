package client

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"
)

func TestPropertiesAreReadAsJavaReadsThem(t *testing.T) {
	got, err := ReadProperties(strings.NewReader("# comment\n! too\n a = 1 \nb:2\r\nc 3\nlong=one,\\\n   two\nuni=\\u65e5\\u672c \\ud83d\\ude00\nkey\\ with\\=odd = x\\ty\nempty\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "1 ", "b": "2", "c": "3", "long": "one,two", "uni": "日本 😀", "key with=odd": "x\ty", "empty": ""}
	if !maps.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if _, err := ReadProperties(strings.NewReader("ok=1\nbad=\\u12x4")); !errors.Is(err, ErrOption) || !strings.Contains(err.Error(), "line 2") {
		t.Error(err)
	}
}

func TestProducerTakesTheNamesOf08(t *testing.T) {
	c := defaultProducerConfig()
	c.props = map[string]string{
		"metadata.broker.list": "h1:9092, h2:9093", "producer.type": "async", "serializer.class": "kafka.serializer.StringEncoder",
		"request.required.acks": "1", "message.send.max.retries": "5", "retry.backoff.ms": "7", "queue.enqueue.timeout.ms": "-1",
		"queue.buffering.max.messages": "77", "compression.codec": "snappy", "client.id": "me",
	}
	c.applyProperties()
	if len(c.errs) > 0 {
		t.Fatal(c.errs)
	}
	if len(c.brokers) != 2 || c.brokers[1] != "h2:9093" || c.mode != Async || c.acks != LeaderAck || c.retries != 5 || c.backoff != 7*time.Millisecond ||
		c.queueWait >= 0 || c.queueRecords != 77 || c.clientID != "me" || c.batchRecords != 200 || c.batchTime != 5*time.Second {
		t.Errorf("%+v", c)
	}
	if _, ok := c.partitioner.(builtin).native.(scalaPartitioner); !ok {
		t.Error("the default of 0.8 is the Scala producer's hash")
	}
}

func TestBadPropertiesAreNamedTogether(t *testing.T) {
	_, err := NewProducer(ProducerProperties(map[string]string{
		"bootstrap.servers": "x:1", "acks": "2", "producer.type": "fast", "partitioner.class": "com.example.None", "retries": "-1",
	}))
	for _, name := range []string{"acks=2", "producer.type=fast", "partitioner.class=com.example.None", "retries=-1"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
	own := PartitionerFunc(func(*Record, []byte, int) int { return 0 })
	p, err := NewProducer(Classes(map[string]any{"com.example.Own": own}),
		ProducerProperties(map[string]string{"bootstrap.servers": "x:1", "partitioner.class": "com.example.Own"}))
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Close(t.Context())
}

// Auto commit that an option turned off and a property turns on again has
// Kafka's interval.
func TestAutoCommitHasAnInterval(t *testing.T) {
	c := defaultConsumerConfig()
	AutoCommit(0).consumer(c)
	c.props = map[string]string{"auto.commit.enable": "true"}
	c.applyProperties()
	if !c.autoCommit || c.commitInterval != time.Minute {
		t.Errorf("auto commit %t, every %v", c.autoCommit, c.commitInterval)
	}
}
