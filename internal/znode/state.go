package znode

// Values of PartitionState.RecoveryState (KIP-704).
const (
	Recovered  int8 = 0
	Recovering int8 = 1 // elected uncleanly, and not yet recovered
)

// NoLeader is PartitionState.Leader when there is none.
const NoLeader int32 = -1

// PartitionState is the data of a partition's state node, version 1. The data
// version of the node is the partition epoch, so it is not in here.
type PartitionState struct {
	Leader          int32 // broker id, or NoLeader
	LeaderEpoch     int32
	ControllerEpoch int32   // of the controller that chose this leader
	ISR             []int32 // in no order that counts
	// RecoveryState is written by 3.2-IV0 and later, and only when it is not
	// Recovered.
	RecoveryState int8
}

// Encode writes version 1.
func (s PartitionState) Encode() []byte {
	return s.AppendTo(make([]byte, 0, 96+6*len(s.ISR)))
}

// AppendTo appends version 1 to dst.
func (s PartitionState) AppendTo(dst []byte) []byte {
	dst = appendInt(append(dst, `{"controller_epoch":`...), int64(s.ControllerEpoch))
	dst = appendInt(append(dst, `,"leader":`...), int64(s.Leader))
	dst = appendInt(append(dst, `,"version":1,"leader_epoch":`...), int64(s.LeaderEpoch))
	dst = appendInt32s(append(dst, `,"isr":`...), s.ISR)
	if s.RecoveryState != Recovered {
		dst = appendInt(append(dst, `,"leader_recovery_state":`...), int64(s.RecoveryState))
	}
	return append(dst, '}')
}

// DecodePartitionState requires leader, leader_epoch, controller_epoch and
// isr; it does not look at "version".
func DecodePartitionState(data []byte) (PartitionState, error) {
	p := parse("partition state", data)
	var s PartitionState
	var leader, epoch, controller, isr bool
	for key := range p.fields() {
		switch string(key) {
		case "leader":
			s.Leader, leader = p.int32(), true
		case "leader_epoch":
			s.LeaderEpoch, epoch = p.int32(), true
		case "controller_epoch":
			s.ControllerEpoch, controller = p.int32(), true
		case "isr":
			s.ISR, isr = p.int32s(), true
		case "leader_recovery_state":
			n := p.int32()
			if n != int32(Recovered) && n != int32(Recovering) {
				p.fail("unknown recovery state")
			}
			s.RecoveryState = int8(n)
		default:
			p.skip()
		}
	}
	p.require(leader, "leader")
	p.require(epoch, "leader_epoch")
	p.require(controller, "controller_epoch")
	p.require(isr, "isr")
	if p.err != nil {
		return PartitionState{}, p.err
	}
	return s, nil
}
