package groups

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// residentMB returns a process's resident memory in MiB, 0 where it can't be told.
func residentMB(pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.Atoi(strings.Fields(rest)[0])
			return kb / 1024
		}
	}
	return 0
}

// crowding are joins that are under way, each on a connection of its own, and
// how those that were answered were answered.
type crowding struct {
	mu    sync.Mutex
	codes map[int16]int
}

func (c *crowding) join(t *testing.T, addr string, r *kmsg.JoinGroupRequest) {
	t.Helper()
	conn := raw.Dial(t, addr)
	id := conn.Write(r)
	go func() { // ends with the connection
		if answer, err := conn.Read(r, id, time.Hour); err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.codes[answer.(*kmsg.JoinGroupResponse).ErrorCode]++
		}
	}()
}

func (c *crowding) answeredBy(code int16) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.codes[code]
}

func (c *crowding) answered() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range c.codes {
		n += of
	}
	return n
}

// TestMembersAndGroupsWithoutEndTakeBoundedMemory has members tell half a
// megabyte each and clients make groups up: the broker takes so many of them,
// and serves the others.
func TestMembersAndGroupsWithoutEndTakeBoundedMemory(t *testing.T) {
	t.Parallel()
	const size = 512 << 10
	b := real.Barnabas(t, 1, "offsets.topic.num.partitions=1", "group.initial.rebalance.delay.ms=600000")
	topic := raw.NewTopic(t, b.Addr, 1)
	raw.Coordinated(t, b.Addr, "kept")
	c := raw.Dial(t, b.Addr)
	serves := func(offset int64) {
		t.Helper()
		if code := commit(c, commitRequest(6, "kept", topic, 0, offset, "")); code != 0 {
			t.Errorf("a commit: %d", code)
		}
		if got := fetchOffsets(t, b.Addr, "kept", topic, 0); got[0] != offset {
			t.Errorf("offset %d, want %d", got[0], offset)
		}
	}
	serves(1)
	huge := func(group string) *kmsg.JoinGroupRequest {
		r := joinRequest(3, group, "", 60000, 1200000, "range")
		r.Protocols[0].Metadata = make([]byte, size)
		return r
	}

	// 16 times message.max.bytes are what a group's members may tell.
	members := crowding{codes: map[int16]int{}}
	for range 60 {
		members.join(t, b.Addr, huge("crowded"))
	}
	n, refusals := 0, 0
	real.Until(t, patience, "members to be refused", func() bool { return members.answered() >= 60-32 })
	real.Until(t, patience, "each member to be in the group, or refused", func() bool { // an answer has 16 MB
		n, refusals = len(describe(t, b.Addr, "crowded").Members), members.answered()
		return n+refusals == 60
	})
	if members.answeredBy(81) != refusals || n < 24 || n > 32 {
		t.Errorf("%d members, %d refused, %d of them as it should be", n, refusals, members.answeredBy(81))
	}
	serves(2)

	// 64 times that are what the groups that were never stored may.
	groups := crowding{codes: map[int16]int{}}
	for i := range 160 {
		groups.join(t, b.Addr, huge(fmt.Sprint("group-", i)))
	}
	real.Until(t, patience, "the groups beyond 64 MiB to be refused", func() bool { return groups.answered() >= 160-128 })
	if all := groups.answered(); groups.answeredBy(15) != all {
		t.Errorf("%d of %d refused", groups.answeredBy(15), all)
	}
	serves(3)

	// And there may be a thousand of them.
	given, refused := 0, 0
	for i := range 3000 {
		switch code := raw.Do[*kmsg.JoinGroupResponse](c, joinRequest(4, fmt.Sprint("idle-", i), "", 60000, 60000, "range")).ErrorCode; code {
		case 79:
			given++
		case 15:
			refused++
		default:
			t.Fatalf("group %d: error %d", i, code)
		}
	}
	if given == 0 || given > 1000 || given+refused != 3000 {
		t.Errorf("%d ids were given out, %d refused", given, refused)
	}
	serves(4)
	if mb := residentMB(b.PID()); mb > 400 {
		t.Errorf("the broker takes %d MB", mb)
	} else {
		t.Logf("the broker takes %d MB", mb)
	}
	b.Stop()
	b.Restart(t)
	raw.Coordinated(t, b.Addr, "kept")
	if got := fetchOffsets(t, b.Addr, "kept", topic, 0); got[0] != 4 {
		t.Errorf("after a new start the offset is %d", got[0])
	}
}
