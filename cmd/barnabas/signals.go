package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// untilSignal returns a context that ends with the first SIGTERM or SIGINT. A
// second one ends the process at once: whoever sends it has waited enough.
func untilSignal() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		cancel()
		<-signals
		fmt.Fprintln(os.Stderr, "barnabas: second signal, stopping at once")
		os.Exit(1)
	}()
	return ctx, cancel
}
