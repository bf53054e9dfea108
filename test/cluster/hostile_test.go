package cluster

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// residentMB returns a process's resident memory in MiB, 0 where it can't be told.
func residentMB(pid int) float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}

// send opens a connection, writes raw bytes, and returns what comes back until
// the other side closes or nothing came for a while. closed tells which.
func send(t *testing.T, addr string, raw []byte, wait time.Duration) (answer []byte, closed bool) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatalf("nothing listens at %s any more: %v", addr, err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(wait))
	_, _ = c.Write(raw) // the other side may close before it has read all
	answer, err = io.ReadAll(c)
	if e, ok := err.(net.Error); ok && e.Timeout() {
		return answer, false
	}
	return answer, true
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestApiVersionsFromTheFuture is case 1.
func TestApiVersionsFromTheFuture(t *testing.T) {
	broker := real.Barnabas(t, 1)
	c, err := net.Dial("tcp", broker.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Write(unhex(t, "00000016 0012 0063 00000001 0002 7577 00 04616263 04312e30 00")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 20)
	if _, err := io.ReadFull(c, got); err != nil {
		t.Fatal(err)
	}
	if want := unhex(t, "00000010 00000001 0023 00000001 0012 0000 0004"); string(got) != string(want) {
		t.Errorf("answer %x, want %x", got, want)
	}
	// The connection stays open, and a v3 request with an empty client name is 42.
	request := kmsg.NewPtrApiVersionsRequest()
	request.Version = 3
	if _, err := c.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID("uw")).AppendRequest(nil, request, 2)); err != nil {
		t.Fatal(err)
	}
	got = make([]byte, 10)
	if _, err := io.ReadFull(c, got); err != nil {
		t.Fatal(err)
	}
	if code := binary.BigEndian.Uint16(got[8:]); code != 42 {
		t.Errorf("empty client name: error %d, want 42", code)
	}
}

// TestUnknownKeysAndVersionsClose: there is no answer that the client could read.
func TestUnknownKeysAndVersionsClose(t *testing.T) {
	broker := real.Barnabas(t, 1)
	for name, header := range map[string]string{
		"key 999":      "0000000a 03e7 0000 00000001 0000",
		"Metadata v99": "0000000a 0003 0063 00000001 0000",
		"key -1":       "0000000a ffff 0000 00000001 0000",
	} {
		if answer, closed := send(t, broker.Addr, unhex(t, header), 10*time.Second); !closed || len(answer) > 0 {
			t.Errorf("%s: closed %v, %d bytes", name, closed, len(answer))
		}
	}
}

// TestHostileSizes is case 6: each closes, memory stays flat, others are served.
func TestHostileSizes(t *testing.T) {
	broker := real.Barnabas(t, 1)
	produceOne(t, broker.Addr, "t", "before")
	before := residentMB(broker.PID())
	attacks := map[string][]byte{
		"HTTP":                       []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"TLS hello":                  unhex(t, "16030100c8010000c40303"),
		"size -1":                    unhex(t, "ffffffff"),
		"size 0":                     unhex(t, "00000000"),
		"size 2^31-1":                unhex(t, "7fffffff 0003 0001"),
		"size above the limit":       unhex(t, "06400001"),
		"3-byte frame":               unhex(t, "00000003 000300"),
		"Metadata v1, 2^31-1 topics": unhex(t, "0000000e 0003 0001 00000001 0000 7fffffff"),
		"JoinGroup v0, 2^30 entries": unhex(t, "00000019 000b 0000 00000001 0000 0001 67 00001770 0000 0000 40000000"),
		"Metadata v9, compact 2^32":  unhex(t, "00000010 0003 0009 00000001 0000 00 ffffffff0f"),
		"string beyond the frame":    unhex(t, "0000000e 0003 0001 00000001 7fff 00000000"),
		"Produce v3, 2^31-1 bytes":   unhex(t, "0000002b 0000 0003 00000001 0000 ffff 0001 00001770 00000001 0001 74 00000001 00000000 7fffffff 0000000000000000"),
	}
	for name, raw := range attacks {
		if answer, closed := send(t, broker.Addr, raw, 15*time.Second); !closed || len(answer) > 0 {
			t.Errorf("%s: closed %v, %d bytes came back", name, closed, len(answer))
		}
	}
	for _, name := range []string{"size -1", "size 0", "size 2^31-1", "size above the limit", "3-byte frame", "HTTP", "TLS hello"} {
		if answer, closed := send(t, broker.Keeper, attacks[name], 15*time.Second); !closed || len(answer) > 0 {
			t.Errorf("ZooKeeper's port, %s: closed %v, %d bytes came back", name, closed, len(answer))
		}
	}
	// Bytes after a body are ignored.
	if answer, _ := send(t, broker.Addr, unhex(t, "00000013 0003 0001 00000001 0000 00000000 0102030405"), time.Second); len(answer) < 8 {
		t.Error("Metadata v1 with five bytes more was not answered")
	}
	// A thousand of them at once.
	done := make(chan struct{})
	for i := range 1000 {
		go func() {
			defer func() { done <- struct{}{} }()
			c, err := net.Dial("tcp", broker.Addr)
			if err != nil {
				return
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(15 * time.Second))
			_, _ = c.Write([][]byte{attacks["size 2^31-1"], attacks["Metadata v1, 2^31-1 topics"], attacks["HTTP"]}[i%3])
			_, _ = io.Copy(io.Discard, c)
		}()
	}
	for range 1000 {
		<-done
	}
	produceOne(t, broker.Addr, "t", "after")
	if after := residentMB(broker.PID()); after > before+64 {
		t.Errorf("memory grew from %.0f to %.0f MB", before, after)
	}
}

// TestRandomBytesOnEitherPort: neither port falls over, hangs or grows.
func TestRandomBytesOnEitherPort(t *testing.T) {
	broker := real.Barnabas(t, 1)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	before := residentMB(broker.PID())
	for i := range 400 {
		raw := make([]byte, random.IntN(300))
		for j := range raw {
			raw[j] = byte(random.Uint32())
		}
		if i%2 == 0 && len(raw) > 8 { // a frame whose length is right, for a key that exists
			binary.BigEndian.PutUint32(raw, uint32(len(raw)-4))
			binary.BigEndian.PutUint16(raw[4:], uint16(random.IntN(69)))
			binary.BigEndian.PutUint16(raw[6:], uint16(random.IntN(10)))
		}
		send(t, broker.Addr, raw, 50*time.Millisecond)
		send(t, broker.Keeper, raw, 50*time.Millisecond)
	}
	produceOne(t, broker.Addr, "t", "after")
	if got := real.FourLetterWord(broker.Keeper, "ruok"); got != "imok" {
		t.Errorf("ruok: %q", got)
	}
	if after := residentMB(broker.PID()); after > before+64 {
		t.Errorf("memory grew from %.0f to %.0f MB", before, after)
	}
	if out := broker.Output(); strings.Contains(out, "panic") {
		t.Error("something panicked")
	}
}
