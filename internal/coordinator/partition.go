package coordinator

import (
	"unicode/utf16"
)

// PartitionOf returns which of n partitions of the internal topic a group or a
// transactional id belongs to: Java's String.hashCode, over UTF-16 units, made
// positive as Kafka's Utils.abs does (the smallest number becomes 0), modulo n.
func PartitionOf(id string, n int) int32 {
	var h int32
	for _, u := range utf16.Encode([]rune(id)) {
		h = 31*h + int32(u)
	}
	switch {
	case h == -1<<31:
		h = 0
	case h < 0:
		h = -h
	}
	return h % int32(n)
}
