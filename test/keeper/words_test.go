package keeper

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"encoding/binary"
	"hash/adler32"

	"barnabas/internal/jute"
	"barnabas/internal/keeper/keepertest"
	"barnabas/test/real"
)

// shape masks what differs from run to run, and keeps the rest of a word's answer.
func shape(word, answer string) string {
	lines := strings.SplitAfter(answer, "\n")
	switch word {
	case "mntr": // the metrics of the Java server are many: those that ours has must be there
		var names []string
		for _, line := range lines {
			name, _, _ := strings.Cut(line, "\t")
			names = append(names, name)
		}
		slices.Sort(names)
		return strings.Join(names, "\n")
	case "envi":
		for i, line := range lines {
			lines[i], _, _ = strings.Cut(line, "=")
		}
	}
	answer = strings.Join(lines, "")
	for _, m := range []struct{ from, to string }{
		{`3\.8\.4-.*`, "3.8.4"}, {`dataDir=.*|dataLogDir=.*`, "dir"}, {`expire at .*`, "expire at T"}, {`(0x)?[0-9a-f]*[0-9][0-9a-f]*(\.[0-9]+)?`, "N"}, {`(N\.)+N:N`, "ADDR"},
	} {
		answer = regexp.MustCompile(m.from).ReplaceAllString(answer, m.to)
	}
	return answer
}

func TestFourLetterWordsHaveZooKeepersShape(t *testing.T) {
	words := []string{"ruok", "srvr", "stat", "mntr", "conf", "cons", "dump", "envi", "isro", "wchs", "wchc", "wchp", "dirs", "gtmk", "stmk\x00\x00\x00\x00\x00\x00\x00\x01", "crst", "srst", "xxxx"}
	var answers [][]string
	onBoth(t, func(t *testing.T, addr string) {
		c := super(t, addr)
		for _, o := range []op{
			{op: jute.OpCreate, body: &jute.CreateRequest{Path: "/e", ACL: jute.WorldACL(), Mode: jute.Ephemeral}},
			{op: jute.OpGetData, body: &jute.PathWatchRequest{Path: "/e", Watch: true}},
			{op: jute.OpExists, body: &jute.PathWatchRequest{Path: "/none", Watch: true}},
			{op: jute.OpGetChildren, body: &jute.PathWatchRequest{Path: "/", Watch: true}},
		} {
			if _, _, err := c.Call(o.op, o.body); err != nil {
				t.Fatal(err)
			}
		}
		var list []string
		for _, w := range words {
			list = append(list, shape(w, real.FourLetterWord(addr, w)))
		}
		answers = append(answers, list)
	})
	if len(answers) < 2 {
		return
	}
	for i, w := range words {
		apache, ours := answers[0][i], answers[1][i]
		switch w {
		case "mntr":
			for name := range strings.SplitSeq(ours, "\n") {
				if !slices.Contains(strings.Split(apache, "\n"), name) {
					t.Errorf("mntr: Apache has no %s", name)
				}
			}
			continue
		case "stat", "cons", "wchp", "wchc", "dump": // in no order; and when connections expire is the server's own affair
			a, b := strings.Split(apache, "\n"), strings.Split(ours, "\n")
			slices.Sort(a)
			slices.Sort(b)
			if w != "wchp" && w != "wchc" { // the connection of an earlier word may be about to end
				a, b = slices.Compact(a), slices.Compact(b)
			}
			apache, ours = strings.Join(a, "\n"), strings.Join(b, "\n")
		}
		if apache != ours {
			t.Errorf("%q: Apache\n%s\nBarnabas\n%s", w, apache, ours)
		}
	}
}

// A sequence counter at its end, on a tree that both servers load.
func TestASequenceCounterAtItsEnd(t *testing.T) {
	dir, apache := filepath.Join(t.TempDir(), "k"), filepath.Join(t.TempDir(), "a")
	addr, p := startOurs(t, dir)
	c := super(t, addr)
	if f, _, err := c.Call(jute.OpCreate, &jute.CreateRequest{Path: "/seq", ACL: jute.WorldACL()}); err != nil || f.Err != jute.OK {
		t.Fatal(f, err)
	}
	p.Stop()
	real.Run(t, patience, exec.Command(real.Binary(t), "zookeeper", "export", "--dir", dir, "--to", apache))
	files, err := filepath.Glob(filepath.Join(apache, "version-2", "snapshot.*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(b), "\x00\x00\x00\x04/seq") + 8 + 4 + 8 + 4*8 + 4 // path, null data, ACL, zxids and times, version
	binary.BigEndian.PutUint32(b[at:], 1<<31-3)
	binary.BigEndian.PutUint64(b[len(b)-13:], uint64(adler32.Checksum(b[:len(b)-13])))
	if err := os.WriteFile(files[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	ours := filepath.Join(t.TempDir(), "o")
	real.Run(t, patience, exec.Command(real.Binary(t), "zookeeper", "import", "--from", apache, "--dir", ours))
	play := func(addr string) (trace []string) {
		c := super(t, addr)
		s := &side{sessions: map[int64]string{}}
		for range 6 {
			f, _, err := c.Call(jute.OpCreate2, &jute.CreateRequest{Path: "/seq/n-", ACL: jute.WorldACL(), Mode: jute.PersistentSequential})
			if err != nil {
				t.Fatal(err)
			}
			if f.Err == jute.OK {
				trace = append(trace, f.Body.(*jute.Create2Response).Path)
			} else {
				trace = append(trace, f.Err.Error())
			}
			f, _, err = c.Call(jute.OpExists, &jute.PathWatchRequest{Path: "/seq"})
			if err != nil {
				t.Fatal(err)
			}
			st := *f.Body.(*jute.Stat)
			st.Ctime, st.Mtime = 0, 0
			st.Pzxid -= f.Zxid
			st.Czxid, st.Mzxid = 0, 0
			trace = append(trace, s.stat(st))
		}
		return trace
	}
	addr, _ = startOurs(t, ours)
	got := play(addr)
	want := play(real.StartZooKeeper(t, append(apacheOptions, "dataDir="+apache)...).Addr)
	equalTrees(t, "the counter", got, want)
	t.Log(got)
}

// What a handshake asks for, and what it is granted.
func TestHandshakesAreAnsweredAsByZooKeeper(t *testing.T) {
	var got [][]string
	onBoth(t, func(t *testing.T, addr string) {
		var list []string
		for _, r := range []jute.ConnectRequest{
			{Timeout: 0}, {Timeout: 1<<31 - 1}, {Timeout: -1}, {Timeout: -1 << 31}, {Timeout: 10000, ReadOnly: true}, {Timeout: 10000, OldClient: true},
			{Timeout: 10000, ProtocolVersion: 7}, {Timeout: 10000, Password: []byte{}}, {Timeout: 10000, LastZxidSeen: 1 << 60}, {Timeout: 10000, SessionID: 5},
			{Timeout: 10000, LastZxidSeen: -1}, {Timeout: 10000, Password: make([]byte, 1000)},
		} {
			nc, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			c, err := keepertest.Connect(nc, r)
			if err != nil {
				list = append(list, strings.ReplaceAll(err.Error(), addr, ""))
				continue
			}
			c.Resp.SessionID, c.Resp.Password = 0, c.Resp.Password[:0]
			list = append(list, strings.TrimSpace(strings.Join([]string{string(rune('0' + len(list))), describe(c.Resp)}, " ")))
			c.Close()
		}
		got = append(got, list)
	})
	if len(got) == 2 {
		equalTrees(t, "handshakes", got[1], got[0])
	}
}

const patience = time.Minute

func describe(r jute.ConnectResponse) string { return fmt.Sprintf("%+v", r) }
