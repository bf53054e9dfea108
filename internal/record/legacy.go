package record

// Formats v0 (Kafka 0.8) and v1 (KIP-32, Kafka 0.10; class LegacyRecord):
//
//	 0  offset      int64   of the message; compressed: of the last one inside
//	 8  length      int32   bytes after this field
//	12  crc         uint32  CRC-32 (IEEE) of all from magic to the end
//	16  magic       int8    0 or 1
//	17  attributes  int8    bits 0-2 codec; v1: bit 3 timestamp type
//	18  timestamp   int64   v1 only; compressed: the largest one inside
//	    key length  int32   -1 for null
//	    key
//	    value length int32  -1 for null
//	    value               compressed: a whole set of the same format
//
// The messages inside a compressed one have absolute offsets in v0. In v1
// (KIP-31) they count from 0 and the wrapper's offset is that of the last, so
// absolute = wrapper + inner - last inner. Some versions of librdkafka send 0
// as the wrapper's offset; then the inner ones are taken as they are.
const (
	legacyCRCAt        = 12
	legacyAttributesAt = 17
	legacyTimestampAt  = 18

	legacyKeyAtV0  = 18
	legacyKeyAtV1  = 26
	legacyHeaderV0 = legacyKeyAtV0 + 8 // with both lengths
	legacyHeaderV1 = legacyKeyAtV1 + 8
)
