package replica

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/record"
	"barnabas/internal/storage"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is broker 2, the leader of topic t: a log in memory that answers a
// follower's requests.
type scripted struct {
	t    *testing.T
	id   wire.UUID
	all  sync.WaitGroup
	mu   sync.Mutex
	cond *sync.Cond

	epoch    int32
	start    int64
	batches  []record.Batch
	hw       int64
	refuse   wire.Code // of every partition
	lose     bool      // forget the session once
	sessions int32
	members  map[int32]bool // of the session
	requests []*kmsg.FetchRequest
	epochs   int // OffsetForLeaderEpoch requests
	waiting  int
	conns    map[net.Conn]bool // open ones
}

func newScripted(t *testing.T) *scripted {
	s := &scripted{t: t, id: wire.NewUUID(), epoch: 1, conns: map[net.Conn]bool{}, members: map[int32]bool{}}
	s.cond = sync.NewCond(&s.mu)
	return s
}

// Dial connects to the leader (peer.Dialer).
func (s *scripted) Dial(context.Context, string) (net.Conn, error) {
	near, far := net.Pipe()
	s.mu.Lock()
	s.conns[far] = true
	s.mu.Unlock()
	s.all.Go(func() { s.serve(far) })
	return near, nil
}

func (s *scripted) close() {
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	s.cond.Broadcast()
	s.mu.Unlock()
	s.all.Wait()
}

func (s *scripted) serve(c net.Conn) {
	defer c.Close()
	frames := make(chan []byte, 1)
	s.all.Go(func() { // so that a follower that goes is noticed at once
		defer func() {
			s.change(func() { delete(s.conns, c) })
			close(frames)
		}()
		for {
			var size [4]byte
			if _, err := io.ReadFull(c, size[:]); err != nil {
				return
			}
			b := make([]byte, binary.BigEndian.Uint32(size[:]))
			if _, err := io.ReadFull(c, b); err != nil {
				return
			}
			frames <- b
		}
	})
	for b := range frames {
		r := wire.NewReader(b)
		h := wire.ReadHeader(&r)
		body := s.answer(h, r.Rest(), c)
		out := append(wire.AppendResponseHeader(make([]byte, 4), h), body...)
		binary.BigEndian.PutUint32(out, uint32(len(out)-4))
		_, _ = c.Write(out) // the follower may be gone
	}
}

func (s *scripted) answer(h wire.Header, body []byte, c net.Conn) []byte {
	request := kmsg.RequestForKey(h.Key)
	request.SetVersion(h.Version)
	if err := request.ReadFrom(body); err != nil {
		s.t.Errorf("%s v%d: %v", kmsg.NameForKey(h.Key), h.Version, err)
	}
	response := request.ResponseKind()
	response.SetVersion(h.Version)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r := request.(type) {
	case *kmsg.FetchRequest:
		s.fetchLocked(r, response.(*kmsg.FetchResponse), c)
	case *kmsg.OffsetForLeaderEpochRequest:
		s.epochs++
		answer := response.(*kmsg.OffsetForLeaderEpochResponse)
		for _, t := range r.Topics {
			to := kmsg.OffsetForLeaderEpochResponseTopic{Topic: t.Topic}
			for _, p := range t.Partitions {
				end := s.endOfLocked(p.LeaderEpoch)
				to.Partitions = append(to.Partitions, kmsg.OffsetForLeaderEpochResponseTopicPartition{Partition: p.Partition, LeaderEpoch: end.Epoch, EndOffset: end.EndOffset})
			}
			answer.Topics = append(answer.Topics, to)
		}
	case *kmsg.ListOffsetsRequest:
		offset := s.endLocked()
		if r.Topics[0].Partitions[0].Timestamp == earliestOffset {
			offset = s.start
		}
		answer := response.(*kmsg.ListOffsetsResponse)
		answer.Topics = []kmsg.ListOffsetsResponseTopic{{Topic: r.Topics[0].Topic, Partitions: []kmsg.ListOffsetsResponseTopicPartition{{Offset: offset, LeaderEpoch: s.epoch}}}}
	}
	return response.AppendTo(nil)
}

func (s *scripted) endLocked() int64 {
	if n := len(s.batches); n > 0 {
		return s.batches[n-1].NextOffset()
	}
	return s.start
}

// endOfLocked is where an epoch ends, as a leader tells it.
func (s *scripted) endOfLocked(epoch int32) storage.EpochEnd {
	end := storage.EpochEnd{Epoch: -1, EndOffset: -1}
	for _, b := range s.batches {
		switch {
		case b.LeaderEpoch() <= epoch:
			end = storage.EpochEnd{Epoch: b.LeaderEpoch(), EndOffset: b.NextOffset()}
		case end.EndOffset < 0:
			return storage.EpochEnd{Epoch: epoch, EndOffset: b.BaseOffset()}
		}
	}
	return end
}

func (s *scripted) fetchLocked(r *kmsg.FetchRequest, answer *kmsg.FetchResponse, c net.Conn) {
	s.requests = append(s.requests, r)
	s.cond.Broadcast()
	switch {
	case r.SessionEpoch == 0:
		s.sessions++
		s.members = map[int32]bool{}
	case s.lose || r.SessionID != s.sessions:
		s.lose = false
		answer.ErrorCode = int16(wire.FetchSessionIDNotFound)
		return
	}
	answer.SessionID = s.sessions
	offsets := map[int32]kmsg.FetchRequestTopicPartition{}
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			offsets[p.Partition], s.members[p.Partition] = p, true
		}
	}
	for _, t := range r.ForgottenTopics {
		for _, p := range t.Partitions {
			delete(s.members, p)
		}
	}
	over := false
	timer := time.AfterFunc(time.Duration(r.MaxWaitMillis)*time.Millisecond, func() { s.change(func() { over = true }) })
	defer timer.Stop()
	s.waiting++
	for reason := s.reasonLocked(); !over && s.conns[c] && reason == s.reasonLocked() && !s.somethingLocked(offsets); {
		s.cond.Broadcast()
		s.cond.Wait()
	}
	s.waiting--
	to := kmsg.FetchResponseTopic{Topic: "t", TopicID: s.id}
	for index, p := range offsets {
		to.Partitions = append(to.Partitions, s.partitionLocked(index, &p))
	}
	answer.Topics = append(answer.Topics, to)
}

// reasonLocked changes when there is a reason to answer.
func (s *scripted) reasonLocked() string {
	return fmt.Sprint(s.endLocked(), s.hw, s.start, s.epoch, s.refuse, s.lose)
}

func (s *scripted) somethingLocked(offsets map[int32]kmsg.FetchRequestTopicPartition) bool {
	for index, p := range offsets {
		d := s.partitionLocked(index, &p)
		if d.ErrorCode != 0 || len(d.RecordBatches) > 0 || d.DivergingEpoch.EndOffset >= 0 {
			return true
		}
	}
	return false
}

func (s *scripted) partitionLocked(index int32, p *kmsg.FetchRequestTopicPartition) kmsg.FetchResponseTopicPartition {
	d := kmsg.NewFetchResponseTopicPartition()
	d.Partition, d.HighWatermark, d.LastStableOffset, d.LogStartOffset = index, s.hw, s.hw, s.start
	switch {
	case s.refuse != wire.None:
		d.ErrorCode = int16(s.refuse)
		return d
	case p.CurrentLeaderEpoch < s.epoch:
		d.ErrorCode = int16(wire.FencedLeaderEpoch)
		return d
	case p.CurrentLeaderEpoch > s.epoch:
		d.ErrorCode = int16(wire.UnknownLeaderEpoch)
		return d
	}
	if p.LastFetchedEpoch >= 0 {
		if end := s.endOfLocked(p.LastFetchedEpoch); end.Epoch < p.LastFetchedEpoch || end.EndOffset < p.FetchOffset {
			d.DivergingEpoch.Epoch, d.DivergingEpoch.EndOffset = end.Epoch, end.EndOffset
			return d
		}
	}
	if p.FetchOffset < s.start || p.FetchOffset > s.endLocked() {
		d.ErrorCode = int16(wire.OffsetOutOfRange)
		return d
	}
	for _, b := range s.batches {
		if b.NextOffset() > p.FetchOffset {
			d.RecordBatches = append(d.RecordBatches, b...)
		}
	}
	return d
}

// append puts records of an epoch at the end of the leader's log.
func (s *scripted) append(epoch int32, values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, batch(s.t, s.endLocked(), epoch, values...))
	s.hw = s.endLocked()
	s.cond.Broadcast()
}

func batch(t *testing.T, base int64, epoch int32, values ...string) record.Batch {
	t.Helper()
	b := record.NewBuilder(record.BatchOptions{})
	for _, v := range values {
		b.Append(1, nil, []byte(v))
	}
	made, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	record.AssignOffsets(made, base, epoch)
	return made
}

// untilFetches waits until the leader has had a fetch that ok accepts.
func (s *scripted) untilFetches(ok func(r *kmsg.FetchRequest) bool) *kmsg.FetchRequest {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	expired := false
	timer := time.AfterFunc(20*time.Second, func() { s.mu.Lock(); expired = true; s.cond.Broadcast(); s.mu.Unlock() })
	defer timer.Stop()
	for seen := 0; ; {
		for ; seen < len(s.requests); seen++ {
			if ok(s.requests[seen]) {
				return s.requests[seen]
			}
		}
		if expired {
			s.t.Fatal("the fetch that was waited for never came")
		}
		s.cond.Wait()
	}
}

// change alters the leader.
func (s *scripted) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	s.cond.Broadcast()
}

// following is broker 1 with partitions of t that s leads.
func following(t *testing.T, s *scripted, ibp config.IBP, properties ...string) *Manager {
	t.Helper()
	dir := t.TempDir()
	set := map[string]string{"broker.id": "1", "log.dirs": dir, "zookeeper.connect": "unused:1", "replica.fetch.backoff.ms": "50"}
	for i := 0; i < len(properties); i += 2 {
		set[properties[i]] = properties[i+1]
	}
	c, err := config.NewBroker(set)
	if err != nil {
		t.Fatal(err)
	}
	st, err := storage.Open(storage.Options{Dirs: []string{dir}, Config: c, BrokerID: 1, ClusterID: "c"})
	if err != nil {
		t.Fatal(err)
	}
	m := NewManager(Options{BrokerID: 1, Storage: st, Cluster: &Cluster{
		IBP: ibp, Config: config.NewDynamic(c), Dialer: s, ClientID: "f",
		Address: func(int32) (string, bool) { return "leader:1", true },
	}})
	t.Cleanup(func() {
		m.Close()
		s.close()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func (s *scripted) lead(m *Manager, partitions ...int32) {
	s.t.Helper()
	s.mu.Lock()
	epoch := s.epoch
	s.mu.Unlock()
	r := kmsg.NewPtrLeaderAndISRRequest()
	r.Version, r.BrokerEpoch = 7, -1
	ts := kmsg.LeaderAndISRRequestTopicState{Topic: "t", TopicID: s.id}
	for _, p := range partitions {
		ts.PartitionStates = append(ts.PartitionStates, state(p, 2, epoch, 2, 1))
	}
	r.TopicStates = append(r.TopicStates, ts)
	for _, p := range m.ApplyLeaderAndISR(r).Topics[0].Partitions {
		if p.ErrorCode != 0 {
			s.t.Fatalf("partition %d: %v", p.Partition, wire.Code(p.ErrorCode))
		}
	}
}

// untilCopied waits until the follower has the leader's bytes and high watermark.
func (s *scripted) untilCopied(m *Manager, partition int32) {
	s.t.Helper()
	s.mu.Lock()
	var want []byte
	for _, b := range s.batches {
		want = append(want, b...)
	}
	end, hw := s.endLocked(), s.hw
	s.mu.Unlock()
	p := m.Partition(wire.TopicPartition{Topic: "t", Partition: partition})
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for p.Log().EndOffset() != end || p.HighWatermark() != hw {
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.t.Fatalf("end %d, want %d; high watermark %d, want %d", p.Log().EndOffset(), end, p.HighWatermark(), hw)
		}
	}
	slice, err := p.Log().Read(p.Log().StartOffset(), 1<<20, end, true)
	if err != nil {
		s.t.Fatal(err)
	}
	defer slice.Release()
	got := make([]byte, slice.Len)
	if _, err := slice.ReadAt(got, 0); err != nil && err != io.EOF {
		s.t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		s.t.Errorf("%d bytes, not those %d of the leader", len(got), len(want))
	}
}

var ibps = []config.IBP{config.V2_4IV0, config.V2_7IV0, config.V2_7IV1, config.V2_8IV1, config.V3_1IV0, config.LatestIBP}

func TestFollowerCopiesAndFollowsTheHighWatermark(t *testing.T) {
	for _, ibp := range ibps {
		t.Run(ibp.String(), func(t *testing.T) {
			s := newScripted(t)
			m := following(t, s, ibp)
			s.append(1, "a", "b")
			s.append(1, "c")
			s.lead(m, 0)
			s.untilCopied(m, 0)
			for i := range 20 {
				s.append(1, fmt.Sprint("more ", i))
			}
			s.untilCopied(m, 0)
			if r := s.untilFetches(func(*kmsg.FetchRequest) bool { return true }); r.Version != ibp.Fetch() {
				t.Errorf("Fetch v%d, want v%d", r.Version, ibp.Fetch())
			}
		})
	}
}

func TestFollowerDropsWhatTheNewLeaderDoesNotHave(t *testing.T) {
	for _, ibp := range ibps {
		t.Run(ibp.String(), func(t *testing.T) {
			s := newScripted(t)
			m := following(t, s, ibp)
			s.append(1, "a", "b")
			s.append(1, "lost", "lost too")
			s.lead(m, 0)
			s.untilCopied(m, 0)
			// Another leader of epoch 3 had only the first batch, and went on.
			s.change(func() { s.batches, s.epoch = s.batches[:1], 3 })
			s.append(3, "c")
			s.append(3, "d", "e")
			s.lead(m, 0)
			s.untilCopied(m, 0)
			if epoch := m.Partition(wire.TopicPartition{Topic: "t"}).Log().LatestEpoch(); epoch != 3 {
				t.Errorf("latest epoch %d", epoch)
			}
			var asked bool
			s.change(func() { asked = s.epochs > 0 })
			if asked != (ibp < config.V2_7IV1) {
				t.Errorf("OffsetForLeaderEpoch was asked: %v", asked)
			}
		})
	}
}

func TestFollowerForgetsAnEpochThatItLedWithoutRecords(t *testing.T) {
	for _, ibp := range ibps {
		t.Run(ibp.String(), func(t *testing.T) {
			s := newScripted(t)
			m := following(t, s, ibp)
			s.append(1, "a", "b")
			s.lead(m, 0)
			s.untilCopied(m, 0)
			r := kmsg.NewPtrLeaderAndISRRequest()
			r.Version, r.BrokerEpoch = 7, -1
			r.TopicStates = []kmsg.LeaderAndISRRequestTopicState{{Topic: "t", TopicID: s.id,
				PartitionStates: []kmsg.LeaderAndISRRequestTopicPartition{state(0, 1, 2, 1, 2)}}}
			m.ApplyLeaderAndISR(r)
			s.change(func() { s.epoch = 3 })
			s.append(3, "c") // the log of epoch 2 is nowhere
			s.lead(m, 0)
			s.untilCopied(m, 0)
		})
	}
}

func TestFollowerBeginsAnewWhereTheLeaderBegins(t *testing.T) {
	s := newScripted(t)
	m := following(t, s, config.LatestIBP)
	s.append(1, "a")
	s.lead(m, 0)
	s.untilCopied(m, 0)
	s.change(func() { s.start, s.batches, s.epoch = 100, nil, 2 })
	s.append(2, "b")
	s.lead(m, 0)
	s.untilCopied(m, 0)
	if start := m.Partition(wire.TopicPartition{Topic: "t"}).Log().StartOffset(); start != 100 {
		t.Errorf("start %d, want 100", start)
	}
}

func TestFollowerRaisesItsStartWithTheLeaders(t *testing.T) {
	s := newScripted(t)
	m := following(t, s, config.LatestIBP)
	s.append(1, "a")
	s.append(1, "b")
	s.lead(m, 0)
	s.untilCopied(m, 0)
	s.change(func() { s.start = 1 })
	s.append(1, "c")
	s.untilFetches(func(r *kmsg.FetchRequest) bool {
		return len(r.Topics) > 0 && r.Topics[0].Partitions[0].LogStartOffset == 1
	})
}

func TestSessionNamesOnlyWhatChanged(t *testing.T) {
	s := newScripted(t)
	m := following(t, s, config.LatestIBP)
	s.append(1, "a")
	s.lead(m, 0, 1, 2)
	for p := range int32(3) {
		s.untilCopied(m, p)
	}
	if r := s.untilFetches(func(r *kmsg.FetchRequest) bool { return r.SessionEpoch > 0 }); len(r.Topics) > 0 && len(r.Topics[0].Partitions) > 3 {
		t.Errorf("%d partitions", len(r.Topics[0].Partitions))
	}
	stop := kmsg.NewPtrStopReplicaRequest()
	stop.Version, stop.BrokerEpoch = 3, -1
	stop.Topics = []kmsg.StopReplicaRequestTopic{{Topic: "t", PartitionStates: []kmsg.StopReplicaRequestTopicPartitionState{{Partition: 1, LeaderEpoch: 1}}}}
	m.StopReplica(stop)
	s.change(func() { s.hw = 0 }) // a reason to answer
	r := s.untilFetches(func(r *kmsg.FetchRequest) bool { return len(r.ForgottenTopics) > 0 })
	if f := r.ForgottenTopics[0]; f.TopicID != s.id || fmt.Sprint(f.Partitions) != "[1]" {
		t.Errorf("forgotten %v", f)
	}
	before := map[*kmsg.FetchRequest]bool{}
	s.change(func() {
		s.lose = true
		for _, r := range s.requests {
			before[r] = true
		}
	})
	r = s.untilFetches(func(r *kmsg.FetchRequest) bool { return r.SessionEpoch == 0 && !before[r] })
	if n := len(r.Topics[0].Partitions); n != 2 || r.SessionID != 0 {
		t.Errorf("a new session of %d partitions, after session %d", n, r.SessionID)
	}
}

func TestNewPartitionDoesNotWaitForTheFetchUnderWay(t *testing.T) {
	s := newScripted(t)
	m := following(t, s, config.LatestIBP, "replica.fetch.wait.max.ms", "29000")
	s.append(1, "a")
	s.lead(m, 0)
	s.untilCopied(m, 0)
	s.change(func() { // until the leader holds a fetch that nothing will end
		for s.waiting == 0 {
			s.cond.Wait()
		}
	})
	s.lead(m, 1)
	s.untilCopied(m, 1)
}

func TestFencedFollowerWaitsForTheController(t *testing.T) {
	s := newScripted(t)
	m := following(t, s, config.LatestIBP)
	s.append(1, "a")
	s.lead(m, 0)
	s.untilCopied(m, 0)
	s.change(func() { s.epoch = 2 })
	s.append(2, "b")
	p := m.Partition(wire.TopicPartition{Topic: "t"})
	s.lead(m, 0)
	s.untilCopied(m, 0)
	if v := p.View(); v.LeaderEpoch != 2 {
		t.Errorf("epoch %d", v.LeaderEpoch)
	}
}

func TestRefusedPartitionIsFetchedAgain(t *testing.T) {
	for _, code := range []wire.Code{wire.NotLeaderOrFollower, wire.UnknownTopicOrPartition, wire.UnknownTopicID, wire.KafkaStorageError, wire.UnknownServerError} {
		t.Run(code.String(), func(t *testing.T) {
			s := newScripted(t)
			s.refuse = code
			m := following(t, s, config.LatestIBP)
			s.append(1, "a")
			s.lead(m, 0)
			s.untilFetches(func(r *kmsg.FetchRequest) bool { return r.SessionEpoch > 0 })
			s.change(func() { s.refuse = wire.None })
			s.untilCopied(m, 0)
		})
	}
}
