package replica

import (
	"sync"
	"sync/atomic"

	"barnabas/internal/storage"
	"barnabas/internal/wire"
)

// Role is what this broker is to a partition.
type Role int8

// The roles.
const (
	Idle     Role = iota // hosted, but no LeaderAndIsr has been applied yet
	Leader               // serves clients
	Follower             // copies from the leader
	Offline              // its log directory failed
	Gone                 // deleted; whoever holds it looks it up again
)

// View is what a partition is, as of one moment. It never changes.
type View struct {
	Role            Role
	LeaderID        int32 // -1: none
	LeaderEpoch     int32 // -1: none yet
	PartitionEpoch  int32 // the version of the state znode
	ControllerEpoch int32 // of the controller that last changed it
	EpochStart      int64 // the end of the log when this leader's epoch began
	LeaderSince     int32 // the epoch in which this broker became the leader; later ones may have followed
	Replicas, ISR   []int32
	Adding          []int32
	Removing        []int32

	solo bool // nobody else replicates it: the high watermark is the end
}

// refusal is the answer to clients of a partition that is not led here.
func (v *View) refusal() wire.Code {
	switch v.Role {
	case Offline:
		return wire.KafkaStorageError
	case Gone:
		return wire.UnknownTopicOrPartition
	default:
		return wire.NotLeaderOrFollower
	}
}

// Partition is a partition of which this broker has a replica. Its methods may
// be called from any goroutine.
type Partition struct {
	wire.TopicPartition
	Index int32 // TopicPartition.Partition by a shorter name

	m    *Manager
	log  *storage.Log // nil while its directory is offline from the start
	view atomic.Pointer[View]
	hw   atomic.Int64
	role sync.RWMutex // shared: an append; exclusive: a change of role

	mu struct {
		sync.Mutex
		isr    isrState   // in force while the role is Leader
		change *isrChange // the change of the ISR that was asked for; nil: none
	}
	acks struct {
		sync.Mutex
		waits []ackWait
		n     atomic.Int32 // len(waits), readable without the lock
	}
	subs struct {
		sync.Mutex
		first *Subscription
		n     atomic.Int32
	}
}

func newPartition(m *Manager, tp wire.TopicPartition, log *storage.Log) *Partition {
	p := &Partition{TopicPartition: tp, Index: tp.Partition, m: m, log: log}
	if m.cluster != nil {
		p.mu.isr.alive = m.cluster.Alive
	}
	p.view.Store(&View{LeaderID: -1, LeaderEpoch: -1, PartitionEpoch: -1, ControllerEpoch: -1, EpochStart: -1})
	return p
}

// View returns what the partition is now.
func (p *Partition) View() *View { return p.view.Load() }

// Log returns the partition's log, nil when it is offline.
func (p *Partition) Log() *storage.Log { return p.log }

// HighWatermark returns the offset below which records are replicated and may
// be read. Only a leader's moves.
func (p *Partition) HighWatermark() int64 { return p.hw.Load() }

// LastStableOffset returns the offset below which all transactions are decided,
// at most the high watermark.
func (p *Partition) LastStableOffset() int64 {
	return min(p.log.LastStableOffset(), p.hw.Load())
}

// Leading returns the log if this broker leads the partition in the epoch that
// the client names (-1: any): else FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH,
// NOT_LEADER_OR_FOLLOWER or KAFKA_STORAGE_ERROR, in Kafka's order of checks.
func (p *Partition) Leading(epoch int32) (*storage.Log, wire.Code) {
	v := p.view.Load()
	if v.Role == Offline || v.Role == Gone {
		return nil, v.refusal()
	}
	if epoch >= 0 && epoch != v.LeaderEpoch {
		if epoch < v.LeaderEpoch {
			return nil, wire.FencedLeaderEpoch
		}
		return nil, wire.UnknownLeaderEpoch
	}
	if v.Role != Leader {
		return nil, v.refusal()
	}
	return p.log, wire.None
}

// Serving is Leading for consumers that read from any replica (KIP-392): a
// follower serves what it has below its high watermark.
func (p *Partition) Serving(epoch int32) (*storage.Log, wire.Code) {
	log, code := p.Leading(epoch)
	if code == wire.NotLeaderOrFollower && p.view.Load().Role == Follower {
		return p.log, wire.None
	}
	return log, code
}

// Append writes a validated set as the leader and moves the high watermark as
// far as the ISR allows. all asks for the ISR to be large enough (acks=all);
// NOT_ENOUGH_REPLICAS if it is not. Records are in the page cache when it
// returns. The error is a wire.Code or one of storage's (see storage.Code).
func (p *Partition) Append(req storage.AppendRequest, all bool) (storage.AppendInfo, error) {
	return p.appendAndAdvance(req, all, -1)
}

// AppendSince is Append with acks=all for what was decided by what the log held
// under a run of leadership: if this broker has not led the partition ever since
// that epoch, it is NOT_LEADER_OR_FOLLOWER.
func (p *Partition) AppendSince(epoch int32, req storage.AppendRequest) (storage.AppendInfo, error) {
	return p.appendAndAdvance(req, true, epoch)
}

func (p *Partition) appendAndAdvance(req storage.AppendRequest, all bool, since int32) (storage.AppendInfo, error) {
	info, err := p.append(req, all, since)
	if err != nil {
		return info, err
	}
	p.advance(info.LastOffset+1, len(req.Records))
	return info, nil
}

func (p *Partition) append(req storage.AppendRequest, all bool, since int32) (storage.AppendInfo, error) {
	p.role.RLock()
	defer p.role.RUnlock()
	v := p.view.Load()
	if v.Role != Leader || since >= 0 && v.LeaderSince != since {
		return storage.AppendInfo{FirstOffset: -1, LogAppendTime: -1, LogStartOffset: -1}, v.refusal()
	}
	if !v.solo {
		end := p.log.EndOffset()
		p.mu.Lock()
		refused := p.underMinLocked() && all
		if !refused {
			p.mu.isr.appending(end)
		}
		p.mu.Unlock()
		if refused {
			return storage.AppendInfo{FirstOffset: -1, LogAppendTime: -1, LogStartOffset: -1}, wire.NotEnoughReplicas
		}
	}
	req.LeaderEpoch = v.LeaderEpoch
	return p.log.Append(req)
}

func (p *Partition) underMin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.underMinLocked()
}

func (p *Partition) underMinLocked() bool {
	p.mu.isr.min = p.log.Config().MinInsyncReplicas
	return p.mu.isr.underMin()
}

// advance moves a leader's high watermark after the log has grown to leo by bytes
// (0: it has not), and wakes who waits for it.
func (p *Partition) advance(leo int64, bytes int) {
	v := p.view.Load()
	if v.Role != Leader {
		return
	}
	if v.solo {
		if p.raise(leo) {
			p.raised()
		}
		p.tell(bytes) // also when a later append raised it first: its count is its own
		return
	}
	now, end := p.m.o.Now(), p.log.CommitEnd()
	p.mu.Lock()
	moved := false
	if in := p.view.Load(); in.Role == Leader && in.LeaderEpoch == v.LeaderEpoch { // else whoever changed it advances
		moved = p.raise(p.mu.isr.highWatermark(end, p.hw.Load(), now, p.m.o.LagTime()))
	}
	p.mu.Unlock()
	if bytes > 0 {
		p.tellAppended(bytes)
	}
	if moved {
		p.raised()
		p.tellCommitted()
	}
}

// raise moves a leader's high watermark up; it tells whether it moved, and
// raised is to follow. Where there are followers the caller holds p.mu since it
// found how far: a follower that joins the ISR in between could have less.
func (p *Partition) raise(to int64) bool {
	for {
		old := p.hw.Load()
		if to <= old {
			return false
		}
		if p.hw.CompareAndSwap(old, to) {
			return true
		}
	}
}

// raised tells the log and those that wait for acknowledgement that a leader's
// high watermark has moved. The caller holds no lock.
func (p *Partition) raised() {
	p.log.RaiseHighWatermark(p.hw.Load())
	p.endAcks()
}

// become changes the role to what the controller says. Callers hold
// Manager.mu; log and epochs are in order before the new role is visible.
func (p *Partition) become(v *View) error {
	p.role.Lock()
	defer p.role.Unlock()
	old := p.view.Load()
	end := p.log.EndOffset()
	if v.Role == Leader {
		v.EpochStart = end
		if old.Role == Leader && old.LeaderEpoch == v.LeaderEpoch {
			v.EpochStart = old.EpochStart
		}
		v.LeaderSince = v.LeaderEpoch
		if old.Role == Leader {
			v.LeaderSince = old.LeaderSince
		}
		if err := p.log.AssignEpoch(v.LeaderEpoch); err != nil {
			return err
		}
	}
	if old.Role == Idle {
		p.hw.Store(p.log.HighWatermark())
	}
	if v.Role == Leader && p.hw.Load() < end { // else a log that was left cleanly need not be loaded
		p.raise(p.log.StartOffset()) // it may be moving still
	}
	minISR := p.log.Config().MinInsyncReplicas
	// In one step, so that no change of the ISR is asked for with the view before.
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case v.Role == Leader && old.Role == Leader:
		p.mu.isr.again(p.m.o.BrokerID, v.Replicas, v.ISR, minISR, end, p.m.o.Now())
		v.solo = p.mu.isr.solo()
	case v.Role == Leader:
		p.mu.isr.reset(p.m.o.BrokerID, v.Replicas, v.ISR, minISR, p.m.o.Now())
		v.solo = p.mu.isr.solo()
	}
	p.mu.change = nil
	p.view.Store(v)
	return nil
}

// changed wakes all waits after a change of role. It is called without p.role.
func (p *Partition) changed() {
	if v := p.view.Load(); v.Role == Leader {
		// Where only what is on the disk counts as replicated, no append of this
		// run will sync what an earlier one left in the page cache.
		if p.log.CommitEnd() < p.log.EndOffset() {
			if err := p.log.Flush(); err != nil {
				p.m.o.Logger.Error("cannot sync a log that is led from now on", "partition", p.TopicPartition.String(), "err", err)
			}
		}
		p.advance(p.log.CommitEnd(), 0)
	}
	p.endAcks()
	p.tell(Unknown)
}

// end marks the partition as gone or offline and wakes all waits. Callers hold
// Manager.mu.
func (p *Partition) end(role Role) {
	p.role.Lock()
	v := *p.view.Load()
	v.Role = role
	p.view.Store(&v)
	p.role.Unlock()
	p.changed()
	p.m.roleChanged(p)
}

// stop makes a replica that the controller has stopped, and not deleted, follow
// nobody until it says something new. Callers hold Manager.mu.
func (p *Partition) stop() {
	p.role.Lock()
	v := *p.view.Load()
	if v.Role == Leader || v.Role == Follower {
		v.Role, v.LeaderID = Follower, -1
	}
	p.view.Store(&v)
	p.role.Unlock()
	p.changed()
	p.m.roleChanged(p)
}

// StartMoved tells subscribers that the log's start offset was raised.
func (p *Partition) StartMoved() {
	if v := p.view.Load(); v.Role == Leader && p.raise(p.log.StartOffset()) {
		p.raised()
	}
	p.tell(Unknown)
}
