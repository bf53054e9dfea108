package keeper

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"barnabas/internal/jute"
)

// The page on the file's format has a record's bytes; they are these.
func TestTheFormatPageShowsARecord(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats/keeper.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "```hex\n")
	text, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("no hex block")
	}
	var want []byte
	for line := range strings.Lines(text) {
		digits, _, _ := strings.Cut(line, "#")
		b, err := hex.DecodeString(strings.Join(strings.Fields(digits), ""))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, b...)
	}
	r := &record{path: "/a", data: []byte("x"), acl: []jute.ACL{{Perms: jute.PermRead, ID: jute.ID{Scheme: "world", ID: "anyone"}}},
		czxid: 1<<32 | 5, mzxid: 1<<32 | 7, pzxid: 1<<32 | 6, ctime: 1_700_000_000_000, mtime: 1_700_000_000_001,
		version: 1, cversion: 2, aversion: 3, owner: 0x0100018bcfe56800}
	if got := appendRecord(nil, r); !bytes.Equal(got, want) {
		t.Fatalf("\n got %x\nwant %x", got, want)
	}
}
