// Package script runs a coordinator's machine by hand, from text scripts: a
// clock, the log, the timers, and a trace of all effects. Everything is
// committed at once.
//
// A script is lines of commands, each followed by its trace, indented; # begins
// a comment. Two commands are the package's own: "pass 3s" lets time go by, from
// timer to timer, and "restart" loads the log into a new machine. The rest are
// the test's.
//
// It owns nothing but memory, has no lock and no goroutine.
//
// Invariant: a script has one trace, whichever order maps are walked in.
package script

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"barnabas/internal/coordinator"
)

// World is what a script acts on.
type World[M coordinator.Machine] struct {
	// Make returns a machine without any state.
	Make func() M
	// Record and Reply say how a trace shows them.
	Record func(coordinator.Record) string
	Reply  func(coordinator.Reply) string
	// Command carries out the test's own commands.
	Command func(name string, words []string) error

	M      M
	Now    time.Time
	Out    coordinator.Effects
	log    []coordinator.Record
	timers map[coordinator.Timer]time.Time
	trace  []string
}

// Start makes the first machine.
func (w *World[M]) Start() {
	w.Now = time.UnixMilli(0)
	w.Restart()
	w.trace = nil
}

// Step runs one event and traces its effects.
func (w *World[M]) Step(event func()) {
	w.Out.Reset()
	event()
	for _, t := range w.Out.Timers {
		if t.At.IsZero() {
			delete(w.timers, t.Timer)
		} else {
			w.timers[t.Timer] = t.At
		}
	}
	for _, r := range w.Out.Records {
		w.log = append(w.log, r)
		w.replay(len(w.log), r)
		w.trace = append(w.trace, "log "+w.Record(r))
	}
	for _, r := range w.Out.Replies {
		w.trace = append(w.trace, w.Reply(r))
	}
}

func (w *World[M]) replay(position int, r coordinator.Record) {
	if err := w.M.Replay(coordinator.Entry{Position: int64(position), Record: r}); err != nil {
		w.trace = append(w.trace, fmt.Sprintf("replay: %v", err))
	}
}

// Pass lets time go by, from timer to timer.
func (w *World[M]) Pass(d time.Duration) {
	until := w.Now.Add(d)
	for {
		var due []coordinator.Timer
		for t, at := range w.timers {
			if !at.After(until) {
				due = append(due, t)
			}
		}
		if len(due) == 0 {
			w.Now = until
			return
		}
		t := slices.MinFunc(due, func(a, b coordinator.Timer) int {
			return cmp.Or(w.timers[a].Compare(w.timers[b]), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B))
		})
		w.Now = w.timers[t]
		delete(w.timers, t)
		before := len(w.trace)
		w.Step(func() { w.M.Expired(t, w.Now, &w.Out) })
		if len(w.trace) > before {
			w.trace = slices.Insert(w.trace, before, fmt.Sprintf("at %v:", w.Now.Sub(time.UnixMilli(0))))
		}
	}
}

// Restart loads the log into a new machine.
func (w *World[M]) Restart() {
	w.M = w.Make()
	w.timers = map[coordinator.Timer]time.Time{}
	for i, r := range w.log {
		w.replay(i+1, r)
	}
	w.Step(func() { w.M.Loaded(w.Now, &w.Out) })
}

func (w *World[M]) command(words []string) error {
	switch words[0] {
	case "pass":
		d, err := time.ParseDuration(words[1])
		w.Pass(d)
		return err
	case "restart":
		w.Restart()
		return nil
	}
	return w.Command(words[0], words[1:])
}

// Run returns a script with the traces that it has now.
func (w *World[M]) Run(t *testing.T, text string) string {
	t.Helper()
	w.Start()
	var out strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.HasPrefix(line, "\t") {
			continue
		}
		out.WriteString(line + "\n")
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		w.trace = nil
		if err := w.command(words); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		for _, l := range w.trace {
			out.WriteString("\t" + l + "\n")
		}
	}
	return out.String()
}

// Files runs the scripts of testdata/*.txt and compares their traces, or writes
// them anew.
func Files(t *testing.T, update bool, run func(t *testing.T, text string) string) {
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
			got := run(t, string(text))
			if update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(text) {
				t.Errorf("the trace differs; -update writes it anew. Now:\n%s", got)
			}
		})
	}
}
