package znode

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// StatsTrack is the text of a limit or of a stats node below /zookeeper/quota
// (org.apache.zookeeper.StatsTrack): "count=1,bytes=2", and further pairs after
// "=;". A number that is missing is -1.
type StatsTrack map[string]int64

// ParseStatsTrack reads one; ok is false when it makes no sense.
func ParseStatsTrack(data []byte) (t StatsTrack, ok bool) {
	t = StatsTrack{}
	for pair := range strings.FieldsFuncSeq(string(data), func(r rune) bool { return r == ',' || r == ';' }) {
		key, value, _ := strings.Cut(pair, "=")
		if value = strings.TrimRight(value, "="); value == "" {
			value = "-1"
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return nil, false
		}
		t[key] = n
	}
	return t, true
}

// Get returns a number, -1 where it is missing.
func (t StatsTrack) Get(key string) int64 {
	if v, ok := t[key]; ok {
		return v
	}
	return -1
}

// String writes it as ZooKeeper does.
func (t StatsTrack) String() string {
	text := fmt.Sprintf("count=%d,bytes=%d", t.Get("count"), t.Get("bytes"))
	var more []string
	for key, v := range t {
		if key != "count" && key != "bytes" {
			more = append(more, fmt.Sprintf(";%s=%d", key, v))
		}
	}
	if len(more) > 0 {
		slices.Sort(more)
		text += "=" + strings.Join(more, "")
	}
	return text
}
