package txn

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"barnabas/internal/coordinator"
	"barnabas/internal/wire"
)

var update = flag.Bool("update", false, "write the traces of testdata/*.txt anew")

// script runs one machine by hand: a clock, the log, the timers, and a trace of
// all effects. Everything is committed at once. Commands are lines, each followed
// by its trace, indented:
//
//	init ID [known=P:E] [fresh=P]    add ID P:E t-0 t-1 ...    verify ID P:E t-0 ...
//	end ID P:E commit|abort          complete ID P:E           pass 3s    restart
type script struct {
	m      *Machine
	c      Config
	now    time.Time
	log    []coordinator.Record
	timers map[coordinator.Timer]time.Time
	out    coordinator.Effects
	trace  []string
	asked  int
	epoch  int32
}

type client int

func (client) Answer(any)     {}
func (client) Fail(wire.Code) {}

func (s *script) step(event func()) {
	s.out.Reset()
	event()
	for _, t := range s.out.Timers {
		if t.At.IsZero() {
			delete(s.timers, t.Timer)
		} else {
			s.timers[t.Timer] = t.At
		}
	}
	for _, r := range s.out.Records {
		s.log = append(s.log, r)
		if err := s.m.Replay(coordinator.Entry{Record: r}); err != nil {
			s.trace = append(s.trace, err.Error())
		}
		id, _ := decodeKey(r.Key)
		if r.Value == nil {
			s.trace = append(s.trace, "log "+id+" deleted")
			continue
		}
		v, _ := decodeValue(r.Value)
		s.trace = append(s.trace, fmt.Sprintf("log %s %v %d:%d %v start=%d", id, v.state, v.producer, v.epoch, v.partitions, v.start))
	}
	for _, r := range s.out.Replies {
		switch a := r.Response.(type) {
		case Initialized:
			s.trace = append(s.trace, fmt.Sprintf("%v <- %v %d:%d needs id %v", r.To, a.Code, a.ID, a.Epoch, a.NeedsID))
		case Send:
			s.trace = append(s.trace, fmt.Sprintf("markers of %s %d:%d commit=%v coordinator=%d to %v", a.TransactionalID, a.Marker.ID, a.Marker.Epoch, a.Marker.Commit, a.Marker.CoordinatorEpoch, a.Partitions))
		case Opened:
			s.trace = append(s.trace, fmt.Sprintf("opened %d:%d %v", a.ID, a.Epoch, a.Partitions))
		case Closed:
			s.trace = append(s.trace, fmt.Sprintf("closed %d:%d", a.ID, a.Epoch))
		default:
			s.trace = append(s.trace, fmt.Sprintf("%v <- %v", r.To, a))
		}
	}
}

func (s *script) pass(d time.Duration) {
	until := s.now.Add(d)
	for {
		var due []coordinator.Timer
		for t, at := range s.timers {
			if !at.After(until) {
				due = append(due, t)
			}
		}
		if len(due) == 0 {
			s.now = until
			return
		}
		slices.SortFunc(due, func(a, b coordinator.Timer) int {
			return cmp.Or(s.timers[a].Compare(s.timers[b]), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.A, b.A))
		})
		s.now = s.timers[due[0]]
		delete(s.timers, due[0])
		s.step(func() { s.m.Expired(due[0], s.now, &s.out) })
	}
}

func (s *script) restart() {
	s.epoch++
	s.m, s.timers = New(s.c, s.epoch), map[coordinator.Timer]time.Time{}
	for _, r := range s.log {
		if err := s.m.Replay(coordinator.Entry{Record: r}); err != nil {
			s.trace = append(s.trace, err.Error())
		}
	}
	s.step(func() { s.m.Loaded(s.now, &s.out) })
}

func pair(word string) coordinator.Producer {
	id, epoch, _ := strings.Cut(word, ":")
	p, _ := strconv.ParseInt(id, 10, 64)
	e, _ := strconv.ParseInt(epoch, 10, 16)
	return coordinator.Producer{ID: p, Epoch: int16(e)}
}

func (s *script) command(words []string) error {
	switch words[0] {
	case "pass":
		d, err := time.ParseDuration(words[1])
		s.pass(d)
		return err
	case "restart":
		s.restart()
		return nil
	}
	s.asked++
	from := client(s.asked)
	id, rest := words[1], words[2:]
	var parts []wire.TopicPartition
	for _, word := range rest {
		if topic, index, ok := strings.Cut(word, "-"); ok {
			n, _ := strconv.Atoi(index)
			parts = append(parts, wire.TopicPartition{Topic: topic, Partition: int32(n)})
		}
	}
	switch words[0] {
	case "init":
		r := Init{TransactionalID: id, Timeout: 60000, Known: coordinator.Producer{ID: -1, Epoch: -1}, Fresh: -1}
		for _, word := range rest {
			if v, ok := strings.CutPrefix(word, "known="); ok {
				r.Known = pair(v)
			}
			if v, ok := strings.CutPrefix(word, "fresh="); ok {
				r.Fresh = pair(v).ID
			}
		}
		s.step(func() { s.m.Init(r, from, s.now, &s.out) })
	case "add":
		s.step(func() { s.m.Add(id, pair(rest[0]), parts, from, s.now, &s.out) })
	case "verify":
		s.step(func() { s.m.Verify(id, pair(rest[0]), parts, from, &s.out) })
	case "end":
		s.step(func() { s.m.EndTxn(id, pair(rest[0]), rest[1] == "commit", from, s.now, &s.out) })
	case "complete":
		s.step(func() { s.m.Complete(id, pair(rest[0]), from, s.now, &s.out) })
	default:
		return fmt.Errorf("unknown command %q", words[0])
	}
	return nil
}

func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := &script{c: Config{IDExpiration: 24 * time.Hour, IDCheck: time.Hour}, now: time.UnixMilli(0)}
			s.restart()
			var got strings.Builder
			for _, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
				if strings.HasPrefix(line, "\t") {
					continue
				}
				got.WriteString(line + "\n")
				if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
					s.trace = nil
					if err := s.command(words); err != nil {
						t.Fatalf("%s: %v", line, err)
					}
					for _, l := range s.trace {
						got.WriteString("\t" + l + "\n")
					}
				}
			}
			if *update {
				if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got.String() != string(text) {
				t.Errorf("the trace differs; -update writes it anew. Now:\n%s", got.String())
			}
		})
	}
}
