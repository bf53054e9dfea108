package record

// ConvertOptions are for ConvertDown.
type ConvertOptions struct {
	// Magic is the format to convert to: 0 for Fetch v0 and v1, 1 for v2 and v3.
	Magic int8
	// FirstOffset is the offset that the client asked for. Records of an
	// uncompressed v2 batch before it are dropped, since each becomes an entry
	// of its own and some versions of librdkafka rely on it.
	FirstOffset int64
	// DecompressLimit bounds the decompressed bytes of an entry; 0 is
	// DefaultLimit.
	DecompressLimit int
}

// ConvertDown returns the set in an older format, for an old fetch (Kafka's
// RecordsUtil.downConvert). Entries of that format or an older one are copied.
// Control batches and headers are dropped. A compressed batch becomes one
// wrapper of the same codec. A torn tail is dropped. The result never aliases
// set; it is empty if no record is left.
//
// An Error with UnsupportedCompressionType means that the set has a zstd batch,
// which older formats can't hold; other errors mean that the set is corrupt.
// What was converted before the bad entry is returned with the error.
func ConvertDown(set []byte, o ConvertOptions) ([]byte, error) {
	return convertDown(set, o)
}
