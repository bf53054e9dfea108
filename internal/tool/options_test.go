package tool

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func sample() *Command {
	return &Command{Name: "sample", Purpose: "p", Options: []Option{
		{Name: "a", Arg: "String"}, {Name: "flag"}, {Name: "state", Arg: "String", Optional: true}, {Name: "n", Arg: "Integer", Default: "7"},
	}}
}

func TestOptionsAreReadAsJoptSimpleReadsThem(t *testing.T) {
	a, err := sample().parse([]string{"--a", "--flag", "--flag", "--a=2", "--state", "--n=3", "rest"})
	if err != nil {
		t.Fatal(err)
	}
	if got := a.All("a"); !slices.Equal(got, []string{"--flag", "2"}) {
		t.Errorf("a value that begins with -- is a value: %q", got)
	}
	if !a.Has("flag") || !a.Has("state") || a.Text("state") != "" || !slices.Equal(a.Rest, []string{"rest"}) {
		t.Errorf("%+v", a)
	}
	if n, ok, err := a.Integer("n", 32); n != 3 || !ok || err != nil {
		t.Error(n, ok, err)
	}
	if _, err := a.One("a"); err == nil || err.Error() != "Found multiple arguments for option a, but you asked for only one" {
		t.Error(err)
	}
	for line, want := range map[string]string{
		"--unheard": "unheard is not a recognized option", "--a": "Option a requires an argument", "--fla": "fla is not a recognized option\nDid you mean --flag?",
	} {
		if _, err := sample().parse([]string{line}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	b, err := sample().parse([]string{"--n", "x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Integer("n", 32); err == nil || err.Error() != "Cannot parse argument 'x' of option n" {
		t.Error(err)
	}
}

func TestUsageErrorsEndWithWhatToDoNext(t *testing.T) {
	var out, errOut bytes.Buffer
	c := sample()
	c.Example = []string{"barnabas sample --a 1"}
	c.Run = func(*Call) error { return usage("wrong") }
	err := c.Execute(&Call{Context: context.Background(), Out: &out, Err: &errOut, In: strings.NewReader("")}, nil)
	if want := "wrong\nFor example:\n  barnabas sample --a 1\nbarnabas sample --help lists the options.\n"; !errors.Is(err, ErrReported) || errOut.String() != want || out.Len() > 0 {
		t.Errorf("%v: %q", err, errOut.String())
	}
}

func TestHelpIsOutputSaveForScripts(t *testing.T) {
	for _, flag := range []string{"--help", "-h"} {
		var out, errOut bytes.Buffer
		call := &Call{Context: context.Background(), Out: &out, Err: &errOut}
		if err := sample().Execute(call, []string{flag}); err != nil || !strings.HasPrefix(out.String(), "p\n") || errOut.Len() > 0 {
			t.Errorf("%s: %v, %q, %q", flag, err, out.String(), errOut.String())
		}
		out.Reset()
		call.Script = true
		if err := sample().Execute(call, []string{flag}); !errors.Is(err, ErrReported) || out.Len() > 0 || !strings.HasPrefix(errOut.String(), "p\n") {
			t.Errorf("%s of a script: %v, %q, %q", flag, err, out.String(), errOut.String())
		}
	}
}

func TestConfigsAreCutOutsideOfBrackets(t *testing.T) {
	got, err := parseConfigs("a=1, b=[x,y] ,c=")
	if err != nil || got["a"] != "1" || got["b"] != "x,y" || got["c"] != "" || len(got) != 3 {
		t.Error(got, err)
	}
	if _, err := parseConfigs("a"); err == nil {
		t.Error("a key without value")
	}
}

func TestNumbersLookAsInJava(t *testing.T) {
	for f, want := range map[float64]string{1024: "1024.0", 0.5: "0.5", 2.048e7: "2.048E7", 1e7: "1.0E7", 0.0001: "1.0E-4", 0: "0.0", 9999999: "9999999.0"} {
		if got := javaDouble(f); got != want {
			t.Errorf("%v: %s, want %s", f, got, want)
		}
	}
}

func TestTimesOfResets(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	for args, want := range map[string]int64{
		"--by-duration PT1H":                          1_700_000_000_000 - 3600_000,
		"--by-duration P1DT1M1.5S":                    1_700_000_000_000 - 86_400_000 - 61_500,
		"--to-datetime 2020-01-01T00:00:00.000":       1_577_836_800_000,
		"--to-datetime 2020-01-01T00:00:00.000+01:00": 1_577_836_800_000 - 3600_000,
	} {
		a, err := consumerGroupsCommand().parse(strings.Fields(args))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := resetTime(a, now); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", args, got, err, want)
		}
	}
	a, err := consumerGroupsCommand().parse([]string{"--by-duration", "1H"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := resetTime(a, now); err == nil {
		t.Error("1H is a duration")
	}
}

func TestCommandsAreFoundByTheirScripts(t *testing.T) {
	for _, name := range []string{"topics", "kafka-topics", "kafka-topics.sh", "zookeeper-shell.sh"} {
		if Find(name) == nil {
			t.Errorf("%s is not found", name)
		}
	}
	if Find("nope") != nil {
		t.Error("nope is found")
	}
	seen := map[string]bool{}
	for _, c := range Commands() {
		for _, o := range append(slices.Clone(c.Options), ours...) {
			if key := c.Name + " " + o.Name; seen[key] {
				t.Errorf("option twice: %s", key)
			} else {
				seen[key] = true
			}
		}
	}
}

func TestCompletionKnowsOptionsValuesAndFiles(t *testing.T) {
	c := Find("configs")
	if got, _ := c.Complete(t.Context(), []string{"--entity-type"}, "b"); !slices.Equal(got, []string{"brokers", "broker-loggers"}) {
		t.Errorf("%q", got)
	}
	if got, _ := c.Complete(t.Context(), nil, "--entity-t"); len(got) != 1 || !strings.HasPrefix(got[0], "--entity-type\t") {
		t.Errorf("%q", got)
	}
	if got, files := c.Complete(t.Context(), []string{"--command-config"}, "c"); got != nil || !files {
		t.Errorf("%q, %v", got, files)
	}
}

var update = flag.Bool("update", false, "write docs/commands")

func TestPagesAreThoseOfTheDefinitions(t *testing.T) {
	dir := filepath.Join("..", "..", "docs", "commands")
	for _, c := range Commands() {
		file := filepath.Join(dir, c.Name+".md")
		if *update {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(c.Page()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		data, err := os.ReadFile(file)
		if err != nil || string(data) != c.Page() {
			t.Errorf("%s is not what the definition says; run go generate ./internal/tool (%v)", file, err)
		}
	}
}
