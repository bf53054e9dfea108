package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"barnabas/internal/tool"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// addTools adds the commands that stand for Kafka's scripts. If the program was
// called by the name of one, as through a link made by install-links, the whole
// command line is that script's.
func addTools(root *cobra.Command, called []string) {
	for _, c := range tool.Commands() {
		root.AddCommand(toolCommand(c))
	}
	root.AddCommand(installLinksCommand())
	if name := filepath.Base(called[0]); name != root.Name() {
		if c := tool.Find(name); c != nil {
			root.SetArgs(append([]string{c.Name}, called[1:]...))
		}
	}
}

func toolCommand(c *tool.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:                c.Name,
		Short:              c.Short,
		Long:               c.Purpose,
		DisableFlagParsing: true, // options are read as Kafka's scripts read them
		RunE: func(_ *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			call := &tool.Call{Context: ctx, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Terminal: isTerminal(os.Stdin)}
			err := c.Execute(call, args)
			var exit *tool.ExitError
			switch {
			case err == nil:
				return nil
			case errors.As(err, &exit):
				stop()
				os.Exit(exit.Code)
			}
			return errReported
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, last string) ([]string, cobra.ShellCompDirective) {
			return c.Complete(args, last), cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) { c.PrintHelp(cmd.OutOrStdout()) })
	return cmd
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
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
		Args:    cobra.ExactArgs(1),
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
