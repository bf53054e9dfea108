package groups

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"barnabas/internal/record"
	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// joinRequest is a consumer's.
func joinRequest(version int16, group, member string, session, rebalance int32, protocols ...string) *kmsg.JoinGroupRequest {
	r := kmsg.NewPtrJoinGroupRequest()
	r.Version, r.Group, r.MemberID, r.ProtocolType = version, group, member, "consumer"
	r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = session, rebalance
	metadata := kmsg.NewConsumerMemberMetadata()
	metadata.Topics = []string{"t"}
	for _, p := range protocols {
		r.Protocols = append(r.Protocols, kmsg.JoinGroupRequestProtocol{Name: p, Metadata: metadata.AppendTo(nil)})
	}
	return r
}

func syncRequest(group, member string, generation int32) *kmsg.SyncGroupRequest {
	r := kmsg.NewPtrSyncGroupRequest()
	r.Version, r.Group, r.MemberID, r.Generation = 3, group, member, generation
	r.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: member, MemberAssignment: []byte("all")}}
	return r
}

func heartbeat(c *raw.Conn, group, member string, generation int32) int16 {
	r := kmsg.NewPtrHeartbeatRequest()
	r.Version, r.Group, r.MemberID, r.Generation = 3, group, member, generation
	return raw.Do[*kmsg.HeartbeatResponse](c, r).ErrorCode
}

// TestCases has what people filed bugs about asked of one broker of each kind.
func TestCases(t *testing.T) {
	t.Parallel()
	raw.OnBoth(t, func(t *testing.T, addr string) {
		for name, ask := range map[string]func(t *testing.T, addr string){
			"bad joins": badJoins, "a pending member does not hold a rebalance": pendingMember, "a member that only heartbeats": onlyHeartbeats,
			"a leader that never syncs": neverSyncs, "a member whose connection has closed": closedConnection, "the bytes of commits": bytesOfCommits,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel() // they wait for timeouts
				ask(t, addr)
			})
		}
	}, "offsets.topic.num.partitions=50")
}

// badJoins is case 13 of public reports.
func badJoins(t *testing.T, addr string) {
	raw.Coordinated(t, addr, "g13")
	c := raw.Dial(t, addr)
	join := func(r *kmsg.JoinGroupRequest) *kmsg.JoinGroupResponse { return raw.Do[*kmsg.JoinGroupResponse](c, r) }
	want := func(what string, r *kmsg.JoinGroupResponse, code int16) {
		t.Helper()
		if r.ErrorCode != code {
			t.Errorf("%s: error %d, want %d", what, r.ErrorCode, code)
		}
	}
	first := join(joinRequest(4, "g13", "", 10000, 10000, "range"))
	want("v4 without an id", first, 79)
	if first.Generation != -1 || !strings.HasPrefix(first.MemberID, "raw-") || len(first.MemberID) != len("raw-")+36 {
		t.Errorf("v4 without an id: %+v", first)
	}
	second := join(joinRequest(4, "g13", first.MemberID, 10000, 10000, "range"))
	want("again with the id", second, 0)
	if second.Generation != 1 || second.LeaderID != first.MemberID || len(second.Members) != 1 {
		t.Errorf("again with the id: %+v", second)
	}
	third := join(joinRequest(3, "g13-old", "", 10000, 10000, "range"))
	want("v3 without an id", third, 0)
	want("session 1 ms", join(joinRequest(4, "g13", "", 1, 10000, "range")), 26)
	want("session 31 min", join(joinRequest(4, "g13", "", 31*60000, 10000, "range")), 26)
	want("unknown id", join(joinRequest(4, "g13", "nobody", 10000, 10000, "range")), 25)
	want("empty group", join(joinRequest(4, "", "", 10000, 10000, "range")), 24)
	want("no protocols", join(joinRequest(4, "g13", first.MemberID, 10000, 10000)), 23)
	connect := joinRequest(4, "g13", first.MemberID, 10000, 10000, "range")
	connect.ProtocolType = "connect"
	want("another protocol type", join(connect), 23)
	want("disjoint protocols", join(joinRequest(4, "g13", first.MemberID, 10000, 10000, "sticky")), 23)
}

// pendingMember: an id that was given out and never used does not hold up the
// first join of a group, and a rebalance until its session would have ended.
func pendingMember(t *testing.T, addr string) {
	raw.Coordinated(t, addr, "gp")
	c := raw.Dial(t, addr)
	join := func(r *kmsg.JoinGroupRequest) (*kmsg.JoinGroupResponse, time.Duration) {
		began := time.Now()
		answer := raw.Do[*kmsg.JoinGroupResponse](c, r)
		return answer, time.Since(began)
	}
	join(joinRequest(4, "gp", "", 60000, 60000, "range"))
	if a, took := join(joinRequest(3, "gp", "", 60000, 60000, "range")); a.ErrorCode != 0 || took > soon {
		t.Errorf("the first join of an empty group: error %d after %v", a.ErrorCode, took)
	}
	raw.Coordinated(t, addr, "gp2")
	a, _ := join(joinRequest(3, "gp2", "", 60000, 60000, "range"))
	join(joinRequest(4, "gp2", "", 6000, 60000, "range"))
	a, took := join(joinRequest(3, "gp2", a.MemberID, 60000, 60000, "range", "sticky"))
	if a.ErrorCode != 0 || took < 5*time.Second || took > soon {
		t.Errorf("joining beside a pending member: error %d after %v, want 6 s", a.ErrorCode, took)
	}
}

// soon is what an answer may take on a busy machine, and less than the
// timeout that it must not wait for.
const soon = 40 * time.Second

// stable makes a group with one member that is its leader.
func stable(t *testing.T, c *raw.Conn, group string) string {
	t.Helper()
	r := raw.Do[*kmsg.JoinGroupResponse](c, joinRequest(3, group, "", 60000, 4000, "range"))
	if r.ErrorCode != 0 || r.Generation != 1 {
		t.Fatalf("join: %+v", r)
	}
	if s := raw.Do[*kmsg.SyncGroupResponse](c, syncRequest(group, r.MemberID, 1)); s.ErrorCode != 0 || string(s.MemberAssignment) != "all" {
		t.Fatalf("sync: %+v", s)
	}
	return r.MemberID
}

// about tells whether d is 4 s, the rebalance timeout, and not 60, the session's.
func about(d time.Duration) bool { return d > 3500*time.Millisecond && d < soon }

// joinBeside has a second member join and returns its answer and how long that
// took; meanwhile the first only heartbeats, which ends with its last error.
func joinBeside(t *testing.T, addr, group string, beat func() int16) (answer *kmsg.JoinGroupResponse, took time.Duration, codes []int16) {
	t.Helper()
	b := raw.Dial(t, addr)
	began := time.Now()
	request := joinRequest(3, group, "", 60000, 4000, "range")
	id := b.Write(request)
	done := make(chan error, 1)
	go func() {
		r, err := b.Read(request, id, time.Minute)
		took = time.Since(began)
		if err == nil {
			answer = r.(*kmsg.JoinGroupResponse)
		}
		done <- err
	}()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return answer, took, append(codes, beat())
		case <-tick.C:
			codes = append(codes, beat())
		}
	}
}

// onlyHeartbeats, neverSyncs and closedConnection are case 14 of public reports:
// rebalances end.
func onlyHeartbeats(t *testing.T, addr string) {
	raw.Coordinated(t, addr, "g14a")
	c := raw.Dial(t, addr)
	a := stable(t, c, "g14a")
	b, took, codes := joinBeside(t, addr, "g14a", func() int16 { return heartbeat(c, "g14a", a, 1) })
	if b.ErrorCode != 0 || b.Generation != 2 || b.LeaderID != b.MemberID || len(b.Members) != 1 || !about(took) {
		t.Errorf("B: %+v after %v", b, took)
	}
	// The first ones may come before B, the last ones after it.
	if got := fmt.Sprint(slices.Compact(codes)); got != "[27 25]" && got != "[0 27 25]" {
		t.Errorf("heartbeats: %s", got)
	}
	r := commitRequest(6, "g14a", "t", 0, 1, "")
	r.MemberID, r.Generation = a, 1
	top := raw.NewTopic(t, addr, 1)
	r.Topics[0].Topic = top
	if code := commit(c, r); code != 25 {
		t.Errorf("A's commit: %d, want 25", code)
	}
}

func neverSyncs(t *testing.T, addr string) {
	raw.Coordinated(t, addr, "g14b")
	c := raw.Dial(t, addr)
	a := raw.Do[*kmsg.JoinGroupResponse](c, joinRequest(3, "g14b", "", 60000, 4000, "range"))
	began := time.Now()
	var code int16
	real.Until(t, soon, "the leader to be thrown out", func() bool {
		code = heartbeat(c, "g14b", a.MemberID, 1)
		return code != 0
	})
	if code != 25 || !about(time.Since(began)) {
		t.Errorf("heartbeat: %d after %v, want 25 after 4 s", code, time.Since(began))
	}
}

func closedConnection(t *testing.T, addr string) {
	raw.Coordinated(t, addr, "g14c")
	c := raw.Dial(t, addr)
	stable(t, c, "g14c")
	c.Close()
	other := raw.Dial(t, addr)
	b, took, _ := joinBeside(t, addr, "g14c", func() int16 { return 0 })
	if b.ErrorCode != 0 || b.Generation != 2 || !about(took) {
		t.Errorf("B: %+v after %v", b, took)
	}
	l := kmsg.NewPtrLeaveGroupRequest()
	l.Version, l.Group, l.MemberID = 1, "g14c", b.MemberID
	if r := raw.Do[*kmsg.LeaveGroupResponse](other, l); r.ErrorCode != 0 {
		t.Errorf("leave: %d", r.ErrorCode)
	}
	if g := describe(t, addr, "g14c"); g.State != "Empty" {
		t.Errorf("state %s", g.State)
	}
}

func commitRequest(version int16, group, topic string, partition int32, offset int64, metadata string) *kmsg.OffsetCommitRequest {
	r := kmsg.NewPtrOffsetCommitRequest()
	r.Version, r.Group, r.Generation, r.RetentionTimeMillis = version, group, -1, -1
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset, p.Timestamp, p.LeaderEpoch, p.Metadata = partition, offset, -1, -1, &metadata
	top := kmsg.NewOffsetCommitRequestTopic()
	top.Topic, top.Partitions = topic, append(top.Partitions, p)
	r.Topics = append(r.Topics, top)
	return r
}

func commit(c *raw.Conn, r *kmsg.OffsetCommitRequest) int16 {
	return raw.Do[*kmsg.OffsetCommitResponse](c, r).Topics[0].Partitions[0].ErrorCode
}

// bytesOfCommits is case 15 of public reports: monitoring tools parse the
// topic themselves.
func bytesOfCommits(t *testing.T, addr string) {
	raw.Coordinated(t, addr, "gr5")
	topic := raw.NewTopic(t, addr, 1)
	c := raw.Dial(t, addr)
	if code := commit(c, commitRequest(6, "gr5", topic, 0, 42, "md")); code != 0 {
		t.Fatalf("commit: %d", code)
	}
	kept := commitRequest(3, "gr5", topic, 0, 43, "md")
	kept.RetentionTimeMillis = 1000000
	if code := commit(c, kept); code != 0 {
		t.Fatalf("commit with a retention: %d", code)
	}
	d := kmsg.NewPtrDeleteGroupsRequest()
	d.Version, d.Groups = 1, []string{"gr5"}
	if r := raw.Do[*kmsg.DeleteGroupsResponse](c, d); r.Groups[0].ErrorCode != 0 {
		t.Fatalf("delete: %d", r.Groups[0].ErrorCode)
	}
	var got []string
	for _, r := range offsetsOf(t, c, 102570%50) {
		value := fmt.Sprintf("%x", r.Value)
		if len(r.Value) > 16 {
			value = value[:len(value)-16] // the time
		}
		if bytes.HasPrefix(r.Value, []byte{0, 1}) {
			value = value[:len(value)-16]
		}
		got = append(got, fmt.Sprintf("%x %s", r.Key, value))
	}
	key := fmt.Sprintf("0001000367723500%02x%x00000000", len(topic), topic)
	want := []string{key + " 0003000000000000002affffffff00026d64", key + " 0001000000000000002b00026d64", key + " "}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("records %v, want %v", got, want)
	}
}

// TestKafkasFormattersReadCommits has Kafka's own formatters print what is in
// the topic.
func TestKafkasFormattersReadCommits(t *testing.T) {
	t.Parallel()
	b := real.Barnabas(t, 1, "offsets.topic.num.partitions=1")
	raw.Coordinated(t, b.Addr, "gr5")
	topic := raw.NewTopic(t, b.Addr, 1)
	if code := commit(raw.Dial(t, b.Addr), commitRequest(6, "gr5", topic, 0, 42, "md")); code != 0 {
		t.Fatalf("commit: %d", code)
	}
	for version, class := range map[string]string{"2.8.2": "kafka.tools.ConsoleConsumer", "3.9.1": "org.apache.kafka.tools.consumer.ConsoleConsumer"} {
		out := real.Run(t, patience, real.Java(t, version, class, "--bootstrap-server", b.Addr, "--topic", "__consumer_offsets", "--from-beginning",
			"--max-messages", "1", "--formatter", "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter"))
		if want := "[gr5," + topic + ",0]::OffsetAndMetadata(offset=42, leaderEpoch=Optional.empty, metadata=md,"; !strings.Contains(out, want) {
			t.Errorf("%s prints\n%s\nwant %s", version, out, want)
		}
	}
}

// offsetsOf reads a partition of __consumer_offsets.
func offsetsOf(t *testing.T, c *raw.Conn, partition int32) (all []record.Record) {
	t.Helper()
	r := kmsg.NewPtrFetchRequest()
	r.Version, r.ReplicaID, r.MaxWaitMillis, r.MinBytes, r.MaxBytes, r.SessionEpoch = 11, -1, 500, 1, 50<<20, -1
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.PartitionMaxBytes, p.CurrentLeaderEpoch = partition, 50<<20, -1
	top := kmsg.NewFetchRequestTopic()
	top.Topic, top.Partitions = "__consumer_offsets", append(top.Partitions, p)
	r.Topics = append(r.Topics, top)
	answer := raw.Do[*kmsg.FetchResponse](c, r).Topics[0].Partitions[0]
	if answer.ErrorCode != 0 {
		t.Fatalf("fetch: %d", answer.ErrorCode)
	}
	err := record.Each(answer.RecordBatches, 0, func(_ record.Batch, r *record.Record) error {
		all = append(all, record.Record{Offset: r.Offset, Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value)})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
