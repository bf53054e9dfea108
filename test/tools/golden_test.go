package tools

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"barnabas/test/real"
)

func TestMain(m *testing.M) { real.Main(m) }

// step is one command line of a session and what is known of its answer.
type step struct {
	comments []string // and files, as they stand
	line     string
	mark     string // "~" any order of lines, "=" blanks and ends of lines do not count
	input    []string
	out      []string
	err      string
	exit     int
}

func (s step) args(broker, zookeeper, dir string) []string {
	var args []string
	for _, a := range splitLine(s.line) {
		args = append(args, strings.NewReplacer("@B", broker, "@Z", zookeeper, "@D", dir).Replace(a))
	}
	return args
}

// splitLine splits at blanks, except between single quotes.
func splitLine(line string) (args []string) {
	var arg []byte
	quoted, begun := false, false
	for i := range len(line) {
		switch c := line[i]; {
		case c == '\'':
			quoted, begun = !quoted, true
		case c == ' ' && !quoted:
			if begun {
				args = append(args, string(arg))
			}
			arg, begun = nil, false
		default:
			arg, begun = append(arg, c), true
		}
	}
	if begun {
		args = append(args, string(arg))
	}
	return args
}

func readSession(t *testing.T, file string) (steps []step) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var comments []string
	for n, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		kind, rest := line, ""
		if line != "" {
			kind, rest = line[:1], strings.TrimPrefix(line[1:], " ")
		}
		if strings.Contains("<|!?", kind) && kind != "" && len(steps) == 0 {
			t.Fatalf("%s:%d: no command line before this", file, n+1)
		}
		switch kind {
		case "", "#", "@", "+":
			comments = append(comments, line)
		case "$":
			s := step{comments: comments, line: rest}
			if strings.HasPrefix(rest, "~ ") || strings.HasPrefix(rest, "= ") {
				s.mark, s.line = rest[:1], rest[2:]
			}
			steps, comments = append(steps, s), nil
		case "<":
			s := &steps[len(steps)-1]
			s.input = append(s.input, rest)
		case "|":
			s := &steps[len(steps)-1]
			s.out = append(s.out, rest)
		case "!":
			steps[len(steps)-1].err = rest
		case "?":
			fmt.Sscan(rest, &steps[len(steps)-1].exit)
		default:
			t.Fatalf("%s:%d: %q", file, n+1, line)
		}
	}
	return steps
}

// makeFiles makes the files that stand before a command line.
func makeFiles(t *testing.T, dir string, comments []string) {
	t.Helper()
	name, text := "", ""
	flush := func() {
		if name != "" {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		name, text = "", ""
	}
	for _, c := range comments {
		switch {
		case strings.HasPrefix(c, "@ "):
			flush()
			var first string
			name, first, _ = strings.Cut(c[2:], " ")
			text = first + "\n"
		case strings.HasPrefix(c, "+"):
			text += strings.TrimPrefix(c[1:], " ") + "\n"
		}
	}
	flush()
}

var (
	zkWhen   = regexp.MustCompile(`^([cm]time) = .*`)
	zkZxid   = regexp.MustCompile(`^([cmp]Zxid) = .*`)
	topicID  = regexp.MustCompile(`TopicId: [\w-]{22}`)
	javaLog  = regexp.MustCompile(`^\[\d{4}-[^\]]*\] (ERROR|WARN|INFO) `)
	javaName = regexp.MustCompile(`\b(Exception in thread "\w+" )?((java|org|kafka|joptsimple)\.[\w.$]*(Exception|Error)\b:? ?)+`)
	logger   = regexp.MustCompile(` \((org|kafka)\.[\w.$]+\)$`)
	uptime   = regexp.MustCompile(`CreateTime:\d+`)
)

type place struct{ broker, zookeeper, dir string }

func (p place) clean(s string) string {
	s = strings.NewReplacer(p.broker, "@B", p.zookeeper, "@Z", p.dir, "@D").Replace(s)
	s = zkWhen.ReplaceAllString(zkZxid.ReplaceAllString(s, "$1 = @N"), "$1 = @MS")
	s = topicID.ReplaceAllString(s, "TopicId: @ID")
	return uptime.ReplaceAllString(s, "CreateTime:@MS")
}

// sentence is what the first line on standard error says, without Java's names.
func (p place) sentence(errOut string) string {
	for line := range strings.SplitSeq(errOut, "\n") {
		line = javaLog.ReplaceAllString(line, "")
		line = logger.ReplaceAllString(line, "")
		line = strings.TrimSpace(javaName.ReplaceAllString(line, ""))
		if line != "" && !strings.HasPrefix(line, "at ") && !strings.HasPrefix(line, "[AdminClient") && line != "Unknown error when running consumer:" {
			return p.clean(line)
		}
	}
	return ""
}

// isWatch tells whether a line is one that zookeeper-shell prints when it likes.
func isWatch(s step, line string) bool {
	return strings.HasPrefix(s.line, "zookeeper-shell") && (line == "" || line == "WATCHER::" || strings.HasPrefix(line, "WatchedEvent "))
}

var javaTrace = regexp.MustCompile(`^(\tat |\t\.\.\. |Caused by: |(java|org|kafka)\.[\w.$]*(Exception|Error): )`)

// isTrace tells whether a line is of a Java stack trace, which some scripts
// print to standard output.
func isTrace(line string) bool { return javaTrace.MatchString(line) }

func (p place) run(t *testing.T, s step, cmd *exec.Cmd) step {
	t.Helper()
	var out, errOut bytes.Buffer
	if len(s.input) > 0 {
		cmd.Stdin = strings.NewReader(strings.Join(s.input, "\n") + "\n")
	}
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait() // the exit status is part of the answer
	timer.Stop()
	s.out = nil
	if out.Len() > 0 {
		for line := range strings.SplitSeq(strings.TrimSuffix(out.String(), "\n"), "\n") {
			if line = strings.TrimRight(p.clean(line), " "); !isWatch(s, line) && !isTrace(line) {
				s.out = append(s.out, line)
			}
		}
	}
	s.err, s.exit = p.sentence(errOut.String()), cmd.ProcessState.ExitCode()
	return s
}

func sessions(t *testing.T) []string {
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil || len(files) == 0 {
		t.Fatal(err, "no sessions")
	}
	return files
}

func kafkaPlace(t *testing.T) place {
	zk := real.ZooKeeper(t)
	return place{real.Kafka(t, "3.9.1", 1, zk).Addr, zk, ""}
}

func TestCommandsAnswerAsKafkasScripts(t *testing.T) {
	for _, cluster := range []struct {
		name  string
		start func(t *testing.T) place
	}{
		{"kafka-3.9.1", kafkaPlace},
		{"barnabas", func(t *testing.T) place {
			b := real.Barnabas(t, 1)
			return place{b.Addr, b.Keeper, ""}
		}},
	} {
		t.Run(cluster.name, func(t *testing.T) {
			for _, file := range sessions(t) {
				t.Run(strings.TrimSuffix(filepath.Base(file), ".golden"), func(t *testing.T) {
					p := cluster.start(t)
					p.dir = t.TempDir()
					for _, want := range readSession(t, file) {
						makeFiles(t, p.dir, want.comments)
						got := p.run(t, want, exec.Command(real.Binary(t), want.args(p.broker, p.zookeeper, p.dir)...))
						compare(t, want, got)
					}
				})
			}
		})
	}
}

func compare(t *testing.T, want, got step) {
	t.Helper()
	switch want.mark {
	case "~":
		slices.Sort(want.out)
		slices.Sort(got.out)
	case "=":
		want.out, got.out = strings.Fields(strings.Join(want.out, " ")), strings.Fields(strings.Join(got.out, " "))
	}
	if !slices.Equal(want.out, got.out) {
		t.Errorf("%s\nKafka's script wrote:\n  %s\nours:\n  %s", want.line, strings.Join(want.out, "\n  "), strings.Join(got.out, "\n  "))
	}
	if want.exit != got.exit {
		t.Errorf("%s\nKafka's script exits with %d, ours with %d: %s", want.line, want.exit, got.exit, got.err)
	}
	if want.err != "" && !strings.Contains(got.err, want.err) {
		t.Errorf("%s\nKafka's script says: %s\nours says:           %s", want.line, want.err, got.err)
	}
}
