package client

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrSerialize is the cause of a record's error when its key or value can't be
// serialized.
var ErrSerialize = errors.New("client: cannot serialize")

// Serializer turns keys or values into bytes. It is called for one value at a
// time by each goroutine that sends. nil never reaches it: null stays null.
type Serializer interface {
	Serialize(topic string, value any) ([]byte, error)
}

// SerializerFunc is a function as a Serializer.
type SerializerFunc func(topic string, value any) ([]byte, error)

// Serialize calls the function.
func (f SerializerFunc) Serialize(topic string, value any) ([]byte, error) { return f(topic, value) }

func cannot(value any, as string) error { return fmt.Errorf("%w %T as %s", ErrSerialize, value, as) }

// Serializers that exist in Kafka under the names that [SerializerNames] lists.
var (
	// Bytes passes []byte and string through as they are.
	Bytes Serializer = SerializerFunc(serializeBytes)
	// Strings writes string as UTF-8; what a []byte holds is passed through.
	Strings Serializer = SerializerFunc(serializeBytes)
	// Null writes null whatever the value.
	Null Serializer = SerializerFunc(func(string, any) ([]byte, error) { return nil, nil })
	// Integers writes 4 bytes, the highest first.
	Integers Serializer = SerializerFunc(serializeInteger)
	// Longs writes 8 bytes, the highest first.
	Longs Serializer = SerializerFunc(serializeLong)
	// Shorts writes 2 bytes, the highest first.
	Shorts Serializer = SerializerFunc(serializeShort)
	// Floats writes IEEE 754 in 4 bytes, the highest first.
	Floats Serializer = SerializerFunc(serializeFloat)
	// Doubles writes IEEE 754 in 8 bytes, the highest first.
	Doubles Serializer = SerializerFunc(serializeDouble)
	// Booleans writes one byte, 0 or 1.
	Booleans Serializer = SerializerFunc(serializeBoolean)
	// ByType is the default: []byte and string as they are, int32 as Integers,
	// int64 and int as Longs, int16 as Shorts, float32 as Floats, float64 as
	// Doubles, bool as Booleans.
	ByType Serializer = SerializerFunc(serializeByType)
)

func serializeBytes(_ string, value any) ([]byte, error) {
	switch v := value.(type) {
	case []byte:
		return v, nil
	case string:
		return []byte(v), nil
	}
	return nil, cannot(value, "bytes")
}

func serializeInteger(_ string, value any) ([]byte, error) {
	switch v := value.(type) {
	case int32:
		return binary.BigEndian.AppendUint32(nil, uint32(v)), nil
	case int:
		if v == int(int32(v)) {
			return binary.BigEndian.AppendUint32(nil, uint32(v)), nil
		}
	}
	return nil, cannot(value, "an integer of 4 bytes")
}

func serializeLong(_ string, value any) ([]byte, error) {
	var n int64
	switch v := value.(type) {
	case int64:
		n = v
	case int32:
		n = int64(v)
	case int:
		n = int64(v)
	default:
		return nil, cannot(value, "an integer of 8 bytes")
	}
	return binary.BigEndian.AppendUint64(nil, uint64(n)), nil
}

func serializeShort(_ string, value any) ([]byte, error) {
	if v, ok := value.(int16); ok {
		return binary.BigEndian.AppendUint16(nil, uint16(v)), nil
	}
	return nil, cannot(value, "an integer of 2 bytes")
}

func serializeFloat(_ string, value any) ([]byte, error) {
	if v, ok := value.(float32); ok {
		return binary.BigEndian.AppendUint32(nil, math.Float32bits(v)), nil
	}
	return nil, cannot(value, "a float")
}

func serializeDouble(_ string, value any) ([]byte, error) {
	if v, ok := value.(float64); ok {
		return binary.BigEndian.AppendUint64(nil, math.Float64bits(v)), nil
	}
	return nil, cannot(value, "a double")
}

func serializeBoolean(_ string, value any) ([]byte, error) {
	v, ok := value.(bool)
	switch {
	case !ok:
		return nil, cannot(value, "a boolean")
	case v:
		return []byte{1}, nil
	}
	return []byte{0}, nil
}

func serializeByType(topic string, value any) ([]byte, error) {
	switch v := value.(type) {
	case []byte:
		return v, nil
	case string:
		return []byte(v), nil
	case int, int64:
		return serializeLong(topic, v)
	case int32:
		return serializeInteger(topic, v)
	case int16:
		return serializeShort(topic, v)
	case float32:
		return serializeFloat(topic, v)
	case float64:
		return serializeDouble(topic, v)
	case bool:
		return serializeBoolean(topic, v)
	}
	return nil, fmt.Errorf("%w: %T has no serializer; set one with KeySerializer or ValueSerializer", ErrSerialize, value)
}

// SerializerNames maps the names of Kafka's classes, as serializer.class,
// key.serializer.class (0.8), key.serializer and value.serializer have them, to
// serializers.
func SerializerNames() map[string]Serializer {
	const java = "org.apache.kafka.common.serialization."
	return map[string]Serializer{
		"kafka.serializer.DefaultEncoder": Bytes,
		"kafka.serializer.StringEncoder":  Strings,
		"kafka.serializer.NullEncoder":    Null,
		java + "ByteArraySerializer":      Bytes,
		java + "StringSerializer":         Strings,
		java + "IntegerSerializer":        Integers,
		java + "LongSerializer":           Longs,
		java + "ShortSerializer":          Shorts,
		java + "FloatSerializer":          Floats,
		java + "DoubleSerializer":         Doubles,
		java + "BooleanSerializer":        Booleans,
		java + "VoidSerializer":           Null,
	}
}
