package main

import (
	"fmt"
	"io"
	"os"

	"barnabas/internal/broker"
	"barnabas/internal/config"

	"github.com/spf13/cobra"
)

func startCommand() *cobra.Command {
	var overrides []string
	var logs logFlags
	cmd := &cobra.Command{
		Use:   "start [server.properties]",
		Short: "Start a broker",
		Long: `Start a broker with Kafka's server.properties, or with none.

While zookeeper.connect is unset the broker runs a ZooKeeper of its own, which
other programs reach at keeper.listen (127.0.0.1:2181), and keeps everything
under ./barnabas-data. SIGTERM or SIGINT stops it cleanly, a second one at once.`,
		Example: `  barnabas start
  barnabas start server.properties --override listeners=PLAINTEXT://0.0.0.0:9092 --override advertised.listeners=PLAINTEXT://kafka.example.org:9092`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var file string
			if len(args) == 1 {
				file = args[0]
			}
			return start(file, overrides, logs, os.Stdout)
		},
	}
	cmd.Flags().StringArrayVar(&overrides, "override", nil, "name=value of a property, in place of the file's; may be repeated")
	logs.add(cmd)
	return cmd
}

func start(file string, overrides []string, logs logFlags, out io.Writer) error {
	logger, level, err := logs.logger()
	if err != nil {
		return err
	}
	c, warnings, err := config.Load(file, overrides)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		logger.Warn(w.String())
	}
	tuneRuntime()
	ctx, cancel := untilSignal()
	defer cancel()
	b, err := broker.Start(ctx, broker.Options{Config: c, Logger: logger, Level: level})
	if err == broker.ErrStopped { // and all that was begun is undone: nothing failed
		logger.Info(err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	greet(out, b.Info())
	var failure error
	select {
	case <-ctx.Done():
		logger.Info("stopping")
	case failure = <-b.Failed():
		logger.Error("stopping", "err", failure)
	}
	if err := b.Stop(); err != nil && failure == nil {
		failure = err
	}
	return failure
}

// greet says where the broker listens, what it tells clients, and what to type
// next.
func greet(out io.Writer, info broker.Info) {
	fmt.Fprintf(out, "barnabas: broker %d of cluster %s is ready\n", info.ID, info.ClusterID)
	for i, l := range info.Listeners {
		fmt.Fprintf(out, "  listens on        %s\n", l)
		if i < len(info.Advertised) {
			fmt.Fprintf(out, "  tells clients     %s\n", info.Advertised[i])
		}
	}
	if info.Keeper != "" {
		fmt.Fprintf(out, "  ZooKeeper inside  %s\n", info.Keeper)
	}
	for _, dir := range info.LogDirs {
		fmt.Fprintf(out, "  keeps its data in %s\n", dir)
	}
	if len(info.Advertised) > 0 {
		address, producer, consumer := whereToTry(info.Advertised)
		fmt.Fprintf(out, "try:\n  %[1]s console-producer --bootstrap-server %[2]s%[3]s --topic greetings        (type lines, end with Ctrl-D)\n"+
			"  %[1]s console-consumer --bootstrap-server %[2]s%[4]s --topic greetings --from-beginning\n", os.Args[0], address, producer, consumer)
	}
}

// whereToTry is a listener without SASL, if there is one; for another the
// commands need a file with security.protocol and sasl.*.
func whereToTry(listeners []config.Listener) (address, producer, consumer string) {
	for _, l := range listeners {
		if l.Protocol == config.Plaintext {
			return l.Address(), "", ""
		}
	}
	return listeners[0].Address(), " --producer.config client.properties", " --consumer.config client.properties"
}
