package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Version is the release whose scripts these are; --version prints it first.
const Version = "3.9.1"

// Command is one subcommand.
type Command struct {
	Name    string // of the subcommand: "topics"
	Script  string // of Kafka's script, without .sh: "kafka-topics"
	Short   string // one line, for the list of commands
	Purpose string // the first line of Kafka's help
	Long    string // what is ours, in paragraphs
	Example []string
	Options []Option
	// Before is put before the message of a usage error, if Kafka does.
	Before string
	// OwnArgs: Run reads the command line itself.
	OwnArgs bool
	// Words are what may stand without an option after a command line, for
	// completion; nil: nothing.
	Words func(ctx context.Context, c *Command, before []string) []string
	Run   func(*Call) error
}

// Call is one run of a command.
type Call struct {
	Context  context.Context
	Args     *Args
	In       io.Reader
	Out, Err io.Writer
	// Script: the command was called by the name of Kafka's script.
	Script bool
	// Keyboard is In if a person types there, else nil.
	Keyboard *os.File
	// Screen tells whether Err is what a person looks at.
	Screen bool
	JSON   bool

	command *Command
	raw     []string
}

// ErrReported is the error of a command that failed and has said why.
var ErrReported = errors.New("tool: failed, and said so")

// UsageError is a command line that cannot be.
type UsageError struct {
	Message  string
	Examples bool // whether those of the command are shown
}

// Error returns the message.
func (e *UsageError) Error() string { return e.Message }

func usage(format string, args ...any) error {
	return &UsageError{fmt.Sprintf(format, args...), true}
}

func terse(format string, args ...any) error {
	return &UsageError{fmt.Sprintf(format, args...), false}
}

// ours are the options that every command has and Kafka's have not.
var ours = []Option{
	{Name: "output", Arg: "text or json", Default: "text", Ours: true, Text: "How results are written.", Values: []string{"text", "json"}},
	{Name: "help", Text: "Print usage information."},
	{Name: "version", Text: "Display Kafka version."},
}

// Execute runs a command line without the command's name. The error is nil,
// ErrReported for the exit status 1, or an *ExitError.
func (c *Command) Execute(call *Call, args []string) error {
	call.command, call.raw = c, args
	parsed, err := c.parse(args)
	if c.OwnArgs {
		parsed, err = c.parse(nil)
		if len(args) > 0 {
			switch args[0] {
			case "--help", "-h":
				parsed.values["help"] = nil
			case "--version":
				parsed.values["version"] = nil
			}
		}
	}
	if err == nil && parsed.Has("help") {
		if call.Script { // Kafka's exit with 1 after --help
			c.PrintHelp(call.Err)
			return ErrReported
		}
		c.PrintHelp(call.Out)
		return nil
	}
	if err == nil && parsed.Has("version") {
		fmt.Fprintln(call.Out, Version)
		return nil
	}
	if err == nil {
		call.Args = parsed
		switch out, e := parsed.One("output"); {
		case e != nil:
			err = e
		case out == "json":
			call.JSON = true
		case out != "text":
			err = usage("--output %q: write text or json", out)
		}
	}
	if err == nil {
		err = c.Run(call)
	}
	var bad *UsageError
	var exit *ExitError
	if call.JSON && err != nil && !errors.Is(err, ErrReported) && !errors.As(err, &exit) {
		if e := call.printJSON(map[string]string{"error": text(err)}); e != nil {
			return ErrReported // nobody reads
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit):
		return exit
	case errors.As(err, &bad):
		fmt.Fprintln(call.Err, c.Before+bad.Message)
		if bad.Examples && len(c.Example) > 0 {
			fmt.Fprintf(call.Err, "For example:\n  %s\n", strings.Join(c.Example, "\n  "))
		}
		fmt.Fprintf(call.Err, "barnabas %s --help lists the options.\n", c.Name)
	case errors.Is(err, ErrReported):
	default:
		fmt.Fprintln(call.Err, c.Before+text(err))
		call.hint(err)
	}
	return ErrReported
}

// Find returns the command of a name: the subcommand's, or a script's with or
// without .sh. nil: there is none.
func Find(name string) *Command {
	name = strings.TrimSuffix(name, ".sh")
	for _, c := range Commands() {
		if c.Name == name || c.Script == name {
			return c
		}
	}
	return nil
}
