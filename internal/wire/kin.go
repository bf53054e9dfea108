package wire

// KinTag is the tagged field of ApiVersions v3 and later by which brokers of
// this program know one another; everybody else passes it over (KIP-482). Its
// number is far above those that Kafka gives to its own fields. The value is
// one byte, KinLevel: what a peer may rely on.
const KinTag uint32 = 0x626e62

// KinLevel says what this broker does beyond what Kafka does. Level 1: it moves
// the log of an older topic of the same name aside (-stray), so that a topic's
// deletion need not wait for it.
const KinLevel byte = 1
