package core

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/znode"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// world is ZooKeeper and the brokers around a Machine: a tree with one-shot
// watches, and brokers that keep what the controller told them. It does nothing
// by itself; tests decide what happens next.
type world struct {
	m     *Machine
	cfg   Config
	now   time.Time
	tree  map[string]*node
	zxid  int64
	moved bool // the check of /controller_epoch fails from now on
	ours  bool // every broker tells that it is Barnabas
	epoch int32

	watches  map[string]bool // kind and path
	incoming []Event         // from ZooKeeper, in its order
	io       []Effect        // reads and writes not yet carried out
	sent     map[int32][]Send
	brokers  map[int32]*fakeBroker
	replies  map[uint64]any
	onReply  map[uint64]func(any)
	twice    func() bool // whether writes are done twice, the first answer being lost
	calls    uint64
	accepted int // alterations by leaders
	ids      int

	trace    strings.Builder
	problems []string
}

type node struct {
	data    string
	version int32
	czxid   int64
	hidden  bool // may not be read
}

func newWorld(cfg Config) *world {
	w := &world{now: time.Unix(1_000_000_000, 0), tree: map[string]*node{}, watches: map[string]bool{},
		sent: map[int32][]Send{}, brokers: map[int32]*fakeBroker{}, replies: map[uint64]any{}, onReply: map[uint64]func(any){}, twice: func() bool { return false }}
	cfg.NewTopicID = func() wire.UUID {
		w.ids++
		return wire.UUID{15: byte(w.ids), 14: byte(w.ids >> 8), 0: 0x70}
	}
	w.cfg = cfg
	w.m = New(cfg)
	for _, path := range append(znode.BootPaths(), "/admin/delete_topics") {
		w.create(path, "")
	}
	return w
}

func testConfig() Config {
	return Config{BrokerID: 1, IBP: config.LatestIBP, InterBrokerListener: "PLAINTEXT", DeleteTopicEnable: true,
		ImbalancePercentage: 10, ImbalanceInterval: 300 * time.Second}
}

// The tree.

func (w *world) fire(kind, path string) {
	for _, k := range strings.Fields(kind) {
		if w.watches[k+" "+path] {
			delete(w.watches, k+" "+path)
			w.incoming = append(w.incoming, Changed{path})
		}
	}
}

func parent(path string) string { return path[:strings.LastIndexByte(path, '/')] }

// apply carries out one write on the tree.
func (w *world) apply(op Op) (jute.Error, int32) {
	n := w.tree[op.Path]
	switch op.Kind {
	case OpCreate:
		if n != nil {
			return jute.ErrNodeExists, 0
		}
		if p := parent(op.Path); p != "" && w.tree[p] == nil {
			return jute.ErrNoNode, 0
		}
		w.tree[op.Path] = &node{data: string(op.Data), czxid: w.zxid}
	case OpSet:
		if n == nil {
			return jute.ErrNoNode, 0
		}
		if op.Version >= 0 && op.Version != n.version {
			return jute.ErrBadVersion, 0
		}
		w.checkState(op.Path, n.data, string(op.Data))
		n.data, n.version = string(op.Data), n.version+1
		return jute.OK, n.version
	case OpDelete:
		if n == nil {
			return jute.ErrNoNode, 0
		}
		if op.Version >= 0 && op.Version != n.version {
			return jute.ErrBadVersion, 0
		}
		if len(w.children(op.Path)) > 0 {
			return jute.ErrNotEmpty, 0
		}
		delete(w.tree, op.Path)
	}
	return jute.OK, 0
}

// checkState looks at what is written into a state node (invariants 3 to 5).
func (w *world) checkState(path, before, after string) {
	if !strings.HasSuffix(path, "/state") {
		return
	}
	old, err := znode.DecodePartitionState([]byte(before))
	if err != nil {
		return
	}
	s, err := znode.DecodePartitionState([]byte(after))
	if err != nil {
		return
	}
	switch {
	case s.LeaderEpoch < old.LeaderEpoch, s.LeaderEpoch == old.LeaderEpoch && s.Leader != old.Leader:
		w.problem("%s: leader %d in epoch %d after %d in %d", path, s.Leader, s.LeaderEpoch, old.Leader, old.LeaderEpoch)
	case len(s.ISR) == 0, s.Leader >= 0 && !slices.Contains(s.ISR, s.Leader):
		w.problem("%s: leader %d, ISR %v", path, s.Leader, s.ISR)
	case s.ControllerEpoch < old.ControllerEpoch:
		w.problem("%s: controller epoch %d after %d", path, s.ControllerEpoch, old.ControllerEpoch)
	}
}

// unit carries out a unit, all or nothing.
func (w *world) unit(u Unit) UnitResult {
	before := map[string]*node{}
	for _, op := range u {
		if n := w.tree[op.Path]; n != nil {
			c := *n
			before[op.Path] = &c
		} else {
			before[op.Path] = nil
		}
	}
	w.zxid++
	var result UnitResult
	for i, op := range u {
		code, version := w.apply(op)
		if code != jute.OK {
			for path, n := range before {
				if n == nil {
					delete(w.tree, path)
				} else {
					w.tree[path] = n
				}
			}
			return UnitResult{Err: code, Op: i}
		}
		if op.Kind == OpSet {
			result.Version = version
		}
	}
	for _, op := range u {
		w.fire("data exists", op.Path)
		if op.Kind != OpSet {
			w.fire("children", parent(op.Path))
		}
		if op.Kind == OpDelete {
			w.fire("children", op.Path)
		}
	}
	return result
}

func (w *world) create(path, data string) {
	if p := parent(path); p != "" && w.tree[p] == nil {
		w.create(p, "")
	}
	w.unit(Unit{{Kind: OpCreate, Path: path, Data: []byte(data)}})
}

func (w *world) set(path, data string) {
	if w.tree[path] == nil {
		w.create(path, data)
		return
	}
	w.unit(Unit{{Kind: OpSet, Path: path, Data: []byte(data), Version: -1}})
}

func (w *world) remove(path string) {
	w.unit(Unit{{Kind: OpDelete, Path: path, Version: -1}})
}

func (w *world) children(path string) []string {
	var names []string
	for p := range w.tree {
		if rest, ok := strings.CutPrefix(p, path+"/"); ok && !strings.Contains(rest, "/") {
			names = append(names, rest)
		}
	}
	slices.Sort(names)
	return names
}

func (w *world) read(r Read) ReadResult {
	n := w.tree[r.Path]
	kind := [...]string{"data", "children", "exists"}[r.Kind]
	if r.Watch && (n != nil || r.Kind == ReadExists) {
		w.watches[kind+" "+r.Path] = true
	}
	if n == nil {
		return ReadResult{Err: jute.ErrNoNode}
	}
	if n.hidden {
		return ReadResult{Err: jute.ErrNoAuth}
	}
	res := ReadResult{Stat: jute.Stat{Version: n.version, Czxid: n.czxid}}
	switch r.Kind {
	case ReadData:
		res.Data = []byte(n.data)
	case ReadChildren:
		res.Children = w.children(r.Path)
	}
	return res
}

// The machine.

func (w *world) step(ev Event) {
	for _, e := range w.m.Step(w.now, ev, nil) {
		w.effect(e)
	}
}

func (w *world) effect(e Effect) {
	switch e := e.(type) {
	case Reads:
		w.io = append(w.io, e)
		short := make([]string, len(e.Ops))
		for i, op := range e.Ops {
			short[i] = op.String()
		}
		fmt.Fprintf(&w.trace, "read %s\n", strings.Join(short, ", "))
		return
	case Writes:
		w.io = append(w.io, e)
	case Send:
		w.sent[e.Broker] = append(w.sent[e.Broker], e)
	case Connect:
		if w.ours && e.Broker != w.cfg.BrokerID {
			w.incoming = append(w.incoming, Identified{e.Broker, e.Epoch})
		}
	case Disconnect:
		delete(w.sent, e.Broker)
	case Reply:
		w.replies[e.Call] = e.Result
		if f := w.onReply[e.Call]; f != nil {
			delete(w.onReply, e.Call)
			f(e.Result)
		}
		fmt.Fprintf(&w.trace, "reply %s\n", resultString(e.Result))
		return
	}
	fmt.Fprintln(&w.trace, e)
}

func resultString(r any) string {
	if p, ok := r.(*kmsg.AlterPartitionResponse); ok {
		s := fmt.Sprintf("AlterPartition %v", wire.Code(p.ErrorCode))
		for _, t := range p.Topics {
			for _, p := range t.Partitions {
				s += fmt.Sprintf(" %d: %v leader %d epoch %d isr %v version %d", p.Partition, wire.Code(p.ErrorCode), p.LeaderID, p.LeaderEpoch, p.ISR, p.PartitionEpoch)
			}
		}
		return s
	}
	if list, ok := r.([]PartitionRefusal); ok {
		var b strings.Builder
		for _, a := range list {
			fmt.Fprintf(&b, "%s: %s %s; ", a.TopicPartition, a.Code, a.Message)
		}
		return strings.TrimSuffix(b.String(), "; ")
	}
	return fmt.Sprintf("%+v", r)
}

// doIO carries out the oldest reads or writes.
func (w *world) doIO() bool {
	if len(w.io) == 0 {
		return false
	}
	e := w.io[0]
	w.io = w.io[1:]
	switch e := e.(type) {
	case Reads:
		results := make([]ReadResult, len(e.Ops))
		for i, op := range e.Ops {
			results[i] = w.read(op)
		}
		w.incoming = append(w.incoming, ReadsDone{e.Tag, results})
	case Writes:
		results := make([]UnitResult, len(e.Units))
		for i, u := range e.Units {
			if !w.moved {
				results[i] = w.unit(u)
			}
		}
		for i, u := range e.Units {
			if w.twice() && !w.moved {
				results[i] = w.unit(u)
			}
		}
		w.incoming = append(w.incoming, WritesDone{e.Tag, results, w.moved})
	}
	return true
}

// deliver hands the machine the next event from ZooKeeper.
func (w *world) deliver() bool {
	if len(w.incoming) == 0 {
		return false
	}
	ev := w.incoming[0]
	w.incoming = w.incoming[1:]
	w.step(ev)
	return true
}

// answer lets a broker handle the next request that waits for it.
func (w *world) answer(id int32) bool {
	b := w.brokers[id]
	if b == nil || b.hold || len(w.sent[id]) == 0 {
		return false
	}
	s := w.sent[id][0]
	w.sent[id] = w.sent[id][1:]
	w.step(Answered{Broker: id, Epoch: brokerEpoch(s.Request), Request: s.Request, Response: b.handle(w, s.Request)})
	return true
}

// brokerEpoch is the epoch of the broker that a request was made for.
func brokerEpoch(r kmsg.Request) int64 {
	switch r := r.(type) {
	case *kmsg.LeaderAndISRRequest:
		return r.BrokerEpoch
	case *kmsg.UpdateMetadataRequest:
		return r.BrokerEpoch
	case *kmsg.StopReplicaRequest:
		return r.BrokerEpoch
	}
	return -1
}

// settle runs until nothing is left to do.
func (w *world) settle() {
	for step := 0; ; step++ {
		if step > 100_000 {
			w.problem("it never comes to rest")
			return
		}
		if w.doIO() || w.deliver() {
			continue
		}
		idle := true
		for _, id := range slices.Sorted(maps.Keys(w.brokers)) {
			if w.answer(id) {
				idle = false
				break
			}
		}
		if idle {
			return
		}
	}
}

func (w *world) call(request any) any {
	w.calls++
	w.step(Call{w.calls, request})
	w.settle()
	return w.replies[w.calls]
}

func (w *world) elect() {
	w.epoch++
	w.moved = false
	w.step(Elected{w.epoch})
}

// failover begins a new term with a new machine, as on another broker.
func (w *world) failover() {
	w.m = New(w.cfg)
	w.io, w.incoming = nil, nil
	clear(w.watches)
	for id := range w.sent {
		if b := w.brokers[id]; b != nil {
			b.missed = true
		}
	}
	clear(w.sent)
	w.elect()
}

func (w *world) dump(prefix string) string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(w.tree)) {
		if strings.HasPrefix(path, prefix) {
			fmt.Fprintf(&b, "%s v%d %s\n", path, w.tree[path].version, w.tree[path].data)
		}
	}
	return b.String()
}

// views prints what the brokers believe.
func (w *world) views() string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(w.brokers)) {
		f := w.brokers[id]
		fmt.Fprintf(&b, "broker %d: live %v\n", id, f.live)
		byName := func(a, b wire.TopicPartition) int {
			return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
		}
		for _, tp := range slices.SortedFunc(maps.Keys(f.metadata), byName) {
			p := f.metadata[tp]
			fmt.Fprintf(&b, "  %s leader %d epoch %d isr %v\n", tp, p.Leader, p.LeaderEpoch, p.ISR)
		}
		for _, tp := range slices.SortedFunc(maps.Keys(f.leaders), byName) {
			p := f.leaders[tp]
			role := "follows"
			if p.Leader == id {
				role = "leads"
			}
			fmt.Fprintf(&b, "  %s %s in epoch %d\n", role, tp, p.LeaderEpoch)
		}
	}
	return b.String()
}
