package keeper

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"barnabas/internal/jute"
)

var update = flag.Bool("update", false, "write the scripts' results anew")

// TestScripts runs testdata/scripts: commands, a line of dashes, and what the
// clients get. Commands:
//
//	connect NAME [timeout MS]     attach NAME [of NAME] [password WRONG] [seen ZXID]
//	drop NAME                     hold / let / fail / commit / reopen
//	tick DURATION                 NAME REQUEST ARGUMENTS
//
// Requests are named as in the protocol; words after the path: data=X,
// version=N, mode=N, acl=SCHEME:ID:PERMS, watch. "NAME multi REQUEST; REQUEST".
// Between hold and let or fail, a commit is under way.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := newSim()
			var held *batch
			var again []string
			for block := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
				input, want, _ := strings.Cut(block, "\n----")
				for line := range strings.Lines(input) {
					if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
						held = command(t, s, held, line)
					}
				}
				got := strings.Join(s.take(), "\n")
				again = append(again, strings.TrimSuffix(input+"\n----\n"+got, "\n"))
				if want = strings.TrimPrefix(want, "\n"); got != want && !*update {
					t.Errorf("%s\n---- got\n%s\n---- expected\n%s", input, got, want)
				}
			}
			if *update {
				if err := os.WriteFile(file, []byte(strings.Join(again, "\n\n")+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func command(t *testing.T, s *sim, held *batch, line string) *batch {
	t.Helper()
	words := strings.Fields(line)
	option := func(name, standard string) string {
		for i, w := range words[:len(words)-1] {
			if w == name {
				return words[i+1]
			}
		}
		return standard
	}
	number := func(text string, base int) int64 {
		v, err := strconv.ParseInt(text, base, 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return v
	}
	switch words[0] {
	case "connect":
		s.connect(words[1], jute.ConnectRequest{Timeout: int32(number(option("timeout", "10000"), 10)), LastZxidSeen: number(option("seen", "0"), 16)})
	case "attach":
		c := s.clients[option("of", words[1])]
		password := c.password
		if p := option("password", ""); p != "" {
			password = []byte(p)
		}
		s.connect(words[1], jute.ConnectRequest{Timeout: int32(number(option("timeout", "10000"), 10)), SessionID: c.id, Password: password,
			LastZxidSeen: number(option("seen", "0"), 16)})
	case "drop":
		s.drop(words[1])
	case "hold":
		return s.hold()
	case "let":
		s.let(held)
	case "fail":
		s.fail(held)
	case "commit":
		s.commit()
	case "reopen":
		s.reopen()
	case "tick":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			t.Fatal(err)
		}
		s.now = s.now.Add(d)
		s.c.expire(s.now)
		s.collect()
	default:
		if s.clients[words[0]] == nil || s.clients[words[0]].cl == nil {
			t.Fatalf("%s: no such client", line)
		}
		op, body := parse(t, strings.TrimSpace(strings.TrimPrefix(line, words[0])))
		s.send(words[0], op, body)
	}
	return held
}

var opsByName = func() map[string]jute.Op {
	m := map[string]jute.Op{}
	for op := jute.Op(-11); op < 110; op++ {
		m[op.String()] = op
	}
	return m
}()

// parse reads one request.
func parse(t *testing.T, text string) (jute.Op, jute.Record) {
	t.Helper()
	name, rest, _ := strings.Cut(text, " ")
	op, ok := opsByName[name]
	if !ok {
		t.Fatalf("%q: no such request", text)
	}
	if op == jute.OpMulti || op == jute.OpMultiRead {
		m := &jute.MultiRequest{}
		for part := range strings.SplitSeq(rest, ";") {
			if part = strings.TrimSpace(part); part != "" {
				o, body := parse(t, part)
				m.Ops = append(m.Ops, jute.MultiOp{Op: o, Request: body})
			}
		}
		return op, m
	}
	var path, data, mode string
	version, watch := int64(-1), false
	acl := jute.WorldACL()
	var paths []string
	for _, w := range strings.Fields(rest) {
		key, value, given := strings.Cut(w, "=")
		switch {
		case w == "watch":
			watch = true
		case given && key == "data":
			data = value
		case given && key == "mode":
			mode = value
		case given && key == "version":
			version, _ = strconv.ParseInt(value, 16, 64)
		case given && key == "acl":
			parts := strings.Split(value, ",")
			perm, err := strconv.Atoi(parts[2])
			if err != nil {
				t.Fatal(err)
			}
			acl = []jute.ACL{{Perms: int32(perm), ID: jute.ID{Scheme: parts[0], ID: parts[1]}}}
		default:
			path = w
			paths = append(paths, w)
		}
	}
	switch r := jute.NewRequest(op).(type) {
	case *jute.CreateRequest:
		m, _ := strconv.Atoi(mode)
		return op, &jute.CreateRequest{Path: path, Data: []byte(data), ACL: acl, Mode: jute.CreateMode(m)}
	case *jute.PathWatchRequest:
		return op, &jute.PathWatchRequest{Path: path, Watch: watch}
	case *jute.PathVersionRequest:
		return op, &jute.PathVersionRequest{Path: path, Version: int32(version)}
	case *jute.SetDataRequest:
		return op, &jute.SetDataRequest{Path: path, Data: []byte(data), Version: int32(version)}
	case *jute.SetACLRequest:
		return op, &jute.SetACLRequest{Path: path, ACL: acl, Version: int32(version)}
	case *jute.PathRequest:
		return op, &jute.PathRequest{Path: path}
	case *jute.AuthPacket:
		return op, &jute.AuthPacket{Scheme: path, Auth: []byte(data)}
	case *jute.SetWatchesRequest: // setWatches PATH version=ZXID: all three kinds
		return op, &jute.SetWatchesRequest{RelativeZxid: version, Data: paths, Exist: paths, Child: paths}
	case nil:
		return op, nil
	default:
		panic(fmt.Sprintf("%T", r))
	}
}
