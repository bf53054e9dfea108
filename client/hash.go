package client

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// JavaHasher is a key whose Java twin has a hashCode of its own, for
// [ScalaHash].
type JavaHasher interface {
	JavaHash() int32
}

// JavaHash returns the hashCode that the value's twin in Java has: of String
// for string, java.util.Arrays.hashCode for []byte (kafka.producer.
// ByteArrayPartitioner), of Integer for int32, int16 and int8, of Long for int64
// and int, of Boolean, Float and Double.
func JavaHash(value any) (int32, error) {
	switch v := value.(type) {
	case string:
		return hashString(v), nil
	case []byte:
		return hashBytes(v), nil
	case int32:
		return v, nil
	case int16:
		return int32(v), nil
	case int8:
		return int32(v), nil
	case int:
		return hashLong(uint64(v)), nil
	case int64:
		return hashLong(uint64(v)), nil
	case float32:
		if v != v {
			return 0x7fc00000, nil
		}
		return int32(math.Float32bits(v)), nil
	case float64:
		if v != v {
			return hashLong(0x7ff8000000000000), nil
		}
		return hashLong(math.Float64bits(v)), nil
	case bool:
		if v {
			return 1231, nil
		}
		return 1237, nil
	case JavaHasher:
		return v.JavaHash(), nil
	}
	return 0, fmt.Errorf("client: %T has no hash code; let it implement JavaHasher", value)
}

func hashLong(v uint64) int32 { return int32(v ^ v>>32) }

// hashString is that of java.lang.String: over UTF-16 units.
func hashString(s string) int32 {
	var h uint32
	for _, r := range s {
		if r < utf8.RuneSelf {
			h = 31*h + uint32(r)
			continue
		}
		if r >= 0x10000 {
			r -= 0x10000
			h = 31*h + 0xd800 + uint32(r>>10)
			r = 0xdc00 + r&0x3ff
		}
		h = 31*h + uint32(r)
	}
	return int32(h)
}

func hashBytes(b []byte) int32 {
	h := uint32(1)
	for _, c := range b {
		h = 31*h + uint32(int8(c))
	}
	return int32(h)
}

// absolute is kafka.utils.Utils.abs of 0.8.2: the one number without a positive
// twin becomes 0.
func absolute(n int32) int32 {
	switch {
	case n == math.MinInt32:
		return 0
	case n < 0:
		return -n
	}
	return n
}

// Murmur2Hash is the hash of org.apache.kafka.common.utils.Utils.murmur2, which
// the Java producers take of a record's serialized key.
func Murmur2Hash(data []byte) int32 {
	const m, r = uint32(0x5bd1e995), 24
	h := uint32(0x9747b28c) ^ uint32(len(data))
	rest := data
	for ; len(rest) >= 4; rest = rest[4:] {
		k := uint32(rest[0]) | uint32(rest[1])<<8 | uint32(rest[2])<<16 | uint32(rest[3])<<24
		k *= m
		k ^= k >> r
		k *= m
		h = h*m ^ k
	}
	switch len(rest) {
	case 3:
		h ^= uint32(rest[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(rest[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(rest[0])) * m
	}
	h ^= h >> 13
	h *= m
	return int32(h ^ h>>15)
}
