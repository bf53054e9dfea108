package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// together is how close two signals are one: timeout(1), and shells and process
// managers that pass on a Ctrl-C that the program got already, send two.
const together = 500 * time.Millisecond

// untilSignal returns a context that ends with the first SIGTERM or SIGINT. A
// second one ends the process at once, unless it came together with the first:
// whoever sends it has waited enough.
func untilSignal() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		cancel()
		for window := time.NewTimer(together).C; window != nil; {
			select {
			case <-signals:
			case <-window:
				window = nil
			}
		}
		fmt.Fprintln(os.Stderr, "barnabas: still stopping; a second signal ends it at once")
		<-signals
		fmt.Fprintln(os.Stderr, "barnabas: second signal, stopping at once")
		os.Exit(1)
	}()
	return ctx, cancel
}
