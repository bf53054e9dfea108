package main

import (
	"errors"
	"fmt"
	"net"
	"os"

	"barnabas/internal/keeper"

	"github.com/spf13/cobra"
)

func zookeeperCommand() *cobra.Command {
	var listen, dir string
	var connections int
	var logs logFlags
	cmd := &cobra.Command{
		Use:   "zookeeper",
		Short: "Serve the embedded ZooKeeper alone",
		Long: `Serve the embedded ZooKeeper alone, for Kafka brokers and their tools.
One server, no ensemble: what it has answered is on disk.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			logger, _, err := logs.logger()
			if err != nil {
				return err
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			server, err := keeper.Open(keeper.Options{Dir: dir, MaxClientConnections: connections, Logger: logger})
			if err != nil {
				return fmt.Errorf("%s: %w", dir, err)
			}
			socket, err := net.Listen("tcp", listen)
			if err != nil {
				return errors.Join(fmt.Errorf("--listen: %w", err), server.Close())
			}
			ctx, cancel := untilSignal()
			defer cancel()
			served := make(chan error, 1)
			go func() { served <- server.Serve(socket) }()
			fmt.Printf("barnabas: ZooKeeper listens on %s and keeps its data in %s\n", socket.Addr(), dir)
			select {
			case <-ctx.Done():
				err := server.Close()
				<-served
				return err
			case err := <-served:
				return errors.Join(err, server.Close())
			}
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:2181", "host:port to serve at")
	cmd.Flags().StringVar(&dir, "dir", "barnabas-data/keeper", "folder of its data")
	cmd.Flags().IntVar(&connections, "max-client-connections", 0, "connections of one address at a time; 0 is no limit")
	logs.add(cmd)
	return cmd
}
