package server

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestOneAddressGetsOneLineInAWhile(t *testing.T) {
	var out bytes.Buffer
	c := newComplaints(slog.New(slog.NewTextHandler(&out, nil)))
	now := time.Unix(1000, 0)
	for range 5 {
		c.add("10.0.0.1", now, "bad frame")
	}
	c.add("10.0.0.2", now, "bad frame")
	c.add("10.0.0.1", now.Add(complaintEvery), "bad frame")
	if n := strings.Count(out.String(), "bad frame"); n != 3 {
		t.Fatalf("%d lines, want 3:\n%s", n, out.String())
	}
	if !strings.Contains(out.String(), "not_logged_before=4") {
		t.Fatalf("the hidden ones are not counted:\n%s", out.String())
	}
}
