package znode

import "strconv"

const (
	// ControllerPath is the ephemeral node of the active controller. It is
	// created and deleted, never set: config writes of 3.9 check its version.
	ControllerPath = "/controller"
	// ControllerEpochPath counts elections; its data version fences a
	// controller's writes.
	ControllerEpochPath = "/controller_epoch"
)

// InitialControllerEpoch is what ControllerEpochPath is created with; the
// first controller sets 1.
const InitialControllerEpoch int32 = 0

// NoKRaftEpoch is Controller.KRaftEpoch in a cluster that never migrated.
const NoKRaftEpoch int32 = -1

// Controller is the data of /controller.
//
// Versions: 1 to 3.3; 2 (3.4, KIP-866) adds kraftControllerEpoch.
type Controller struct {
	Version   int32
	BrokerID  int32
	Timestamp int64 // of the election, in ms since 1970; 0 when unreadable
	// KRaftEpoch above 0 means that a KRaft controller owns the cluster: its
	// brokers refuse to write configs. We always write NoKRaftEpoch.
	KRaftEpoch int32
}

// Encode writes version 2, or 1 when c.Version is 1.
func (c Controller) Encode() []byte {
	version := c.Version
	if version != 1 {
		version = 2
	}
	dst := appendInt([]byte(`{"version":`), int64(version))
	dst = appendInt(append(dst, `,"brokerid":`...), int64(c.BrokerID))
	dst = appendDecimal(append(dst, `,"timestamp":`...), c.Timestamp)
	if version >= 2 {
		dst = appendInt(append(dst, `,"kraftControllerEpoch":`...), int64(c.KRaftEpoch))
	}
	return append(dst, '}')
}

// DecodeController requires brokerid. The bare number that 0.8.0 wrote is
// ErrFormat, as it is to Kafka since 2.0; whoever reads a node that cannot be
// read treats it as naming no controller.
func DecodeController(data []byte) (Controller, error) {
	p := parse("controller", data)
	c := Controller{KRaftEpoch: NoKRaftEpoch}
	var id bool
	for key := range p.fields() {
		switch string(key) {
		case "version":
			c.Version = p.int32()
		case "brokerid":
			c.BrokerID, id = p.int32(), true
		case "timestamp":
			c.Timestamp = p.timestamp()
		case "kraftControllerEpoch":
			c.KRaftEpoch = p.int32()
		default:
			p.skip()
		}
	}
	p.require(id, "brokerid")
	if p.err != nil {
		return Controller{}, p.err
	}
	return c, nil
}

// EncodeControllerEpoch writes decimal text.
func EncodeControllerEpoch(epoch int32) []byte { return appendInt(nil, int64(epoch)) }

// DecodeControllerEpoch reads decimal text.
func DecodeControllerEpoch(data []byte) (int32, error) {
	n, err := decodeDecimal("controller epoch", data, 32)
	return int32(n), err
}

// decodeDecimal reads data that is nothing but a decimal number.
func decodeDecimal(kind string, data []byte, bits int) (int64, error) {
	if len(data) > 32 {
		return 0, &DecodeError{Kind: kind, Cause: ErrFormat, Detail: strconv.Itoa(len(data)) + " bytes are no number"}
	}
	n, err := strconv.ParseInt(string(data), 10, bits)
	if err != nil {
		return 0, &DecodeError{Kind: kind, Cause: ErrFormat, Detail: strconv.Quote(string(data)) + " is no number"}
	}
	return n, nil
}
