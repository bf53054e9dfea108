package tool

import (
	"bufio"
	"io"
	"slices"
	"strings"

	"golang.org/x/term"
)

// lines give the shell its lines, one for each call; io.EOF ends it.
type lines func(prompt string) (string, error)

// plainLines reads standard input as it is.
func plainLines(r io.Reader) lines {
	in := bufio.NewReader(r)
	return func(string) (string, error) {
		line, err := in.ReadString('\n')
		if line != "" {
			err = nil
		}
		return strings.TrimRight(line, "\r\n"), err
	}
}

// keyboard is both ends of a terminal.
type keyboard struct {
	io.Reader
	io.Writer
}

// editedLines lets a person edit lines, walk through those before with the
// arrow keys, and complete commands and paths with the tab key. The terminal is
// raw only while a line is read.
func (s *shell) editedLines() lines {
	fd := int(s.call.Keyboard.Fd())
	t := term.NewTerminal(keyboard{s.call.In, s.call.Out}, "")
	s.screen = t
	t.AutoCompleteCallback = func(line string, pos int, key rune) (string, int, bool) {
		if key != '\t' {
			return "", 0, false
		}
		word, choices := s.complete(line[:pos])
		if len(choices) == 0 {
			return line, pos, true
		}
		common := commonPrefix(choices)
		if len(choices) > 1 && common == word {
			_, _ = t.Write([]byte(strings.Join(choices, "  ") + "\n")) // a screen that is gone ends ReadLine too
			return line, pos, true
		}
		if len(choices) == 1 && !strings.HasPrefix(common, "/") {
			common += " "
		}
		start := pos - len(word)
		return line[:start] + common + line[pos:], start + len(common), true
	}
	return func(prompt string) (string, error) {
		before, err := term.MakeRaw(fd)
		if err != nil {
			return "", err
		}
		defer term.Restore(fd, before) // nothing can be done about an error
		if width, height, err := term.GetSize(fd); err == nil && width > 0 {
			_ = t.SetSize(width, height) // fails only as a write does
		}
		t.SetPrompt(prompt)
		return t.ReadLine()
	}
}

// complete returns the word at the end of a line and what it may become: a
// command, one of its options, or the path of a node.
func (s *shell) complete(line string) (word string, choices []string) {
	word = line[strings.LastIndexAny(line, " \t")+1:]
	before := strings.Fields(strings.TrimSuffix(line, word))
	var all []string
	switch {
	case len(before) == 0:
		all = append(sortedKeys(shellCommands), "help")
	case strings.HasPrefix(word, "-"):
		for _, f := range strings.Fields(strings.ReplaceAll(shellCommands[before[0]].flags, ":", "")) {
			all = append(all, "-"+f)
		}
	case strings.HasPrefix(word, "/"), word == "" && shellCommands[before[0]].least > 0:
		if word == "" {
			return word, []string{"/"}
		}
		all = s.below(word[:strings.LastIndexByte(word, '/')+1])
		if slices.Contains(all, word) && !slices.ContainsFunc(all, func(c string) bool { return c != word && strings.HasPrefix(c, word) }) {
			all = s.below(word + "/") // it stands there whole
		}
	}
	for _, c := range all {
		if strings.HasPrefix(c, word) {
			choices = append(choices, c)
		}
	}
	slices.Sort(choices)
	return word, choices
}

// below returns the paths of the nodes in dir, which ends with a slash.
func (s *shell) below(dir string) (paths []string) {
	if s.closed {
		return nil
	}
	children, _, err := s.zk.Children(s.call.Context, "/"+strings.Trim(dir, "/"))
	if err != nil {
		return nil // nothing to choose from
	}
	for _, child := range children {
		paths = append(paths, dir+child)
	}
	return paths
}

func commonPrefix(list []string) string {
	first, last := list[0], list[len(list)-1]
	n := 0
	for n < len(first) && n < len(last) && first[n] == last[n] {
		n++
	}
	return first[:n]
}
