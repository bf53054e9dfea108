package api

import "github.com/twmb/franz-go/pkg/kmsg"

func metadata(version int16, auto bool, names ...string) step {
	r := kmsg.NewPtrMetadataRequest()
	r.AllowAutoTopicCreation = auto
	r.IncludeClusterAuthorizedOperations, r.IncludeTopicAuthorizedOperations = true, true
	r.Topics = []kmsg.MetadataRequestTopic{}
	for _, n := range names {
		r.Topics = append(r.Topics, kmsg.MetadataRequestTopic{Topic: &n})
	}
	return at(version, r)
}

func metadataOf(version int16, topics ...kmsg.MetadataRequestTopic) step {
	r := kmsg.NewPtrMetadataRequest()
	r.Topics = topics
	return at(version, r)
}

func metadataSteps() []step {
	versions := kmsg.NewPtrApiVersionsRequest()
	versions.ClientSoftwareName, versions.ClientSoftwareVersion = "x y", "1"
	badName := at(3, versions)
	steps := []step{
		badName, at(3, kmsg.NewPtrApiVersionsRequest()),
		metadata(0, true), metadata(1, true), metadata(12, false), metadataOf(1), metadataOf(12),
		metadata(4, false, "nobody"), metadata(1, true, "auto"),
	}
	for v := int16(0); v <= 12; v++ {
		steps = append(steps, after("auto", metadata(v, true, "auto")), metadataOf(v))
	}
	noOps := kmsg.NewPtrMetadataRequest()
	noOps.Topics = []kmsg.MetadataRequestTopic{{Topic: ptr("auto")}}
	return append(steps,
		at(9, noOps),
		metadata(8, true, "bad name!", "..", "", "auto", "auto", "nope/x"),
		metadata(4, false, "bad name!", "zz"),
		metadata(1, true, "auto.x"), after("auto.x", metadata(1, true, "auto_x")),
		metadata(1, true, "__consumer_offsets"), after("__consumer_offsets", metadata(1, true, "__transaction_state")),
		after("__transaction_state", metadata(1, true, "__transaction_state")),
		metadataOf(12, kmsg.MetadataRequestTopic{TopicID: [16]byte{1}}),
		metadataOf(12, kmsg.MetadataRequestTopic{TopicID: [16]byte{1}}, kmsg.MetadataRequestTopic{Topic: ptr("auto")}),
		otherwise("neither name nor id: Kafka fails and sends UNKNOWN_SERVER_ERROR", metadataOf(12, kmsg.MetadataRequestTopic{})),
		metadataOf(10, kmsg.MetadataRequestTopic{}),
		metadataOf(11, kmsg.MetadataRequestTopic{TopicID: [16]byte{1}, Topic: ptr("auto")}),
		rawBody(3, 0, 255, 255, 255, 255), rawBody(3, 1, 0, 0, 0, 1, 255, 255), rawBody(3, 9, 0, 1, 0, 0, 0),
		rawBody(3, 1, 0, 0, 0, 0, 1, 2, 3, 4, 5), rawBody(3, 1, 127, 255, 255, 255), rawBody(3, 9, 255, 255, 255, 255, 15),
		cluster(0, false, 1), cluster(0, true, 1), cluster(1, true, 1), cluster(1, true, 2), cluster(1, true, 3),
	)
}

func cluster(version int16, ops bool, endpoint int8) step {
	r := kmsg.NewPtrDescribeClusterRequest()
	r.IncludeClusterAuthorizedOperations, r.EndpointType = ops, endpoint
	return at(version, r)
}

func coordinatorSteps() []step {
	find := func(version int16, kind int8, keys ...string) step {
		r := kmsg.NewPtrFindCoordinatorRequest()
		r.CoordinatorType, r.CoordinatorKey, r.CoordinatorKeys = kind, keys[0], keys
		return at(version, r)
	}
	pid := func(version int16, txn *string, timeout int32, id int64, epoch int16) step {
		r := kmsg.NewPtrInitProducerIDRequest()
		r.TransactionalID, r.TransactionTimeoutMillis, r.ProducerID, r.ProducerEpoch = txn, timeout, id, epoch
		return at(version, r)
	}
	steps := []step{after("__consumer_offsets", find(0, 0, "g"))}
	for v := int16(1); v <= 6; v++ {
		steps = append(steps, find(v, 0, "g", "h"))
	}
	steps = append(steps,
		find(2, 0, ""), find(4, 0, ""), find(4, 2, ""), find(5, 2, "a", "b"), find(6, 2, "a"), find(2, 9, "a"), find(4, 9, "a"),
		find(1, 1, "t"), after("__transaction_state", find(4, 1, "t")),
		rawBody(10, 4, 0, 0, 0),
		otherwise("Kafka's first answer is COORDINATOR_LOAD_IN_PROGRESS", pid(0, nil, 1000, -1, -1)),
		pid(3, nil, 1000, 5, -1), pid(3, nil, 1000, -1, 5), pid(3, ptr(""), 1000, -1, -1), pid(3, ptr("t"), -1, -1, -1), pid(3, ptr("t"), 0, -1, -1),
		pid(3, ptr("t"), 1<<30, -1, -1),
	)
	return steps
}

func offsetSteps() []step {
	commit := func(group string, topic string, partition int32, offset int64, metadata *string) step {
		r := kmsg.NewPtrOffsetCommitRequest()
		r.Group = group
		r.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{
			{Partition: partition, Offset: offset, Metadata: metadata}, {Partition: 7, Offset: 1}}}}
		return at(0, r)
	}
	fetch := func(group string, topics ...string) step {
		r := kmsg.NewPtrOffsetFetchRequest()
		r.Group = group
		r.Topics = []kmsg.OffsetFetchRequestTopic{}
		for _, topic := range topics {
			r.Topics = append(r.Topics, kmsg.OffsetFetchRequestTopic{Topic: topic, Partitions: []int32{0, 7}})
		}
		return at(0, r)
	}
	long := string(make([]byte, 5000))
	return []step{
		metadata(1, true, "offsets"), after("offsets", fetch("zg", "offsets", "nope")),
		commit("zg", "offsets", 0, 42, ptr("m")), fetch("zg", "offsets", "nope"), commit("zg", "offsets", 0, 43, nil), fetch("zg", "offsets"),
		fetch("zg"), commit("zg", "nope", 0, 1, nil), commit("", "offsets", 0, 1, nil), fetch("", "offsets"),
		commit("a/b", "offsets", 0, 5, nil), fetch("a/b", "offsets"), commit("g2", "offsets", 0, -1, nil), fetch("g2", "offsets"),
		commit("g2", "offsets", 0, 9, &long), rawBody(8, 0, 0, 1, 'g', 255, 255, 255, 255), rawBody(9, 0, 0, 1, 'g', 255, 255, 255, 255),
	}
}

func logDirSteps() []step {
	describe := func(version int16, topics []kmsg.DescribeLogDirsRequestTopic) step {
		r := kmsg.NewPtrDescribeLogDirsRequest()
		r.Topics = topics
		return at(version, r)
	}
	some := []kmsg.DescribeLogDirsRequestTopic{{Topic: "dirs", Partitions: []int32{0, 5}}, {Topic: "nope", Partitions: []int32{0}}}
	return []step{
		metadata(1, true, "dirs"), after("dirs", describe(0, some)), describe(1, some), describe(2, some), describe(3, some), describe(4, some),
		describe(4, []kmsg.DescribeLogDirsRequestTopic{}),
	}
}
