// Command barnabas is a broker that speaks Apache Kafka's protocol and keeps
// Kafka's files and znodes, with a ZooKeeper-protocol server inside.
//
// This package holds flags and wiring only, one file for each subcommand; what
// they do lives in internal/broker, internal/keeper and internal/tool.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// version is set by the linker in releases.
var version = "0.1.0-dev"

// errReported ends the program with status 1 when the reason is printed already.
var errReported = errors.New("reported")

func main() {
	if err := root().Execute(); err != nil {
		if !errors.Is(err, errReported) {
			fmt.Fprintln(os.Stderr, "barnabas:", err)
		}
		os.Exit(1)
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "barnabas",
		Short:         "A Kafka broker in one static binary, with its own ZooKeeper",
		Version:       version + " (answers as Apache Kafka 3.9.1 in ZooKeeper mode)",
		SilenceUsage:  true,
		SilenceErrors: true,

		SuggestionsMinimumDistance: 2,

		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }, // so that Args is checked
	}
	cmd.SetFlagErrorFunc(func(on *cobra.Command, err error) error {
		if args := on.Flags().Args(); on == cmd && len(args) > 0 { // the flag is of a command that is misspelt
			return unknownCommand(cmd, args[0])
		}
		return err
	})
	cmd.AddCommand(startCommand(), zookeeperCommand())
	addTools(cmd, os.Args)
	return cmd
}

func unknownCommand(cmd *cobra.Command, name string) error {
	next := "barnabas --help lists the commands"
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		next = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("unknown command %q; %s", name, next)
}
