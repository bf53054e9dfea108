package tools

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"barnabas/test/real"
)

// guide follows a page of the documentation as a reader would: what is in its
// ```sh blocks is run by bash, and what a ```text block after one shows must
// come out, "..." standing for anything. A comment "<!-- test: WHAT -->" before
// a block tells what a reader is told in words:
//
//   - "in the repository": that is the current folder,
//   - "runs on as NAME [in the repository] [once "TEXT" is there]": in a terminal
//     of its own, until
//   - "ctrl-c NAME", with or without a block after it,
//   - "until it shows "EXPRESSION"": again and again.
//
// Ports 909N and 2181 are replaced by free ones.
type guide struct {
	t         *testing.T
	page      string
	repo, dir string
	ports     *strings.Replacer // of the page's
	back      *strings.Replacer
	env       []string
	running   map[string]*real.Process
}

func newGuide(t *testing.T, page string) *guide {
	t.Helper()
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	base, zk := freeBase(t), real.FreePort(t)
	g := &guide{t: t, page: filepath.Join(repo, page), repo: repo, dir: t.TempDir(), running: map[string]*real.Process{},
		ports: strings.NewReplacer("localhost:909", "localhost:"+base, "localhost:2181", "localhost:"+zk),
		back:  strings.NewReplacer("localhost:"+base, "localhost:909", "localhost:"+zk, "localhost:2181")}
	// A broker without a file listens on the ports of its defaults.
	overrides := fmt.Sprintf("--override listeners=PLAINTEXT://localhost:%s2 --override keeper.listen=localhost:%s", base, zk)
	shim := filepath.Join(t.TempDir(), "barnabas")
	script := fmt.Sprintf("#!/bin/sh\nif [ \"$*\" = start ]; then set -- start %s; fi\nexec %s \"$@\"\n", overrides, real.Binary(t))
	if err := os.WriteFile(shim, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	dirs := fmt.Sprintf(" --override log.dirs=%s --override keeper.dir=%s", filepath.Join(g.dir, "data"), filepath.Join(g.dir, "keeper"))
	g.env = append(os.Environ(), "PATH="+filepath.Dir(shim)+":"+os.Getenv("PATH"), "ARGS="+overrides+dirs)
	return g
}

// freeBase returns four digits that, with 1, 2 or 3 after them, are free ports.
func freeBase(t *testing.T) string {
	t.Helper()
	for range 100 {
		base := real.FreePort(t)
		base = base[:len(base)-1]
		free := true
		for _, last := range "123" {
			l, err := net.Listen("tcp", "localhost:"+base+string(last))
			if err != nil {
				free = false
				break
			}
			l.Close()
		}
		if free {
			return base
		}
	}
	t.Fatal("there are no three free ports in a row")
	return ""
}

var (
	directive = regexp.MustCompile(`^<!-- test: (.*) -->$`)
	runsOn    = regexp.MustCompile(`^runs on as (\S+)( in the repository)?(?: once "(.*)" is there)?$`)
	shown     = regexp.MustCompile(`^until it shows "(.*)"$`)
)

func (g *guide) follow() {
	g.t.Helper()
	data, err := os.ReadFile(g.page)
	if err != nil {
		g.t.Fatal(err)
	}
	var told, fence, out string
	var block []string
	blocks := 0
	for line := range strings.SplitSeq(string(data), "\n") {
		switch {
		case fence == "" && directive.MatchString(line):
			told = directive.FindStringSubmatch(line)[1]
			if name, ok := strings.CutPrefix(told, "ctrl-c "); ok {
				g.interrupt(name)
				told = ""
			}
		case fence == "" && strings.HasPrefix(line, "```"):
			fence, block = strings.TrimPrefix(line, "```")+" ", nil
		case fence != "" && line == "```":
			text := strings.Join(block, "\n")
			switch fence {
			case "sh ":
				out = g.run(told, text)
				told, blocks = "", blocks+1
			case "text ":
				g.compare(text, out)
			}
			fence = ""
			if g.t.Failed() {
				g.t.FailNow()
			}
		case fence != "":
			block = append(block, line)
		}
	}
	if blocks == 0 {
		g.t.Errorf("%s has no commands", g.page)
	}
}

func (g *guide) command(dir, text string) *exec.Cmd {
	cmd := exec.Command("bash", "-e", "-o", "pipefail", "-c", g.ports.Replace(text))
	cmd.Dir, cmd.Env = dir, g.env
	return cmd
}

func (g *guide) run(told, text string) string {
	g.t.Helper()
	dir := g.dir
	on := runsOn.FindStringSubmatch(told)
	if told == "in the repository" || on != nil && on[2] != "" {
		dir = g.repo
	}
	if on != nil {
		g.start(on[1], dir, text, on[3])
		return ""
	}
	until := shown.FindStringSubmatch(told)
	if told != "" && told != "in the repository" && until == nil {
		g.t.Fatalf("what does %q mean?", told)
	}
	once := func() (string, error) {
		cmd := g.command(dir, text)
		timer := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
		out, err := cmd.CombinedOutput()
		return g.back.Replace(string(out)), err
	}
	if until != nil {
		want, last := regexp.MustCompile(until[1]), ""
		real.Until(g.t, time.Minute, text+" to show "+until[1], func() bool {
			last, _ = once() // it may fail until then
			return want.MatchString(last)
		})
		return last
	}
	out, err := once()
	if err != nil {
		g.t.Errorf("%s\n%v\n%s", text, err, out)
	}
	return out
}

// speaks closes said when a program has written a text.
type speaks struct {
	text string
	said chan struct{}

	mu   sync.Mutex
	seen []byte // guarded by mu; nil once the text was there
}

func (s *speaks) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.said != nil {
		if s.seen = append(s.seen, p...); bytes.Contains(s.seen, []byte(s.text)) {
			close(s.said)
			s.said, s.seen = nil, nil
		}
	}
	return len(p), nil
}

// start runs a block in a terminal of its own and waits until it writes a text,
// or anything.
func (g *guide) start(name, dir, text, once string) {
	g.t.Helper()
	cmd := g.command(dir, "exec "+text)
	said := make(chan struct{})
	cmd.Stdout = &speaks{text: once, said: said}
	p := real.Start(g.t, name, cmd)
	g.running[name] = p
	if strings.HasPrefix(text, "make ") { // to be killed would leave its child
		g.t.Cleanup(func() {
			p.Signal(syscall.SIGTERM)
			p.Wait(time.Minute)
		})
	}
	select {
	case <-said:
	case <-p.Done():
		g.t.Fatalf("%s ended: %s", text, p.Output())
	case <-time.After(5 * time.Minute):
		g.t.Fatalf("%s writes nothing: %s", text, p.Output())
	}
}

func (g *guide) interrupt(name string) {
	g.t.Helper()
	p := g.running[name]
	if p == nil {
		g.t.Fatalf("nothing runs as %s", name)
	}
	p.Signal(syscall.SIGINT)
	if status := p.Wait(time.Minute); status != 0 && status != 130 {
		g.t.Errorf("%s ends with %d", name, status)
	}
	delete(g.running, name)
}

// compare compares line by line.
func (g *guide) compare(want, got string) {
	g.t.Helper()
	var pattern strings.Builder
	for line := range strings.SplitSeq(want, "\n") {
		pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(line, " ")), `\.\.\.`, ".*") + " *\n")
	}
	if !regexp.MustCompile("^" + pattern.String() + "$").MatchString(got) {
		g.t.Errorf("%s shows\n%s\nbut this came:\n%s", g.page, want, got)
	}
}

func TestTheTutorial(t *testing.T) { newGuide(t, "docs/tutorial.md").follow() }

func TestTheReadme(t *testing.T) { newGuide(t, "README.md").follow() }

func TestThePageForMoving(t *testing.T) {
	g := newGuide(t, "docs/moving.md")
	g.follow()
	page, err := os.ReadFile(g.page)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(real.Run(t, time.Minute, g.command(g.dir, "barnabas install-links --sh all | xargs -n1 basename"))) {
		if !strings.Contains(string(page), "| `"+name+"`") {
			t.Errorf("%s is not in the table of scripts", name)
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)

func TestLinksOfTheDocumentationLeadSomewhere(t *testing.T) {
	pages, err := filepath.Glob("../../*.md")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir("../../docs", func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if to := m[1]; !strings.Contains(to, "://") {
				if _, err := os.Stat(filepath.Join(filepath.Dir(page), to)); err != nil {
					t.Errorf("%s: %v", page, err)
				}
			}
		}
	}
}
