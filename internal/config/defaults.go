package config

import (
	"maps"
	"strconv"
)

// The bound that queued.max.request.bytes has unless it is set. Kafka's default
// is no bound, which lets clients choose how much memory a broker takes.
const defaultQueuedBytes = 256 << 20

// The socket buffers unless they are set: the system grows them as they are
// needed. Kafka's 100 KiB cost a wakeup for each 64 KiB on a fast network, and
// are too little for a long one.
const systemsBuffer = "-1"

// embeddedDefaults replace Kafka's defaults, key by key, while zookeeper.connect
// is unset: one broker alone, on a laptop or in a test, that starts at once,
// keeps everything under one directory and listens to this machine only.
var embeddedDefaults = map[string]string{
	"broker.id":                        "0",
	"node.id":                          "0",
	"listeners":                        "PLAINTEXT://localhost:9092",
	"log.dirs":                         "barnabas-data/logs",
	"offsets.topic.replication.factor": "1",
	"transaction.state.log.replication.factor": "1",
	"transaction.state.log.min.isr":            "1",
	"group.initial.rebalance.delay.ms":         "0",
}

// kafkaDefaults are the defaults as the definitions have them.
var kafkaDefaults = func() map[string]string {
	m := map[string]string{}
	for _, d := range brokerTable.sorted {
		if d.HasDefault {
			m[d.Name] = d.Default
		}
	}
	return m
}()

// defaultsFor returns the defaults that go with what is set.
func defaultsFor(set map[string]string) map[string]string {
	m := maps.Clone(kafkaDefaults)
	m["queued.max.request.bytes"] = strconv.Itoa(defaultQueuedBytes)
	m["socket.receive.buffer.bytes"] = systemsBuffer
	m["socket.send.buffer.bytes"] = systemsBuffer
	if n, err := strconv.Atoi(trim(set["socket.request.max.bytes"])); err == nil && n > defaultQueuedBytes {
		// One request of the largest size has to fit.
		m["queued.max.request.bytes"] = strconv.Itoa(n)
	}
	if trim(set["zookeeper.connect"]) == "" {
		maps.Copy(m, embeddedDefaults)
		if _, ok := set["log.dir"]; ok {
			delete(m, "log.dirs") // else it would hide the one that is set
		}
	}
	return m
}
