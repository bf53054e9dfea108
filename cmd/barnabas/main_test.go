package main

import (
	"bytes"
	"strings"
	"testing"
)

func run(args ...string) (string, error) {
	cmd := root()
	var out bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.Execute()
	return out.String(), err
}

func TestAWrongCommandIsAnError(t *testing.T) {
	for _, line := range [][]string{{"strat"}, {"strat", "--list"}} {
		if _, err := run(line...); err == nil || err.Error() != `unknown command "strat"; did you mean start?` {
			t.Error(err)
		}
	}
	if out, err := run(); err != nil || !strings.Contains(out, "start") {
		t.Error(out, err)
	}
}
