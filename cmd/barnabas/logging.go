package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
)

// logFlags are the flags of the subcommands that keep running.
type logFlags struct{ format, level string }

func (f *logFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.format, "log-format", "text", "text or json; log lines go to stderr")
	cmd.Flags().StringVar(&f.level, "log-level", "info", "debug, info, warn or error")
}

func (f *logFlags) logger() (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: write debug, info, warn or error", f.level)
	}
	options := &slog.HandlerOptions{Level: level}
	switch f.format {
	case "text":
		return slog.New(slog.NewTextHandler(os.Stderr, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(os.Stderr, options)), nil
	}
	return nil, fmt.Errorf("--log-format %q: write text or json", f.format)
}
