package znode

const (
	// LogDirEvents is the parent of the notes by which a broker tells the
	// controller that one of its log directories failed (KIP-112).
	LogDirEvents = "/log_dir_event_notification"
	// LogDirEventPrefix begins the name of each note.
	LogDirEventPrefix = "log_dir_event_"
)

// EncodeLogDirEvent writes version 1; event 1, a failed directory, is the only one.
func EncodeLogDirEvent(broker int32) []byte {
	dst := appendInt([]byte(`{"version":1,"broker":`), int64(broker))
	return append(dst, `,"event":1}`...)
}

// DecodeLogDirEvent returns the broker whose log directory failed.
func DecodeLogDirEvent(data []byte) (broker int32, err error) {
	p := parse("log dir event", data)
	var has bool
	for key := range p.fields() {
		if string(key) == "broker" {
			broker, has = p.int32(), true
		} else {
			p.skip()
		}
	}
	p.require(has, "broker")
	if p.err != nil {
		return 0, p.err
	}
	return broker, nil
}
