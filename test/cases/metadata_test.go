package cases

import (
	"errors"
	"testing"
	"time"

	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func metadata(version int16, names []string, null bool) *kmsg.MetadataRequest {
	r := kmsg.NewPtrMetadataRequest()
	r.Version = version
	if !null {
		r.Topics = []kmsg.MetadataRequestTopic{}
	}
	for i := range names {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &names[i]
		r.Topics = append(r.Topics, topic)
	}
	r.AllowAutoTopicCreation = true
	return r
}

// TestMetadataNullEmptyUnknown is case 2.
func TestMetadataNullEmptyUnknown(t *testing.T) {
	onBoth(t, func(t *testing.T, to target) {
		name, _ := newTopic(t, to)
		c := raw.Dial(t, to.addr)
		has := func(answer *kmsg.MetadataResponse) bool {
			for _, topic := range answer.Topics {
				if *topic.Topic == name {
					return true
				}
			}
			return false
		}
		if answer := raw.Do[*kmsg.MetadataResponse](c, metadata(0, nil, false)); !has(answer) {
			t.Error("v0 []: not all topics")
		}
		if answer := raw.Do[*kmsg.MetadataResponse](c, metadata(1, nil, false)); len(answer.Topics) != 0 {
			t.Errorf("v1 []: %d topics, want none", len(answer.Topics))
		}
		if answer := raw.Do[*kmsg.MetadataResponse](c, metadata(1, nil, true)); !has(answer) {
			t.Error("v1 null: not all topics")
		}
		// v0 has no null: the connection closes.
		null := raw.Dial(t, to.addr)
		null.Send([]byte{0, 0, 0, 14, 0, 3, 0, 0, 0, 0, 0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff})
		if _, err := null.Frame(10 * time.Second); !errors.Is(err, raw.ErrClosed) {
			t.Errorf("v0 null: %v, want it closed", err)
		}
		forbidden := metadata(4, []string{"never-made"}, false)
		forbidden.AllowAutoTopicCreation = false
		answer := raw.Do[*kmsg.MetadataResponse](c, forbidden)
		if got := answer.Topics[0]; got.ErrorCode != 3 || len(got.Partitions) != 0 {
			t.Errorf("v4 unknown without creation: error %d, %d partitions", got.ErrorCode, len(got.Partitions))
		}
		if answer := raw.Do[*kmsg.MetadataResponse](c, forbidden); answer.Topics[0].ErrorCode != 3 {
			t.Error("it was created after all")
		}
		first := raw.Do[*kmsg.MetadataResponse](c, metadata(1, []string{"makes-itself"}, false)).Topics[0]
		if first.ErrorCode != 5 {
			t.Errorf("v1 unknown: error %d at first, want 5", first.ErrorCode)
		}
		real.Until(t, 20*time.Second, "the topic that made itself has a leader", func() bool {
			got := raw.Do[*kmsg.MetadataResponse](c, metadata(1, []string{"makes-itself"}, false)).Topics[0]
			return got.ErrorCode == 0 && got.Partitions[0].Leader == 1
		})
		if got := raw.Do[*kmsg.MetadataResponse](c, metadata(1, []string{"bad name!"}, false)).Topics[0]; got.ErrorCode != 17 {
			t.Errorf("bad name: error %d, want 17", got.ErrorCode)
		}
	})
}

func createRequest(name string, configs ...kmsg.CreateTopicsRequestTopicConfig) *kmsg.CreateTopicsRequest {
	r := kmsg.NewPtrCreateTopicsRequest()
	r.Version = 7
	r.TimeoutMillis = 10000
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, -1, -1
	topic.Configs = configs
	r.Topics = append(r.Topics, topic)
	return r
}

// TestTopicNames: what a name may be, by the answer of CreateTopics.
func TestTopicNames(t *testing.T) {
	onBoth(t, func(t *testing.T, to target) {
		c := raw.Dial(t, to.addr)
		long := make([]byte, 250)
		for i := range long {
			long[i] = 'x'
		}
		for _, try := range []struct {
			name string
			code int16
		}{
			{"a/b", 17}, {"..", 17}, {".", 17}, {"", 17}, {string(long), 17}, {string(long[:249]), 0}, {"with space", 17},
			{"one.two", 0}, {"one_two", 17}, {"one.two", 36}, {"ünïcode", 17},
		} {
			got := raw.Do[*kmsg.CreateTopicsResponse](c, createRequest(try.name)).Topics[0]
			if got.ErrorCode != try.code {
				t.Errorf("%.20q: error %d, want %d", try.name, got.ErrorCode, try.code)
			}
			if try.code == 17 && (got.ErrorMessage == nil || *got.ErrorMessage == "") {
				t.Errorf("%.20q: refused without a reason", try.name)
			}
		}
	})
}
