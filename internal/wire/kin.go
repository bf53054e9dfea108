package wire

// KinTag is the tagged field of ApiVersions v3 and later by which brokers of
// this program know one another. Its number is far above those that Kafka gives
// to its own fields. The value is one byte, KinLevel: what a peer may rely on.
// Only who calls itself KinName gets it: everybody else should pass it over
// (KIP-482), but librdkafka 2.0 loses count at a second field.
const KinTag uint32 = 0x626e62

// KinName is the client software name of the requests that go to other brokers.
const KinName = "barnabas"

// KinLevel says what this broker does beyond what Kafka does. Level 1: it moves
// the log of an older topic of the same name aside (-stray), so that a topic's
// deletion need not wait for it.
const KinLevel byte = 1
