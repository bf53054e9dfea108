package tool

import (
	"slices"
	"strconv"
	"strings"
)

// Option is one of a command's options.
type Option struct {
	Name     string // without the dashes
	Arg      string // what its value is; "": it has none
	Optional bool   // the value may be left out
	Default  string
	Text     string
	Required bool     // said in the help; the command checks
	Values   []string // all that it can be, for completion
	Topic    bool     // the value is the name of a topic, for completion
	Group    bool     // the value is the name of a group, for completion
	Property bool     // the value begins with the name of a property of topics or brokers, for completion
	Ours     bool     // Kafka's script has not got it
}

// Args is a parsed command line.
type Args struct {
	options []Option
	values  map[string][]string // present, if only with an empty list
	Rest    []string            // what is no option
}

func (c *Command) option(name string) (Option, bool) {
	for _, list := range [][]Option{c.Options, ours} {
		for _, o := range list {
			if o.Name == name {
				return o, true
			}
		}
	}
	return Option{}, false
}

// parse reads a command line as jopt-simple's OptionParser(false) does. The
// error is a *UsageError.
func (c *Command) parse(args []string) (*Args, error) {
	a := &Args{options: append(slices.Clone(c.Options), ours...), values: map[string][]string{}}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			a.Rest = append(a.Rest, args[i+1:]...)
			break
		}
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			a.Rest = append(a.Rest, arg)
			continue
		}
		name, value, given := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		if arg == "-h" {
			name = "help"
		}
		o, ok := c.option(name)
		if !ok {
			return nil, usage("%s is not a recognized option%s", name, c.didYouMean(name))
		}
		if _, ok := a.values[name]; !ok {
			a.values[name] = nil
		}
		switch {
		case o.Arg == "":
			continue
		case given:
		case o.Optional:
			if i+1 == len(args) || strings.HasPrefix(args[i+1], "-") {
				continue
			}
			i++
			value = args[i]
		case i+1 == len(args):
			return nil, usage("Option %s requires an argument", name)
		default:
			i++
			value = args[i]
		}
		a.values[name] = append(a.values[name], value)
	}
	return a, nil
}

// didYouMean names the option that an unknown one is nearest to, if it is near.
func (c *Command) didYouMean(name string) string {
	best, least := "", 3
	for _, o := range c.sorted() {
		if d := edits(name, o.Name); d < least && d < len(name) {
			best, least = o.Name, d
		}
	}
	if best == "" {
		return ""
	}
	return "\nDid you mean --" + best + "?"
}

// edits counts the letters to be put in, taken out or changed to make b of a
// (Levenshtein).
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := before
			if a[i] != b[j] {
				d++
			}
			before = row[j+1]
			row[j+1] = min(d, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Has tells whether an option was given.
func (a *Args) Has(name string) bool {
	_, ok := a.values[name]
	return ok
}

// All returns the values of an option that may be given several times.
func (a *Args) All(name string) []string { return a.values[name] }

// One returns the value of an option, or its default, or "". The error is a
// *UsageError when it was given more than once.
func (a *Args) One(name string) (string, error) {
	list := a.values[name]
	if len(list) > 1 {
		return "", usage("Found multiple arguments for option %s, but you asked for only one", name)
	}
	if len(list) == 1 {
		return list[0], nil
	}
	for _, o := range a.options {
		if o.Name == name {
			return o.Default, nil
		}
	}
	return "", nil
}

// Text is One without its error: the last value counts.
func (a *Args) Text(name string) string {
	if list := a.values[name]; len(list) > 0 {
		return list[len(list)-1]
	}
	s, _ := a.One(name) // not given more than once
	return s
}

// Integer returns the value of an option as a number of so many bits; ok tells
// whether there is one.
func (a *Args) Integer(name string, bits int) (n int64, ok bool, err error) {
	s, err := a.One(name)
	if err != nil || s == "" && !a.Has(name) {
		return 0, false, err
	}
	n, e := strconv.ParseInt(s, 10, bits)
	if e != nil {
		return 0, false, usage("Cannot parse argument '%s' of option %s", s, name)
	}
	return n, true, nil
}

// needs returns the usage error for the first of names that was not given
// (CommandLineUtils.checkRequiredArgs).
func (a *Args) needs(names ...string) error {
	for _, n := range names {
		if !a.Has(n) {
			return usage("Missing required argument \"[%s]\"", n)
		}
	}
	return nil
}

// not returns the usage error if name was given beside one of others
// (CommandLineUtils.checkInvalidArgs).
func (a *Args) not(name string, others ...string) error {
	if a.Has(name) {
		for _, o := range others {
			if o != name && a.Has(o) {
				return usage("Option \"[%s]\" can't be used with option \"[%s]\"", name, o)
			}
		}
	}
	return nil
}

// count returns how many of names were given.
func (a *Args) count(names ...string) (n int) {
	for _, name := range names {
		if a.Has(name) {
			n++
		}
	}
	return n
}
