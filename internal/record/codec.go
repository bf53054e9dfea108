package record

import "strconv"

// Codec is how the records of an entry are compressed, with the numbers of the
// attribute bits (class CompressionType).
type Codec int8

// The codecs. Zstd needs format v2 (KIP-110).
const (
	None   Codec = 0
	Gzip   Codec = 1
	Snappy Codec = 2
	LZ4    Codec = 3
	Zstd   Codec = 4

	// ProducerCodec, as the value of compression.type, keeps what the producer
	// chose. It is never in a batch.
	ProducerCodec Codec = -1
)

var codecNames = [...]string{"none", "gzip", "snappy", "lz4", "zstd"}

// String returns Kafka's name of the codec.
func (c Codec) String() string {
	switch {
	case c == ProducerCodec:
		return "producer"
	case c.Known():
		return codecNames[c]
	}
	return "codec-" + strconv.Itoa(int(c))
}

// Known tells whether c is a codec that a batch may have.
func (c Codec) Known() bool { return c >= None && c <= Zstd }

// ParseCodec returns the codec that a value of the property compression.type
// names, and whether it names one. "uncompressed" is none, "producer" is
// ProducerCodec.
func ParseCodec(name string) (Codec, bool) {
	switch name {
	case "producer":
		return ProducerCodec, true
	case "uncompressed":
		return None, true
	}
	for i, n := range codecNames {
		if n == name {
			return Codec(i), true
		}
	}
	return None, false
}

// DefaultLevel as a compression level is the codec's own default, which is
// Kafka's: gzip 6, lz4 9, zstd 3 (KIP-390). Snappy has no levels.
const DefaultLevel = -1 << 31

// DefaultLimit is the limit for decompressed bytes of one entry that is used
// where a limit of 0 is given.
const DefaultLimit = 256 << 20
