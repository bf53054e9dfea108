package znode

import "math"

// ProducerIDBlock holds the block of producer ids that was handed out last.
const ProducerIDBlock = "/latest_producer_id_block"

// ProducerIDBlockSize is how many producer ids a broker takes at once.
const ProducerIDBlockSize = 1000

// ProducerIDs is the data of /latest_producer_id_block, version 1: ids from
// Start to End, both included, belong to Broker. In JSON they are strings.
type ProducerIDs struct {
	Broker     int32
	Start, End int64
}

// Next is the block that broker takes after p, for a conditional setData. ok
// is false when the ids are used up. The first block, over null data, is
// FirstProducerIDs.
func (p ProducerIDs) Next(broker int32) (next ProducerIDs, ok bool) {
	if p.End > math.MaxInt64-ProducerIDBlockSize {
		return ProducerIDs{}, false
	}
	return ProducerIDs{broker, p.End + 1, p.End + ProducerIDBlockSize}, true
}

// FirstProducerIDs is the block that is taken when the node's data is null.
func FirstProducerIDs(broker int32) ProducerIDs {
	return ProducerIDs{broker, 0, ProducerIDBlockSize - 1}
}

// Encode writes version 1.
func (p ProducerIDs) Encode() []byte {
	dst := appendInt([]byte(`{"version":1,"broker":`), int64(p.Broker))
	dst = appendDecimal(append(dst, `,"block_start":`...), p.Start)
	dst = appendDecimal(append(dst, `,"block_end":`...), p.End)
	return append(dst, '}')
}

// DecodeProducerIDs requires broker, block_start and block_end. Null data is
// for the caller to handle.
func DecodeProducerIDs(data []byte) (ProducerIDs, error) {
	p := parse("producer id block", data)
	var ids ProducerIDs
	var broker, start, end bool
	for key := range p.fields() {
		switch string(key) {
		case "broker":
			ids.Broker, broker = p.int32(), true
		case "block_start":
			ids.Start, start = p.decimal(), true
		case "block_end":
			ids.End, end = p.decimal(), true
		default:
			p.skip()
		}
	}
	p.require(broker, "broker")
	p.require(start, "block_start")
	p.require(end, "block_end")
	if p.err == nil && (ids.Start < 0 || ids.End < ids.Start) {
		p.fail("not a range of producer ids")
	}
	if p.err != nil {
		return ProducerIDs{}, p.err
	}
	return ids, nil
}
