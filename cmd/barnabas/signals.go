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
// second one ends the process at once: whoever sends it has waited enough. One
// that came together with the first gives the clean stop that long.
func untilSignal() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		cancel()
		window := time.NewTimer(together)
		select {
		case <-signals:
			<-window.C
		case <-window.C:
			fmt.Fprintln(os.Stderr, "barnabas: still stopping; a second signal ends it at once")
			<-signals
		}
		fmt.Fprintln(os.Stderr, "barnabas: second signal, stopping at once")
		os.Exit(1)
	}()
	return ctx, cancel
}
