package znode

import "barnabas/internal/wire"

const (
	// ISRChanges is the parent of the notes by which leaders below 2.7-IV2
	// tell the controller that they wrote partition states.
	ISRChanges = "/isr_change_notification"
	// ISRChangePrefix begins the name of each note.
	ISRChangePrefix = "isr_change_"
)

// EncodeISRChange writes the data of a note, version 1.
func EncodeISRChange(list []wire.TopicPartition) []byte { return encodeTopicPartitions(list) }

// DecodeISRChange reads the data of a note.
func DecodeISRChange(data []byte) ([]wire.TopicPartition, error) {
	return decodeTopicPartitions("ISR change", data)
}
