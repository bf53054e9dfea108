package wire

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strconv"
)

// TopicPartition names one partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String returns the name of the partition's folder: topic-partition.
func (tp TopicPartition) String() string {
	return tp.Topic + "-" + strconv.Itoa(int(tp.Partition))
}

// UUID is a topic id (KIP-516) or a cluster id. The zero UUID means none.
type UUID [16]byte

// ErrBadUUID is what ParseUUID answers for text that is not a UUID.
var ErrBadUUID = errors.New("not a 22-character base64url UUID")

// String returns Kafka's text form: 22 characters of base64url, no padding.
func (u UUID) String() string { return base64.RawURLEncoding.EncodeToString(u[:]) }

// IsZero tells whether u means "none".
func (u UUID) IsZero() bool { return u == UUID{} }

// ParseUUID reads Kafka's text form.
func ParseUUID(s string) (UUID, error) {
	var u UUID
	if len(s) != 22 {
		return u, ErrBadUUID
	}
	n, err := base64.RawURLEncoding.Decode(u[:], []byte(s))
	if err != nil || n != len(u) {
		return UUID{}, ErrBadUUID
	}
	return u, nil
}

// NewUUID makes a random version-4 UUID as org.apache.kafka.common.Uuid does:
// never one of the reserved low values, and never one whose text starts with
// '-', which command lines would take for a flag.
func NewUUID() UUID {
	for {
		var u UUID
		_, _ = rand.Read(u[:]) // never fails (crypto/rand, Go 1.24)
		u[6] = u[6]&0x0f | 0x40
		u[8] = u[8]&0x3f | 0x80
		if u.String()[0] != '-' {
			return u
		}
	}
}
