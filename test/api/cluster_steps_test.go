package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

func updateFeatures(version int16, updates ...kmsg.UpdateFeaturesRequestFeatureUpdate) step {
	r := kmsg.NewPtrUpdateFeaturesRequest()
	r.TimeoutMillis, r.FeatureUpdates = 1000, updates
	return at(version, r)
}

func feature(name string, level int16, kind int8, downgrade bool) kmsg.UpdateFeaturesRequestFeatureUpdate {
	return kmsg.UpdateFeaturesRequestFeatureUpdate{Feature: name, MaxVersionLevel: level, UpgradeType: kind, AllowDowngrade: downgrade}
}

func electLeaders(version int16, kind int8, topic string, partitions ...int32) step {
	r := kmsg.NewPtrElectLeadersRequest()
	r.ElectionType, r.TimeoutMillis = kind, 2000
	if topic != "" {
		r.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: topic, Partitions: partitions}}
	}
	return at(version, r)
}

func reassign(topic string, partition int32, replicas ...int32) step {
	r := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	r.TimeoutMillis = 2000
	r.Topics = []kmsg.AlterPartitionAssignmentsRequestTopic{{Topic: topic, Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{{Partition: partition, Replicas: replicas}}}}
	return at(0, r)
}

func ongoing(topic string, partitions ...int32) step {
	r := kmsg.NewPtrListPartitionReassignmentsRequest()
	if topic != "" {
		r.Topics = []kmsg.ListPartitionReassignmentsRequestTopic{{Topic: topic, Partitions: partitions}}
	}
	return at(0, r)
}

// clusterSteps are requests of brokers and of administrators of several brokers,
// as one broker answers them.
func clusterSteps() []step {
	steps := []step{
		create(7, 5000, false, topic("e", 2, 1)),
		after("e", electLeaders(0, 0, "e", 0, 1)),
		electLeaders(1, 1, "e", 0), electLeaders(2, 0, "", 0), electLeaders(2, 1, ""), electLeaders(2, 2, "e", 0), electLeaders(2, 0, "nobody", 0), electLeaders(2, 0, "e", 7, -1),
		reassign("e", 0, 1), reassign("e", 0), reassign("e", 7, 1), reassign("e", 7), reassign("nobody", 0, 1), reassign("nobody", 0),
		reassign("e", 0, 99), reassign("e", 0, 1, 1), reassign("e", 0, -1), reassign("e", 0, []int32{}...),
		ongoing(""), ongoing("e", 0), ongoing("nobody", 0),
	}
	for version := range int16(2) {
		steps = append(steps,
			updateFeatures(version), updateFeatures(version, feature("f", 1, 1, false)), updateFeatures(version, feature("", 1, 1, false)),
			updateFeatures(version, feature("f", 0, 1, false)), updateFeatures(version, feature("f", 0, 2, true)), updateFeatures(version, feature("f", -3, 3, false)),
			updateFeatures(version, feature("metadata.version", 1, 1, false), feature("f", 1, 9, true), feature("f", 1, 0, true)))
	}
	for version := range int16(4) {
		shutdown := kmsg.NewPtrControlledShutdownRequest()
		shutdown.BrokerID = 9
		if version > 0 { // v0 has a header of its own
			steps = append(steps, at(version, shutdown))
		}
		alter := kmsg.NewPtrAlterPartitionRequest()
		alter.BrokerID, alter.BrokerEpoch = 9, 1
		stale := kmsg.NewPtrAlterPartitionRequest()
		stale.BrokerID, stale.BrokerEpoch = 1, 1
		steps = append(steps, at(version, alter), at(version, stale))
	}
	for _, broker := range []int32{9, 1} {
		ids := kmsg.NewPtrAllocateProducerIDsRequest()
		ids.BrokerID, ids.BrokerEpoch = broker, 1
		steps = append(steps, at(0, ids))
	}
	envelope := kmsg.NewPtrEnvelopeRequest()
	envelope.RequestData, envelope.ClientHostAddress = []byte{1}, []byte{127, 0, 0, 1}
	steps = append(steps, at(0, envelope))
	for version := int16(2); version <= 4; version++ { // of a controller that never was
		roles := kmsg.NewPtrLeaderAndISRRequest()
		roles.ControllerID, roles.ControllerEpoch = 9, 0
		known := kmsg.NewPtrUpdateMetadataRequest()
		known.ControllerID, known.ControllerEpoch = 9, 0
		stop := kmsg.NewPtrStopReplicaRequest()
		stop.ControllerID, stop.ControllerEpoch = 9, 0
		steps = append(steps, at(version, roles), at(version, known), at(version, stop))
	}
	return steps
}
