package group

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"barnabas/internal/coordinator"
	"barnabas/internal/record"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var versions = []string{"2.8.2", "3.9.1"}

// eachFixture calls f for each record that a Kafka release wrote.
func eachFixture(t *testing.T, version string, f func(b record.Batch, r *record.Record)) {
	t.Helper()
	set, err := os.ReadFile("testdata/kafka-" + version + ".log")
	if err != nil {
		t.Fatal(err)
	}
	if err := record.Each(set, 0, func(b record.Batch, r *record.Record) error { f(b, r); return nil }); err != nil {
		t.Fatal(err)
	}
}

func testConfig() Config {
	n := 0
	return Config{
		MinSession: 6 * time.Second, MaxSession: 30 * time.Minute, InitialDelay: 3 * time.Second, MaxSize: 1 << 30, MaxMetadata: 4096,
		Retention: 7 * 24 * time.Hour, CheckInterval: 10 * time.Minute, MaxRecord: 1 << 20,
		ConsumerSession: 45 * time.Second, ConsumerHeartbeat: 5 * time.Second, ConsumerMaxSize: 1 << 30,
		NewID: func() string { n++; return fmt.Sprint(n) },
	}
}

func loadFixture(t *testing.T, version string) *Machine {
	m := New(testConfig())
	eachFixture(t, version, func(b record.Batch, r *record.Record) {
		if b.Control() {
			m.End(coordinator.Marker{Producer: coordinator.Producer{ID: b.ProducerID()}, Commit: r.Key[3] == 1}, r.Offset)
			return
		}
		e := coordinator.Entry{Position: r.Offset, Record: coordinator.Record{Key: r.Key, Value: r.Value}}
		e.Transactional, e.Producer.ID = b.Transactional(), b.ProducerID()
		if err := m.Replay(e); err != nil {
			t.Errorf("offset %d: %v", r.Offset, err)
		}
	})
	var out coordinator.Effects
	m.Loaded(time.UnixMilli(1796028700000), &out)
	return m
}

// The bytes of every record are those that Kafka wrote for the same content.
func TestRecordsAreKafkas(t *testing.T) {
	for _, version := range versions {
		kinds := map[string]int{}
		eachFixture(t, version, func(b record.Batch, r *record.Record) {
			if b.Control() {
				return
			}
			k, err := decodeKey(r.Key)
			if err != nil {
				t.Fatal(err)
			}
			again := groupKey(k.group)
			if k.offset {
				again = offsetKey(k.group, k.topic, k.index)
			}
			if !bytes.Equal(again, r.Key) {
				t.Errorf("%s: key %x, ours %x", version, r.Key, again)
			}
			switch {
			case r.Value == nil:
				kinds["tombstone"]++
			case k.offset:
				kinds["offset"]++
				o, err := decodeOffset(r.Value)
				if err != nil || !bytes.Equal(offsetValue(&o), r.Value) {
					t.Errorf("%s: offset %x, ours %x, %v", version, r.Value, offsetValue(&o), err)
				}
			default:
				kinds["group"]++
				m := New(testConfig())
				if err := m.Replay(coordinator.Entry{Record: coordinator.Record{Key: r.Key, Value: r.Value}}); err != nil {
					t.Fatal(err)
				}
				g := m.groups[k.group]
				if again := groupValue(g, g.stateTime, nil); !bytes.Equal(again, r.Value) {
					t.Errorf("%s: group %x\nours %x", version, r.Value, again)
				}
			}
		})
		if kinds["tombstone"] == 0 || kinds["offset"] == 0 || kinds["group"] == 0 {
			t.Errorf("%s: the fixture has too little: %v", version, kinds)
		}
	}
}

func TestKafkasLogIsLoaded(t *testing.T) {
	for _, version := range versions {
		m := loadFixture(t, version)
		var got []string
		for id, g := range m.groups {
			line := fmt.Sprintf("%s %v type=%s generation=%d protocol=%s members=%d", id, g.state, g.protocolType, g.generation, g.protocol, len(g.members))
			for _, member := range g.order {
				line += fmt.Sprintf(" [%s %s %s session=%d rebalance=%d]", *member.instance, member.clientID, member.host, member.sessionTimeout, member.rebalanceTimeout)
				var a kmsg.ConsumerMemberAssignment
				if err := a.ReadFrom(member.assignment); err != nil || len(a.Topics) != 1 || len(a.Topics[0].Partitions) != 3 {
					t.Errorf("assignment %x: %+v, %v", member.assignment, a, err)
				}
			}
			for _, topic := range g.topicsWithOffsets() {
				for _, p := range topic.Partitions {
					o, _ := g.offset(topic.Topic, p)
					line += fmt.Sprintf(" %s-%d=%d%q", topic.Topic, p, o.offset, o.metadata)
				}
			}
			got = append(got, line)
		}
		slices.Sort(got)
		want := []string{
			`dynamic Empty type=consumer generation=2 protocol= members=0 words-0=10"" words-1=10"" words-2=10""`,
			`gr5 Empty type= generation=0 protocol= members=0 words-0=42"md\x00"`,
			`java Empty type=consumer generation=2 protocol= members=0 words-0=10"" words-1=10"" words-2=10""`,
			`static Stable type=consumer generation=1 protocol=range members=1 [one fixture /127.0.0.1 session=45000 rebalance=300000] words-0=10"" words-1=10"" words-2=10""`,
			`txgroup Empty type= generation=0 protocol= members=0 words-1=7""`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", version, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if len(m.producers) != 0 {
			t.Errorf("%s: transactions still open: %v", version, m.producers)
		}
	}
}

// Case 15 of public reports: what monitoring tools parse.
func TestBytesOfACommit(t *testing.T) {
	if got, want := fmt.Sprintf("%x", offsetKey("gr5", "fs", 0)), "00010003677235000266"+"7300000000"; got != want {
		t.Errorf("key %s, want %s", got, want)
	}
	o := offset{offset: 42, leaderEpoch: -1, metadata: "md", commitTime: 1 << 40, expireTime: -1}
	if got, want := fmt.Sprintf("%x", offsetValue(&o)), "0003000000000000002affffffff00026d640000010000000000"; got != want {
		t.Errorf("value %s, want %s", got, want)
	}
	o.expireTime = 1 << 41
	if got, want := fmt.Sprintf("%x", offsetValue(&o)), "0001000000000000002a00026d6400000100000000000000020000000000"; got != want {
		t.Errorf("value with a retention %s, want %s", got, want)
	}
}

// kmsg's schemas were written by others.
func TestOlderAndNewerValuesAreRead(t *testing.T) {
	for v := int16(0); v <= 4; v++ {
		if v != 4 {
			value := kmsg.OffsetCommitValue{Version: v, Offset: 5, LeaderEpoch: 3, Metadata: "m", CommitTimestamp: 7, ExpireTimestamp: 9}
			o, err := decodeOffset(value.AppendTo(nil))
			want := offset{offset: 5, leaderEpoch: -1, metadata: "m", commitTime: 7, expireTime: -1}
			if v == 1 {
				want.expireTime = 9
			}
			if v >= 3 {
				want.leaderEpoch = 3
			}
			if err != nil || o != want {
				t.Errorf("offset v%d: %+v, %v", v, o, err)
			}
		}
		protocol, leader, instance := "range", "a", "i"
		g := kmsg.GroupMetadataValue{Version: v, ProtocolType: "consumer", Generation: 4, Protocol: &protocol, Leader: &leader, CurrentStateTimestamp: 8,
			Members: []kmsg.GroupMetadataValueMember{{MemberID: "a", InstanceID: &instance, ClientID: "c", ClientHost: "/h",
				RebalanceTimeoutMillis: 2, SessionTimeoutMillis: 1, Subscription: []byte("s"), Assignment: []byte("t")}}}
		if v == 4 {
			continue // kmsg has no flexible one
		}
		s, err := decodeGroup(g.AppendTo(nil))
		if err != nil || s.generation != 4 || s.leader != "a" || len(s.members) != 1 || string(s.members[0].assignment) != "t" || (s.stateTime == 8) != (v >= 2) {
			t.Errorf("group v%d: %+v, %v", v, s, err)
		}
	}
	for _, key := range []string{"", "\x00", "\x00\x09\x00\x01g", "\x00\x01\x00\x09g", "\xff\xff", "\x00\x02\x00"} {
		if _, err := decodeKey([]byte(key)); err == nil {
			t.Errorf("key %x was taken", key)
		}
	}
}
