package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"time"

	"barnabas/internal/keeper"
	"barnabas/internal/pemstore"

	"github.com/spf13/cobra"
)

// zookeeperFlags are the flags of "barnabas zookeeper". Those that a zoo.cfg or
// a system property of ZooKeeper has say its name.
type zookeeperFlags struct {
	listen, dir                           string
	sslListen, sslKeyStore, sslTrustStore string
	options                               keeper.Options
	ttl                                   bool
	logs                                  logFlags
}

func zookeeperCommand() *cobra.Command {
	var f zookeeperFlags
	cmd := &cobra.Command{
		Use:   "zookeeper",
		Short: "Serve the embedded ZooKeeper alone",
		Long: `Serve the embedded ZooKeeper alone, for Kafka brokers and their tools.
One server, no ensemble: what it has answered is on disk. Its files are Apache
ZooKeeper's: see "export" and "import".`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return f.run() },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:2181", "host:port to serve at (clientPort, clientPortAddress); empty for none")
	flags.StringVar(&f.dir, "dir", "barnabas-data/keeper", "folder of its data (dataDir)")
	flags.IntVar(&f.options.MaxClientConnections, "max-client-connections", 0, "connections of one address at a time; 0 is no limit (maxClientCnxns)")
	flags.DurationVar(&f.options.TickTime, "tick-time", 2*time.Second, "sessions expire on ticks (tickTime)")
	flags.DurationVar(&f.options.MinSessionTimeout, "min-session-timeout", 0, "0 is 2 ticks (minSessionTimeout)")
	flags.DurationVar(&f.options.MaxSessionTimeout, "max-session-timeout", 0, "0 is 20 ticks (maxSessionTimeout)")
	flags.IntVar(&f.options.MaxBuffer, "max-buffer", 4<<20, "bytes of the largest request (jute.maxbuffer)")
	flags.StringSliceVar(&f.options.Words, "words", []string{"ruok", "srvr", "mntr", "isro"}, "four-letter words that are served, * for all (4lw.commands.whitelist)")
	flags.StringVar(&f.options.SuperDigest, "super-digest", "", "user:hash of who may do everything (DigestAuthenticationProvider.superDigest)")
	flags.BoolVar(&f.options.EnforceQuota, "enforce-quota", false, "refuse what breaks a quota's hard limit (enforceQuota)")
	flags.BoolVar(&f.ttl, "ttl-nodes", true, "let nodes have a time to live (extendedTypesEnabled)")
	flags.DurationVar(&f.options.ContainerInterval, "container-interval", time.Minute, "between two looks for empty containers (znode.container.checkIntervalMs)")
	flags.IntVar(&f.options.ContainersPerMinute, "containers-per-minute", 10_000, "deletions of containers at most (znode.container.maxPerMinute)")
	flags.DurationVar(&f.options.ContainerNeverUsed, "container-never-used", 0, "a container that never had a child goes after this; 0 is never (znode.container.maxNeverUsedIntervalMs)")
	flags.StringVar(&f.sslListen, "ssl-listen", "", "host:port to serve TLS at (secureClientPort)")
	flags.StringVar(&f.sslKeyStore, "ssl-keystore-location", "", "PEM file of the server's private key and certificates (ssl.keyStore.location)")
	flags.StringVar(&f.sslTrustStore, "ssl-truststore-location", "", "PEM file of the certificates that vouch for clients', which must show one; empty asks for none (ssl.trustStore.location)")
	f.logs.add(cmd)
	cmd.AddCommand(exportCommand(), importCommand())
	return cmd
}

func (f *zookeeperFlags) run() error {
	logger, _, err := f.logs.logger()
	if err != nil {
		return err
	}
	slog.SetDefault(logger)
	var secure *tls.Config
	if f.sslListen != "" {
		if secure, err = pemstore.Server(f.sslKeyStore, f.sslTrustStore); err != nil {
			return fmt.Errorf("--ssl-listen: %w", err)
		}
	}
	f.options.Dir, f.options.NoTTLNodes, f.options.Logger = f.dir, !f.ttl, logger
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(-1) // what is read at the start stays: to collect it is time lost
	}
	server, err := keeper.Open(f.options)
	tuneRuntime()
	if err != nil {
		return fmt.Errorf("%s: %w", f.dir, err)
	}
	var serve []func() error
	for _, l := range []struct {
		flag, addr string
		tls        *tls.Config
	}{{"--listen", f.listen, nil}, {"--ssl-listen", f.sslListen, secure}} {
		if l.addr == "" {
			continue
		}
		socket, err := net.Listen("tcp", l.addr)
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", l.flag, err), server.Close())
		}
		fmt.Printf("barnabas: ZooKeeper listens on %s and keeps its data in %s\n", socket.Addr(), f.dir)
		if l.tls != nil {
			serve = append(serve, func() error { return server.ServeTLS(socket, l.tls) })
		} else {
			serve = append(serve, func() error { return server.Serve(socket) })
		}
	}
	if len(serve) == 0 {
		return errors.Join(errors.New("--listen and --ssl-listen are both empty"), server.Close())
	}
	ctx, cancel := untilSignal()
	defer cancel()
	served := make(chan error, len(serve))
	for _, f := range serve {
		go func() { served <- f() }()
	}
	select {
	case <-ctx.Done():
	case err = <-served:
		serve = serve[1:]
	}
	err = errors.Join(err, server.Close())
	for range serve {
		err = errors.Join(err, <-served)
	}
	return err
}

func exportCommand() *cobra.Command {
	var dir, to string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the data of the embedded ZooKeeper for Apache ZooKeeper",
		Long: `Write the data of the embedded ZooKeeper, which must be stopped, as a snapshot
for Apache ZooKeeper 3.5 to 3.9: the same tree, Stats, ACLs and zxids. Sessions
of the moment expire there, and their ephemeral nodes go.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			m, err := keeper.Export(dir, to)
			return moved(m, err)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "barnabas-data/keeper", "folder of the embedded ZooKeeper's data (keeper.dir)")
	cmd.Flags().StringVar(&to, "to", "", "dataDir of Apache ZooKeeper, without data")
	_ = cmd.MarkFlagRequired("to")
	return cmd
}

func importCommand() *cobra.Command {
	var dir, from, logs string
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Take over the data of Apache ZooKeeper",
		Long: `Take over the data of one server of Apache ZooKeeper 3.4 to 3.9, stopped: its
newest snapshot and its transaction logs. Sessions of the moment expire, and
their ephemeral nodes go.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			m, err := keeper.Import(from, logs, dir)
			return moved(m, err)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "ZooKeeper's dataDir")
	cmd.Flags().StringVar(&logs, "from-logs", "", "ZooKeeper's dataLogDir, if it is another folder")
	cmd.Flags().StringVar(&dir, "dir", "barnabas-data/keeper", "folder for the embedded ZooKeeper's data (keeper.dir), without data")
	_ = cmd.MarkFlagRequired("from")
	return cmd
}

func moved(m keeper.Moved, err error) error {
	if err == nil {
		fmt.Printf("barnabas: %d znodes and %d sessions up to zxid 0x%x are in %s\n", m.Nodes, m.Sessions, m.Zxid, m.File)
	}
	return err
}
