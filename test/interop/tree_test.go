package interop

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"barnabas/internal/jute"
	"barnabas/internal/zookeeper"
)

// connect opens a ZooKeeper client that ends with the test.
func connect(t *testing.T, addr string) *zookeeper.Client {
	t.Helper()
	client, err := zookeeper.New(zookeeper.Options{Connect: addr, SessionTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// dumpTree returns a line for each znode but ZooKeeper's own, in the form of
// the golden files: path, kind, ACL, data.
func dumpTree(t *testing.T, zk *zookeeper.Client, path string) []string {
	t.Helper()
	data, stat, err := zk.Get(t.Context(), path)
	if errors.Is(err, jute.ErrNoNode) {
		return nil // deleted since its parent was listed
	}
	if err != nil {
		t.Fatalf("get %s: %v", path, err)
	}
	acls, _, err := zk.GetACL(t.Context(), path)
	if err != nil && !errors.Is(err, jute.ErrNoNode) {
		t.Fatalf("getACL %s: %v", path, err)
	}
	var out []string
	if path != "/" {
		kind := "persistent"
		if stat.EphemeralOwner != 0 {
			kind = "ephemeral"
		}
		out = append(out, fmt.Sprintf("%s %s acl=%s %s", path, kind, showACL(acls), showData(data)))
	}
	children, _, err := zk.Children(t.Context(), path)
	if err != nil && !errors.Is(err, jute.ErrNoNode) {
		t.Fatalf("children of %s: %v", path, err)
	}
	slices.Sort(children)
	for _, c := range children {
		if path == "/" && c == "zookeeper" {
			continue
		}
		out = append(out, dumpTree(t, zk, strings.TrimRight(path, "/")+"/"+c)...)
	}
	return out
}

func showACL(acls []jute.ACL) string {
	var parts []string
	for _, a := range acls {
		parts = append(parts, fmt.Sprintf("%s:%s:%d", a.ID.Scheme, a.ID.ID, a.Perms))
	}
	return strings.Join(parts, ",")
}

func showData(data []byte) string {
	if data == nil {
		return "null"
	}
	if len(data) == 0 {
		return `""`
	}
	return canonical(string(data))
}

// canonical re-encodes JSON with sorted keys; other text stays.
func canonical(s string) string {
	decoder := json.NewDecoder(strings.NewReader(s))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) != nil || decoder.More() {
		return s
	}
	b, _ := json.Marshal(v)
	return string(b)
}

var masks = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`"timestamp":"\d+"`), `"timestamp":"T"`},
	{regexp.MustCompile(`"topic_id":"[A-Za-z0-9_-]{22}"`), `"topic_id":"ID"`},
	{regexp.MustCompile(`("id"):"[A-Za-z0-9_-]{22}"`), `"id":"CLUSTER"`},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), `127.0.0.1:PORT`},
	{regexp.MustCompile(`"port":\d+`), `"port":PORT`},
	{regexp.MustCompile(`salt=[^,]+,stored_key=[^,]+,server_key=[^,]+,`), `salt=S,stored_key=K,server_key=K,`},
	{regexp.MustCompile(`"block_end":"\d+","block_start":"\d+","broker":\d+`), `"block_end":"E","block_start":"S","broker":B`},
	// 2.8 writes version 1 of /controller, 3.9 version 2.
	{regexp.MustCompile(`"kraftControllerEpoch":-1,`), ``},
	{regexp.MustCompile(`^(/controller .*)"version":2`), `$1"version":1`},
}

var (
	offsetsTopic  = regexp.MustCompile(`^(/brokers/topics/__consumer_offsets) .*"partitions":(\{[^}]*\})`)
	offsetsState  = regexp.MustCompile(`^/brokers/topics/__consumer_offsets/partitions/\d+/state `)
	offsetsLeader = regexp.MustCompile(`"isr":\[\d+\],"leader":\d+`)
)

// maskTree replaces what differs from run to run.
func maskTree(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		head, data, _ := strings.Cut(line, " acl=")
		acl, data, _ := strings.Cut(data, " ")
		line = head + " acl=" + acl + " " + canonical(strings.Trim(data, "'"))
		for _, m := range masks {
			line = m.pattern.ReplaceAllString(line, m.with)
		}
		if m := offsetsTopic.FindStringSubmatch(line); m != nil {
			line = strings.Replace(line, m[2], replicaCounts(m[2]), 1)
		}
		if offsetsState.MatchString(line) {
			line = offsetsLeader.ReplaceAllString(line, `"isr":[R],"leader":R`)
		}
		out[i] = line
	}
	return out
}

// replicaCounts returns how many partitions of an assignment each broker holds.
func replicaCounts(assignment string) string {
	var replicas map[string][]int
	if json.Unmarshal([]byte(assignment), &replicas) != nil {
		return assignment
	}
	counts := map[int]int{}
	for _, r := range replicas {
		for _, id := range r {
			counts[id]++
		}
	}
	return fmt.Sprint(counts)
}

// diffLines returns the lines that only one of two dumps has.
func diffLines(got, want []string) string {
	var b strings.Builder
	for _, line := range want {
		if !slices.Contains(got, line) {
			fmt.Fprintf(&b, "- %s\n", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			fmt.Fprintf(&b, "+ %s\n", line)
		}
	}
	return b.String()
}
