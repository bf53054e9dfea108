package keeper

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"barnabas/internal/jute"
	"barnabas/internal/keeper/keepertest"
	"barnabas/test/real"
)

// A million nodes of 100 bytes, and then a kill: all are
// there again, within the memory that they may take.
func TestAMillionNodes(t *testing.T) {
	const parents, each, batch, window = 1000, 1000, 500, 8
	dir := t.TempDir()
	addr, p := startOurs(t, dir)
	c := super(t, addr)
	data := make([]byte, 100)
	create := func(path string) jute.MultiOp {
		return jute.MultiOp{Op: jute.OpCreate, Request: &jute.CreateRequest{Path: path, Data: data, ACL: jute.WorldACL()}}
	}
	unanswered := 0
	answer := func() {
		f, err := c.Recv()
		if err != nil || f.Err != jute.OK {
			t.Fatal(f.Err, err)
		}
		unanswered--
	}
	var ops []jute.MultiOp
	add := func(path string, least int) {
		if ops = append(ops, create(path)); len(ops) < least {
			return
		}
		if unanswered == window {
			answer()
		}
		if _, err := c.Send(jute.OpMulti, &jute.MultiRequest{Ops: ops}); err != nil {
			t.Fatal(err)
		}
		ops = ops[:0]
		unanswered++
	}
	add("/p", 1)
	for i := range parents {
		add(fmt.Sprintf("/p/%03d", i), batch)
		for j := range each {
			last := i == parents-1 && j == each-1
			add(fmt.Sprintf("/p/%03d/n%06d", i, j), map[bool]int{true: 1, false: batch}[last])
		}
	}
	for unanswered > 0 {
		answer()
	}
	whole := func(c *keepertest.Client, p *real.Process) {
		t.Helper()
		f, _, err := c.Call(jute.OpGetAllChildrenNumber, &jute.PathRequest{Path: "/p"})
		if err != nil || f.Err != jute.OK || f.Body.(*jute.CountResponse).Count != parents*(each+1) {
			t.Fatal(f, err)
		}
		f, _, err = c.Call(jute.OpGetChildren2, &jute.PathWatchRequest{Path: "/p/999"})
		if err != nil || len(f.Body.(*jute.GetChildren2Response).Children) != each {
			t.Fatal(f.Err, err)
		}
		if mb := residentMB(t, p.PID()); mb > 800 {
			t.Errorf("%d MB", mb)
		}
	}
	whole(c, p)
	p.Kill()
	addr, p = startOurs(t, dir)
	whole(super(t, addr), p)
}

// residentMB reads a process's memory, or 0 where that can't be told.
func residentMB(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if os.IsNotExist(err) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kb >> 10
}
