package client

import (
	"strings"
	"time"
)

// applyProperties lays Kafka's properties over the options.
func (c *producerConfig) applyProperties() {
	if c.props == nil {
		return
	}
	r := newPropertyReader(c.props)
	_, _, old := r.text("metadata.broker.list")
	if old {
		c.partitioner = ScalaHash() // what 0.8 has unless partitioner.class is set
	}
	r.list(&c.brokers, "bootstrap.servers", "metadata.broker.list")
	r.string(&c.clientID, "client.id")
	c.readModes(r)
	c.readClasses(r)
	r.int(&c.retries, 0, "retries", "message.send.max.retries")
	r.ms(&c.backoff, 0, "retry.backoff.ms")
	r.ms(&c.timeout, 1, "request.timeout.ms", "timeout.ms")
	r.ms(&c.delivery, 0, "delivery.timeout.ms")
	r.bool(&c.idempotent, "enable.idempotence")
	if r.string(&c.transactionalID, "transactional.id"); c.transactionalID != "" {
		c.idempotent = true
	}
	r.ms(&c.transactionTimeout, 1, "transaction.timeout.ms")
	r.int(&c.batchRecords, 0, "batch.num.messages")
	r.int(&c.batchBytes, 1, "batch.size")
	r.ms(&c.batchTime, 0, "linger.ms", "queue.buffering.max.ms")
	r.int(&c.queueRecords, 1, "queue.buffering.max.messages")
	r.int(&c.queueBytes, 1, "buffer.memory")
	r.ms(&c.queueWait, -1, "queue.enqueue.timeout.ms", "max.block.ms")
	r.int(&c.inFlight, 1, "max.in.flight.requests.per.connection")
	r.ms(&c.metadataAge, 1, "metadata.max.age.ms", "topic.metadata.refresh.interval.ms")
	if name, v, ok := r.text("compressed.topics"); ok && v != "" {
		r.bad(name, v, "nothing here: all topics are compressed alike; give the others a producer without compression.codec")
	}
	r.text("send.buffer.bytes", "receive.buffer.bytes", "max.request.size", "connections.max.idle.ms") // left to franz-go
	for _, name := range r.unknown() {
		c.logger.Warn("an unknown producer property is ignored", "name", name)
	}
	c.errs = append(c.errs, r.errs...)
}

func (c *producerConfig) readModes(r *propertyReader) {
	if name, v, ok := r.text("producer.type"); ok {
		switch strings.ToLower(v) {
		case "sync":
			c.mode = Sync
		case "async":
			c.mode = Async
			if c.batchRecords == 0 {
				c.batchRecords = 200
			}
			if c.batchTime == 0 {
				c.batchTime = 5 * time.Second
			}
		default:
			r.bad(name, v, "sync or async")
		}
	}
	if name, v, ok := r.text("acks", "request.required.acks"); ok {
		switch strings.ToLower(v) {
		case "0":
			c.acks = NoAcks
		case "1":
			c.acks = LeaderAck
		case "-1", "all":
			c.acks = AllAcks
		default:
			r.bad(name, v, "0, 1, -1 or all")
		}
	}
	if _, v, ok := r.text("compression.type", "compression.codec"); ok {
		c.setCompression(v)
	}
}

func (c *producerConfig) readClasses(r *propertyReader) {
	if name, v, ok := r.text("partitioner.class"); ok && v != "" {
		if p, ok := c.classes[v].(Partitioner); ok {
			c.partitioner = p
		} else if p, ok := PartitionerNames()[v]; ok {
			c.partitioner = p
		} else {
			r.bad(name, v, "the name of a class of Kafka, or one given with Classes")
		}
	}
	serializer := func(to *Serializer, names ...string) {
		name, v, ok := r.text(names...)
		if !ok {
			return
		}
		if s, ok := c.classes[v].(Serializer); ok {
			*to = s
		} else if s, ok := SerializerNames()[v]; ok {
			*to = s
		} else {
			r.bad(name, v, "the name of a class of Kafka, or one given with Classes")
		}
	}
	serializer(&c.values, "value.serializer", "serializer.class")
	serializer(&c.keys, "key.serializer", "key.serializer.class", "serializer.class")
}
