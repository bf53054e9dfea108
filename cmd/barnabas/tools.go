package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"barnabas/internal/tool"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// addTools adds the commands that stand for Kafka's scripts. If the program was
// called by the name of one, as through a link made by install-links, the whole
// command line is that script's.
func addTools(root *cobra.Command, called []string) {
	name := filepath.Base(called[0])
	script := tool.Find(name)
	if name == root.Name() {
		script = nil
	}
	for _, c := range tool.Commands() {
		root.AddCommand(toolCommand(c, script != nil))
	}
	root.AddCommand(installLinksCommand())
	if script == nil {
		return
	}
	args := called[1:]
	if len(args) > 0 && strings.HasPrefix(args[0], "__complete") { // a shell asks what may come next
		root.SetArgs(slices.Insert(slices.Clone(args), 1, script.Name))
		return
	}
	root.SetArgs(append([]string{script.Name}, args...))
}

func toolCommand(c *tool.Command, script bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:                c.Name,
		Short:              c.Short,
		Long:               c.Purpose,
		DisableFlagParsing: true, // options are read as Kafka's scripts read them
		RunE:               func(_ *cobra.Command, args []string) error { return runTool(c, args, script) },
		ValidArgsFunction: func(cmd *cobra.Command, args []string, last string) ([]string, cobra.ShellCompDirective) {
			words, files := c.Complete(cmd.Context(), args, last)
			if files {
				return nil, cobra.ShellCompDirectiveDefault
			}
			if len(words) > 0 && strings.HasSuffix(words[0], "=") { // its value follows
				return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
			}
			return words, cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) { c.PrintHelp(cmd.OutOrStdout()) })
	return cmd
}

// runTool runs a command until it ends, a signal comes, or nobody reads what it
// writes. A second signal ends the process at once.
func runTool(c *tool.Command, args []string, script bool) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	signal.Ignore(syscall.SIGPIPE) // a consumer has a group to leave
	stopped := make(chan syscall.Signal, 1)
	go func() {
		s := <-signals
		signal.Stop(signals)
		if n, ok := s.(syscall.Signal); ok {
			stopped <- n
		}
		cancel()
	}()
	call := &tool.Call{Context: ctx, Script: script, In: &interruptible{ctx, os.Stdin}, Out: &pipe{os.Stdout, cancel}, Err: os.Stderr, Screen: term.IsTerminal(int(os.Stderr.Fd()))}
	if term.IsTerminal(int(os.Stdin.Fd())) {
		call.Keyboard = os.Stdin
	}
	err := c.Execute(call, args)
	var exit *tool.ExitError
	select {
	case s := <-stopped:
		os.Exit(128 + int(s)) // as a shell tells it
	default:
	}
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit):
		os.Exit(exit.Code)
	}
	return errReported
}

// interruptible is standard input whose reader does not wait when the command
// is to end.
type interruptible struct {
	ctx context.Context
	in  io.Reader
}

func (r *interruptible) Read(p []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	buf, done := make([]byte, len(p)), make(chan result, 1)
	go func() { // ends with the process at the latest
		n, err := r.in.Read(buf)
		done <- result{n, err}
	}()
	select {
	case got := <-done:
		return copy(p, buf[:got.n]), got.err
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	}
}

// pipe is standard output; the command ends when nobody reads it any more.
type pipe struct {
	out    io.Writer
	cancel context.CancelFunc
}

func (w *pipe) Write(p []byte) (int, error) {
	n, err := w.out.Write(p)
	if err != nil {
		w.cancel()
	}
	return n, err
}

func installLinksCommand() *cobra.Command {
	var suffix bool
	cmd := &cobra.Command{
		Use:   "install-links DIR",
		Short: "Make links with the names of Kafka's scripts",
		Long: `Make links with the names of Kafka's scripts in a folder.

Called as kafka-topics, the program behaves as "barnabas topics" does; with
--sh the links end with .sh, as in Kafka's bin folder.`,
		Example: "  barnabas install-links ~/bin",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name one folder: barnabas install-links DIR")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return installLinks(cmd, args[0], suffix)
		},
	}
	cmd.Flags().BoolVar(&suffix, "sh", false, "let the names end with .sh")
	return cmd
}

func installLinks(cmd *cobra.Command, dir string, suffix bool) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, c := range tool.Commands() {
		if c.Script == "" {
			continue
		}
		link := filepath.Join(dir, c.Script)
		if suffix {
			link += ".sh"
		}
		if old, err := os.Readlink(link); err == nil && old == self {
			continue
		}
		if err := os.Symlink(self, link); err != nil {
			return fmt.Errorf("%w; remove what is there if it may go", err)
		}
		fmt.Fprintln(cmd.OutOrStdout(), link)
	}
	return nil
}
