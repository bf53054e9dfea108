package znode

import (
	"strconv"
	"strings"
)

// BootPaths returns the persistent nodes that a broker makes at start, in
// Kafka's order (KafkaZkClient.createTopLevelPaths over
// ZkData.PersistentZkPaths), each with null data and after its parents.
func BootPaths() []string {
	return []string{
		Consumers,
		BrokerIDs,
		Topics,
		ConfigChanges,
		DeleteTopics,
		BrokerSeqID,
		ISRChanges,
		ProducerIDBlock,
		LogDirEvents,
		ConfigPath(TopicEntity),
		ConfigPath(ClientEntity),
		ConfigPath(UserEntity),
		ConfigPath(BrokerEntity),
		ConfigPath(IPEntity),
	}
}

// Sensitive tells whether the node at path may be read by its creator only
// when zookeeper.set.acl is on; other nodes are then also readable by the
// world (kafka.zk.ZkData.sensitivePath).
func Sensitive(path string) bool {
	for _, root := range [...]string{ConfigPath(UserEntity), ConfigPath(BrokerEntity), DelegationTokens} {
		if strings.HasPrefix(path, root) {
			return true
		}
	}
	return false
}

// WorldWritable tells whether the node at path stays open to everybody even
// when zookeeper.set.acl is on: old consumers write below /consumers
// (kafka.zk.ZkData.defaultAcls).
func WorldWritable(path string) bool { return path == Consumers }

// Sequence returns the counter that ZooKeeper appended to prefix in the name of
// a sequential node. It answers ErrPath for a name of another kind.
func Sequence(name, prefix string) (int64, error) {
	digits, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return 0, ErrPath
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, ErrPath
	}
	return n, nil
}

// parseID reads a broker id or a partition number used as a node name.
func parseID(name string) (int32, error) {
	n, err := strconv.ParseInt(name, 10, 32)
	if err != nil || n < 0 {
		return 0, ErrPath
	}
	return int32(n), nil
}
