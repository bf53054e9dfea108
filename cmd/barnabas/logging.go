package main

import (
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// logFlags are the flags of the subcommands that keep running.
type logFlags struct{ format, level string }

func (f *logFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.format, "log-format", "text", "text or json; log lines go to stderr")
	cmd.Flags().StringVar(&f.level, "log-level", "info", "debug, info, warn or error")
}

// logger returns the logger, and its level, which may change while it is used.
func (f *logFlags) logger() (*slog.Logger, *slog.LevelVar, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.level)); err != nil {
		return nil, nil, fmt.Errorf("--log-level %q: write debug, info, warn or error", f.level)
	}
	current := &slog.LevelVar{}
	current.Set(level)
	options := &slog.HandlerOptions{Level: current, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr { return bounded(a) }}
	switch f.format {
	case "text":
		return slog.New(slog.NewTextHandler(os.Stderr, options)), current, nil
	case "json":
		options.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
			if a.Value.Kind() == slog.KindDuration { // as in text, not a number of nanoseconds
				a.Value = slog.StringValue(a.Value.Duration().String())
			}
			return bounded(a)
		}
		return slog.New(slog.NewJSONHandler(os.Stderr, options)), current, nil
	}
	return nil, nil, fmt.Errorf("--log-format %q: write text or json", f.format)
}

// longest bounds a value in the log: it may hold what anybody wrote into a znode
// or a request.
const longest = 1024

// bounded cuts a long text or error.
func bounded(a slog.Attr) slog.Attr {
	text := ""
	switch v := a.Value.Any().(type) {
	case string:
		text = v
	case error:
		text = v.Error()
	default:
		return a
	}
	if len(text) > longest {
		a.Value = slog.StringValue(fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(text[:longest], ""), len(text)))
	}
	return a
}
