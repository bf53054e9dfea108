package api

import "github.com/twmb/franz-go/pkg/kmsg"

type (
	resource  = kmsg.DescribeConfigsRequestResource
	kind      = kmsg.ConfigResourceType
	operation = kmsg.IncrementalAlterConfigsRequestResourceConfig
)

const (
	ofTopic   = kmsg.ConfigResourceTypeTopic
	ofBroker  = kmsg.ConfigResourceTypeBroker
	ofLogger  = kmsg.ConfigResourceTypeBrokerLogger
	ofMetrics = kmsg.ConfigResourceTypeClientMetrics
)

func describe(version int16, resources ...resource) step {
	r := kmsg.NewPtrDescribeConfigsRequest()
	r.Resources, r.IncludeSynonyms, r.IncludeDocumentation = resources, true, version == 4
	return at(version, r)
}

func res(k kind, name string, keys ...string) resource {
	return resource{ResourceType: k, ResourceName: name, ConfigNames: keys}
}

func describeSteps() []step {
	steps := []step{
		create(2, 5000, false, topic("dc", 1, 1, withConfig("retention.ms", ptr("5")))),
		otherwise("is_default is told, which Kafka 3.9 leaves false", describe(0, res(ofTopic, "dc", "segment.ms"))),
		describe(0, res(ofTopic, "dc", "retention.ms", "zzz")), describe(0, res(ofTopic, "dc", "zzz")),
		describe(1, res(ofTopic, "dc", "cleanup.policy")), describe(1, res(ofTopic, "dc")),
		describe(1, resource{ResourceType: ofTopic, ResourceName: "dc", ConfigNames: []string{}}),
		describe(3, res(ofTopic, "dc", "retention.ms", "cleanup.policy")), describe(4, res(ofTopic, "dc")),
		describe(4, res(ofTopic, "dc", "retention.ms"), res(ofTopic, "dc", "segment.bytes")),
		describe(4, res(ofBroker, "")), describe(2, res(ofBroker, "1", "log.cleaner.threads", "message.max.bytes", "ssl.keystore.password", "broker.id", "advertised.listeners")),
		describe(3, res(ofLogger, "1", "root", "zzz")), describe(3, res(ofLogger, "1", "zzz")),
		rawBody(32, 0, 255, 255, 255, 255), rawBody(32, 4, 0, 0, 0, 0),
	}
	for _, r := range []resource{
		res(ofTopic, "nope"), res(ofTopic, "a b"), res(ofTopic, ""), res(ofBroker, "2", "log.dirs"), res(ofBroker, "x"), res(99, "x"), res(0, "x"), res(1, "x"),
		res(32, "g"), res(ofMetrics, "x"), res(ofMetrics, ""), res(ofLogger, "x"), res(ofLogger, "2"), res(ofLogger, ""),
	} {
		steps = append(steps, describe(4, r))
	}
	return append(steps, describe(1, res(ofTopic, "dc", "retention.ms"), res(99, "")))
}

func alterSteps() []step {
	alter := func(version int16, validateOnly bool, k kind, name string, keysAndValues ...*string) step {
		r := kmsg.NewPtrAlterConfigsRequest()
		r.ValidateOnly = validateOnly
		x := kmsg.NewAlterConfigsRequestResource()
		x.ResourceType, x.ResourceName = k, name
		for i := 0; i < len(keysAndValues); i += 2 {
			x.Configs = append(x.Configs, kmsg.AlterConfigsRequestResourceConfig{Name: *keysAndValues[i], Value: keysAndValues[i+1]})
		}
		r.Resources = append(r.Resources, x)
		return at(version, r)
	}
	set := func(k kind, name, key, value string) step { return alter(1, false, k, name, &key, &value) }
	const retention = "retention.ms"
	threads := "log.cleaner.threads"
	return []step{
		create(2, 5000, false, topic("ac", 1, 1)),
		alter(0, false, ofTopic, "ac", ptr(retention), ptr("5")), describe(1, res(ofTopic, "ac", retention)),
		alter(0, false, ofTopic, "ac", ptr(retention), nil), alter(0, false, ofTopic, "ac", ptr("zzz"), ptr("5")), alter(0, false, ofTopic, "ac", ptr(retention), ptr("q")),
		alter(0, false, ofTopic, "ac", ptr(retention), ptr("5"), ptr(retention), ptr("6")), alter(1, true, ofTopic, "ac", ptr(retention), ptr("7")),
		describe(1, res(ofTopic, "ac", retention)),
		set(ofTopic, "nope", retention, "7"), set(ofTopic, "a b", retention, "7"), set(ofTopic, "", retention, "7"),
		set(ofBroker, "1", threads, "2"), set(ofBroker, "1", "log.dirs", "2"), set(ofBroker, "1", "zzz", "2"), set(ofBroker, "1", threads, "q"),
		set(ofBroker, "1", threads, "200"), set(ofBroker, "", "advertised.listeners", "PLAINTEXT://x:1"), set(ofBroker, "", threads, "1"),
		set(ofBroker, "2", threads, "1"), set(ofBroker, "x", threads, "1"),
		alter(2, false, ofBroker, "1"), alter(2, false, ofBroker, ""), alter(2, false, ofTopic, "ac"), describe(1, res(ofTopic, "ac", retention)),
		set(ofLogger, "1", "root", "DEBUG"), set(99, "1", "root", "DEBUG"), set(ofMetrics, "1", "root", "DEBUG"),
		rawBody(33, 0, 255, 255, 255, 255, 0),
	}
}

func incremental(k kind, name string, operations ...operation) step {
	r := kmsg.NewPtrIncrementalAlterConfigsRequest()
	x := kmsg.NewIncrementalAlterConfigsRequestResource()
	x.ResourceType, x.ResourceName, x.Configs = k, name, operations
	r.Resources = append(r.Resources, x)
	return at(1, r)
}

func incrementalSteps() []step {
	op := func(key string, o kmsg.IncrementalAlterConfigOp, value ...string) operation {
		c := operation{Name: key, Op: o}
		if len(value) > 0 {
			c.Value = &value[0]
		}
		return c
	}
	const retention, policy, threads = "retention.ms", "cleanup.policy", "log.cleaner.threads"
	twice := incremental(ofTopic, "ic")
	request := twice.req.(*kmsg.IncrementalAlterConfigsRequest)
	request.Resources = append(request.Resources, request.Resources[0])
	steps := []step{create(2, 5000, false, topic("ic", 1, 1)), twice}
	for _, o := range [][]operation{
		{op(retention, 0, "77")}, {op(retention, 0)}, {op("zzz", 0, "1")}, {op("zzz", 1)}, {op(retention, 2, "1")}, {op(retention, 3, "1")},
		{op(policy, 2, "compact")}, {op(policy, 2, "compact,delete")}, {op(policy, 2, "shred")},
	} {
		steps = append(steps, incremental(ofTopic, "ic", o...))
	}
	return append(steps,
		describe(1, res(ofTopic, "ic", policy, retention)), incremental(ofTopic, "ic", op(policy, 3, "delete")), describe(1, res(ofTopic, "ic", policy)),
		incremental(ofTopic, "ic", op(policy, 3, "compact")), describe(1, res(ofTopic, "ic", policy)), incremental(ofTopic, "ic", op(policy, 1)),
		incremental(ofTopic, "ic", op(retention, 0, "77"), op(retention, 1)), incremental(ofTopic, "ic"),
		otherwise("an unknown operation is an invalid request; Kafka fails", incremental(ofTopic, "ic", op(retention, 9, "1"))),
		otherwise("an unknown key is an invalid config; Kafka fails", incremental(ofTopic, "ic", op("zzz", 2, "1"))),
		incremental(ofTopic, "nope"), incremental(ofTopic, "a b"), incremental(ofTopic, ""),
		incremental(ofBroker, "1", op(threads, 0, "2")), incremental(ofBroker, "1", op(threads, 1)), incremental(ofBroker, "1", op("log.dirs", 0, "2")),
		incremental(ofBroker, "1", op("zzz", 0, "2")), incremental(ofBroker, "1", op(threads, 0, "0")), incremental(ofBroker, "2", op(threads, 0, "2")),
		incremental(ofBroker, "", op("message.max.bytes", 0, "2000000")), incremental(ofBroker, "", op("listener.name.plaintext.ssl.keystore.location", 0, "x")),
		incremental(ofBroker, "", op("message.max.bytes", 1)),
		incremental(ofLogger, "1", op("root", 0, "INFO")), incremental(ofLogger, "1", op("root", 0, "LOUD")), incremental(ofLogger, "1", op("zzz", 0, "DEBUG")),
		incremental(ofLogger, "1", op("root", 1)), incremental(ofLogger, "1", op("root", 2, "DEBUG")), incremental(ofLogger, "2", op("root", 0, "DEBUG")),
		incremental(ofMetrics, "m", op("interval.ms", 0, "5000")), incremental(32, "m", op("interval.ms", 0, "5000")), incremental(99, "m", op("x", 0, "y")),
	)
}
