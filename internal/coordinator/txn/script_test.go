package txn

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"barnabas/internal/coordinator"
	"barnabas/internal/coordinator/script"
	"barnabas/internal/wire"
)

var update = flag.Bool("update", false, "write the traces of testdata/*.txt anew")

// world runs the scripts of testdata, whose commands are:
//
//	init ID [known=P:E] [fresh=P]    add ID P:E t-0 t-1 ...    verify ID P:E t-0 ...
//	end ID P:E commit|abort          complete ID P:E           pass 3s    restart
type world struct {
	script.World[*Machine]
	asked int
	epoch int32
}

func newWorld() *world {
	w := &world{}
	w.Make = func() *Machine {
		w.epoch++
		return New(Config{IDExpiration: 24 * time.Hour, IDCheck: time.Hour}, w.epoch)
	}
	w.Record, w.Reply, w.Command = showRecord, showReply, w.command
	return w
}

type client int

func (client) Answer(any)     {}
func (client) Fail(wire.Code) {}

func showRecord(r coordinator.Record) string {
	id, _ := decodeKey(r.Key)
	if r.Value == nil {
		return id + " deleted"
	}
	v, _ := decodeValue(r.Value)
	return fmt.Sprintf("%s %v %d:%d %v start=%d", id, v.state, v.producer, v.epoch, v.partitions, v.start)
}

func showReply(r coordinator.Reply) string {
	switch a := r.Response.(type) {
	case Initialized:
		return fmt.Sprintf("%v <- %v %d:%d needs id %v", r.To, a.Code, a.ID, a.Epoch, a.NeedsID)
	case Send:
		return fmt.Sprintf("markers of %s %d:%d commit=%v coordinator=%d to %v", a.TransactionalID, a.Marker.ID, a.Marker.Epoch, a.Marker.Commit, a.Marker.CoordinatorEpoch, a.Partitions)
	case Opened:
		return fmt.Sprintf("opened %d:%d %v", a.ID, a.Epoch, a.Partitions)
	case AllTold:
		return "all told"
	case Closed:
		return fmt.Sprintf("closed %d:%d", a.ID, a.Epoch)
	default:
		return fmt.Sprintf("%v <- %v", r.To, a)
	}
}

func pair(word string) coordinator.Producer {
	id, epoch, _ := strings.Cut(word, ":")
	p, _ := strconv.ParseInt(id, 10, 64)
	e, _ := strconv.ParseInt(epoch, 10, 16)
	return coordinator.Producer{ID: p, Epoch: int16(e)}
}

func (w *world) command(name string, words []string) error {
	w.asked++
	from := client(w.asked)
	id, rest := words[0], words[1:]
	var parts []wire.TopicPartition
	for _, word := range rest {
		if topic, index, ok := strings.Cut(word, "-"); ok {
			n, _ := strconv.Atoi(index)
			parts = append(parts, wire.TopicPartition{Topic: topic, Partition: int32(n)})
		}
	}
	switch name {
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
		w.Step(func() { w.M.Init(r, from, w.Now, &w.Out) })
	case "add":
		w.Step(func() { w.M.Add(id, pair(rest[0]), parts, from, w.Now, &w.Out) })
	case "verify":
		w.Step(func() { w.M.Verify(id, pair(rest[0]), parts, from, &w.Out) })
	case "end":
		w.Step(func() { w.M.EndTxn(id, pair(rest[0]), rest[1] == "commit", from, w.Now, &w.Out) })
	case "complete":
		w.Step(func() { w.M.Complete(id, pair(rest[0]), from, w.Now, &w.Out) })
	default:
		return fmt.Errorf("unknown command %q", name)
	}
	return nil
}

func TestScripts(t *testing.T) {
	script.Files(t, *update, func(t *testing.T, text string) string { return newWorld().Run(t, text) })
}
