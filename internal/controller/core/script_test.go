package core

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/wire"
	"barnabas/internal/znode"
)

var rewrite = flag.Bool("rewrite", false, "write the traces into testdata instead of comparing")

// TestScripts runs each testdata/*.txt: a command, a line of dashes, and what
// the machine did, up to an empty line. Lines that begin with # are kept.
//
//	cluster 1,2,3 [ibp=2.8] [unclean] [nodelete] [rebalance] [ours]   brokers, no term yet
//	elect | failover | moved | tick 5s
//	ours 2 | up 2 | down 2 | bounce 2 | hold 2 | release 2 | fail 2 t-0
//	set PATH DATA | remove PATH | touch PATH | hide PATH | show PATH
//	topic NAME 1,2 2,1           a topic node as Kafka 0.8 writes it
//	create NAME 1,2 2,1 | grow NAME FROM 1,2 | delete NAME
//	isr t-0 1,2 | preferred t-0 | unclean t-0 | shutdown 2
//	reassign t-0 2,3 | reassign t-0 cancel | ongoing | why t | queued | ids 2
//	tree PREFIX | views | quiet COMMAND...
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runScript(t, file) })
	}
}

func runScript(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	var w *world
	lines := strings.Split(string(text), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if line == "" || strings.HasPrefix(line, "#") {
			if line != "" || i+1 < len(lines) {
				out.WriteString(line + "\n")
			}
			continue
		}
		var want []string
		if i+1 < len(lines) && lines[i+1] == "----" {
			for i += 2; i < len(lines) && lines[i] != ""; i++ {
				want = append(want, lines[i])
			}
			i--
		}
		got := command(t, &w, line)
		if !*rewrite && got != strings.Join(want, "\n") {
			t.Errorf("%s: %s\n--- got\n%s\n--- want\n%s", file, line, got, strings.Join(want, "\n"))
		}
		out.WriteString(line + "\n----\n")
		if got != "" {
			out.WriteString(got + "\n")
		}
	}
	if w != nil {
		for _, p := range w.problems {
			t.Error(p)
		}
		if !w.m.Idle() {
			t.Error("the machine waits for something at the end")
		}
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// command runs one command and returns the trace.
func command(t *testing.T, wp **world, line string) string {
	args := strings.Fields(line)
	if args[0] == "cluster" {
		*wp = cluster(t, args[1:])
		return ""
	}
	w := *wp
	w.trace.Reset()
	quiet := args[0] == "quiet"
	if quiet {
		args = args[1:]
		line = strings.TrimPrefix(line, "quiet ")
	}
	switch args[0] {
	case "tree":
		return strings.TrimSpace(w.dump(args[1]))
	case "views":
		return strings.TrimSpace(w.views())
	}
	if err := w.do(args, line); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	w.settle()
	if quiet {
		return ""
	}
	return strings.TrimSpace(w.trace.String())
}

func cluster(t *testing.T, args []string) *world {
	cfg, ours := testConfig(), false
	for _, a := range args[1:] {
		switch key, value, _ := strings.Cut(a, "="); key {
		case "ibp":
			v, err := config.ParseIBP(value)
			if err != nil {
				t.Fatal(err)
			}
			cfg.IBP = v
		case "unclean":
			cfg.UncleanElection = true
		case "nodelete":
			cfg.DeleteTopicEnable = false
		case "rebalance":
			cfg.AutoRebalance = true
		case "ours":
			ours = true
		default:
			t.Fatalf("cluster: %s", a)
		}
	}
	w := newWorld(cfg)
	w.ours = ours
	for _, id := range numbers(args[0]) {
		w.up(id)
	}
	return w
}

func numbers(s string) []int32 {
	list := []int32{}
	for f := range strings.SplitSeq(s, ",") {
		if n, err := strconv.Atoi(f); err == nil {
			list = append(list, int32(n))
		}
	}
	return list
}

func lists(args []string) [][]int32 {
	var all [][]int32
	for _, a := range args {
		all = append(all, numbers(a))
	}
	return all
}

func parseTP(s string) wire.TopicPartition {
	i := strings.LastIndexByte(s, '-')
	n, _ := strconv.Atoi(s[i+1:])
	return wire.TopicPartition{Topic: s[:i], Partition: int32(n)}
}

func parseTPs(args []string) []wire.TopicPartition {
	var list []wire.TopicPartition
	for _, a := range args {
		list = append(list, parseTP(a))
	}
	return list
}

func (w *world) do(args []string, line string) error {
	rest := args[1:]
	switch args[0] {
	case "elect":
		w.elect()
	case "failover":
		w.failover()
	case "moved":
		w.moved = true
	case "tick":
		d, err := time.ParseDuration(rest[0])
		if err != nil {
			return err
		}
		w.now = w.now.Add(d)
		w.step(Tick{})
	case "ours":
		id := numbers(rest[0])[0]
		w.step(Identified{Broker: id, Epoch: w.brokers[id].epoch})
	case "up", "down", "bounce", "hold", "release", "fail":
		w.doBroker(args[0], numbers(rest[0])[0], rest[1:])
	case "set":
		_, data, _ := strings.Cut(strings.TrimPrefix(line, "set "), " ")
		w.set(rest[0], data)
	case "touch":
		w.set(rest[0], w.tree[rest[0]].data)
	case "remove":
		w.remove(rest[0])
	case "hide", "show":
		w.tree[rest[0]].hidden = args[0] == "hide"
	case "topic":
		n := znode.Topic{Version: 1, Partitions: map[int32]znode.Assignment{}}
		for i, l := range lists(rest[1:]) {
			n.Partitions[int32(i)] = znode.Assignment{Replicas: l}
		}
		w.set(znode.TopicPath(rest[0]), string(n.Encode()))
	case "isr":
		w.alterISR(parseTP(rest[0]), numbers(rest[1]))
	default:
		return w.doCall(args[0], rest)
	}
	return nil
}

func (w *world) doBroker(what string, id int32, rest []string) {
	switch what {
	case "up":
		w.up(id)
	case "down":
		w.down(id)
	case "bounce":
		w.down(id)
		w.up(id)
	case "hold", "release":
		w.brokers[id].hold = what == "hold"
	case "fail":
		for _, tp := range parseTPs(rest) {
			w.brokers[id].failed[tp] = true
		}
		w.create(znode.LogDirEvents+"/log_dir_event_0", string(znode.EncodeLogDirEvent(id)))
	}
}

func (w *world) doCall(what string, rest []string) error {
	switch what {
	case "create":
		w.call(CreateTopics{[]NewTopic{{Name: rest[0], Assignment: lists(rest[1:])}}})
	case "grow":
		w.call(CreatePartitions{Topic: rest[0], From: int(numbers(rest[1])[0]), Added: lists(rest[2:])})
	case "delete":
		w.call(DeleteTopics{rest})
	case "preferred":
		w.call(ElectLeaders{Partitions: parseTPs(rest)})
	case "unclean":
		w.call(ElectLeaders{Unclean: true, Partitions: parseTPs(rest)})
	case "shutdown":
		w.call(ControlledShutdown{numbers(rest[0])[0], -1})
	case "reassign":
		r := Reassignment{TopicPartition: parseTP(rest[0])}
		if rest[1] != "cancel" {
			r.Replicas = numbers(rest[1])
		}
		w.call(Reassign{[]Reassignment{r}})
	case "ongoing":
		w.call(ListReassignments{})
	case "why":
		w.call(Why{rest[0]})
	case "queued":
		w.call(QueuedForDeletion{})
	case "ids":
		id := numbers(rest[0])[0]
		w.call(AllocateProducerIDs{id, w.brokers[id].epoch})
	default:
		return fmt.Errorf("unknown command %q, of %v", what, slices.Clone(rest))
	}
	return nil
}
