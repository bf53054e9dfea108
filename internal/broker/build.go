package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"barnabas/internal/api"
	"barnabas/internal/config"
	"barnabas/internal/controller"
	"barnabas/internal/metadata"
	"barnabas/internal/replica"
	"barnabas/internal/server"
	"barnabas/internal/storage"
)

// readDynamicConfig puts in force what ZooKeeper holds for this broker, and
// reads the topics' overrides.
func (b *Broker) readDynamicConfig(ctx context.Context) error {
	b.configs = newConfigWatcher(b.zk, b.log, b.config, b.info.ID, b.users)
	if err := b.configs.reencode(ctx); err != nil {
		return fmt.Errorf("ZooKeeper: encoding passwords anew: %w", err)
	}
	if err := b.configs.reloadBroker(ctx); err != nil {
		return fmt.Errorf("ZooKeeper: reading dynamic configuration: %w", err)
	}
	if err := b.configs.readAllTopics(ctx); err != nil {
		return fmt.Errorf("ZooKeeper: reading the topics' configuration: %w", err)
	}
	if len(b.sasl) > 0 {
		if err := b.configs.readAllUsers(ctx); err != nil {
			return fmt.Errorf("ZooKeeper: reading the users' credentials: %w", err)
		}
	}
	return nil
}

func (b *Broker) openStorage(context.Context) error {
	manager, err := storage.Open(storage.Options{
		Dirs: b.info.LogDirs, Config: b.config.Load(), BrokerID: b.info.ID, ClusterID: b.info.ClusterID,
		Topic:        b.configs.topic,
		OnDirFailure: b.dirFailed,
		MaxOpenFiles: b.descriptors.files,
		Logger:       b.log.With("part", "storage"),
	})
	if err != nil {
		return err
	}
	b.storage = manager
	b.info.LogDirs = nil
	for _, d := range manager.Dirs() {
		if d.Err == nil {
			b.info.LogDirs = append(b.info.LogDirs, d.Path)
		}
	}
	manager.SetMoveRate(b.config.Load().Int64("replica.alter.log.dirs.io.max.bytes.per.second"))
	b.onClose("logs", manager.Close)
	return nil
}

// dirFailed is called by the goroutine of a log dir, which may have failed when
// it was opened.
func (b *Broker) dirFailed(dir string, cause error) {
	select {
	case <-b.built:
	case <-b.ctx.Done():
		return
	}
	b.log.Error("a log dir failed; its partitions are offline", "dir", dir, "err", cause)
	b.replicas.DirFailed(dir)
	for _, d := range b.storage.Dirs() {
		if d.Err == nil {
			b.tellOfDirFailure()
			return
		}
	}
	b.fail(fmt.Errorf("every log dir failed, the last one %s: %w", dir, cause))
}

// build makes the parts that keep the broker's state.
func (b *Broker) build(context.Context) error {
	c := b.config.Load()
	b.metadata = metadata.New()
	b.groups = b.newGroups(c)
	b.newTransactions(c)
	b.link = &controllerLink{b: b}
	b.kin.b = b
	b.replicas = replica.NewManager(replica.Options{
		BrokerID: b.info.ID, Storage: b.storage, Topic: b.configs.shown, BrokerEpoch: b.epoch.Load,
		LagTime:     func() time.Duration { return b.config.Load().Duration("replica.lag.time.max.ms") },
		RoleChanged: b.roleChanged,
		Logger:      b.log.With("part", "replica"),
		Cluster:     b.cluster(c),
	})
	b.onClose("replicas", func() error { b.replicas.Close(); return nil })
	b.onClose("groups", func() error { b.groups.Close(); return nil })
	b.onClose("transactions", b.closeTransactions)
	b.controller = controller.New(controller.Options{
		BrokerID: b.info.ID, IBP: c.IBP(), ZooKeeper: b.zk,
		InterBrokerListener: c.InterBrokerListener(),
		Targets: func(id int32, endpoints []controller.Endpoint) controller.Target {
			if id == b.info.ID {
				return local{b}
			}
			return b.remoteTarget(endpoints)
		},
		Identify:               b.identifyPeer,
		DeleteTopicEnable:      c.Bool("delete.topic.enable"),
		UncleanElectionEnable:  c.Bool("unclean.leader.election.enable"),
		AutoRebalanceEnable:    c.Bool("auto.leader.rebalance.enable"),
		ImbalancePercentage:    c.Int("leader.imbalance.per.broker.percentage"),
		ImbalanceCheckInterval: c.Duration("leader.imbalance.check.interval.seconds"),
		Logger:                 b.log.With("part", "controller"),
	})
	b.onClose("way to the controller", func() error { b.link.Close(); return nil })
	b.configs.apply = b.replicas.SetTopicConfig
	b.configs.changed = b.controller.TopicConfigChanged
	cancel := b.config.Subscribe(func(old, now *config.Broker) {
		if v := now.Bool("unclean.leader.election.enable"); v != old.Bool("unclean.leader.election.enable") {
			b.controller.SetUncleanElection(v)
		}
		if now.Int("num.replica.fetchers") != old.Int("num.replica.fetchers") {
			b.replicas.FetchersChanged()
		}
		b.storage.SetMoveRate(now.Int64("replica.alter.log.dirs.io.max.bytes.per.second"))
		b.replicas.DefaultsChanged()
	})
	b.onClose("subscription", func() error { cancel(); return nil })
	close(b.built)
	return nil
}

func (b *Broker) startController(context.Context) error {
	b.controller.Start() // before watch: it is to hear of a session's end
	b.running.Add(3)
	go func() { defer b.running.Done(); b.watch() }()
	go func() { defer b.running.Done(); b.kin.run(b.ctx) }()
	go func() { defer b.running.Done(); b.configs.run(b.ctx) }()
	b.onClose("watchers", func() error { b.running.Wait(); return nil })
	b.onClose("controller", b.controller.Close)
	return nil
}

// token wakes the owner of a channel of capacity 1, unless one lies there.
func token(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default:
	}
}

// firstMetadata bounds the wait for the controller's first word, which comes as
// a request when the controller is another broker: so the server runs already.
// Clients' Metadata requests wait as long (package api).
const firstMetadata = 10 * time.Second

// lastAnswers is how long a stop waits for the requests that are being worked on.
const lastAnswers = 2 * time.Second

func (b *Broker) serve(ctx context.Context) error {
	c := b.config.Load()
	b.api = &api.Broker{
		ID: b.info.ID, ClusterID: b.info.ClusterID, Config: b.config, Metadata: b.metadata,
		ZooKeeper: zkView{b.zk}, Controller: b.controller, Services: b.controller, Controlled: local{b}, Replicas: b.replicas, Groups: b.groups, Transactions: b.transactions, OpenTransactions: b.open, VerifyTransaction: b.verifier.ask, Fetches: api.NewFetchSessions(c.Int("max.incremental.fetch.session.cache.slots"), time.Now),
		Storage: b.storage, AllocateProducerIDs: b.link.allocateProducerIDs, AllOurs: b.kin.all, Log: b.log.With("part", "api"), LogLevel: b.level, Now: time.Now,
	}
	b.api.RackAware = c.String("replica.selector.class") == "org.apache.kafka.common.replica.RackAwareReplicaSelector"
	b.handlers.Store(b.api)
	b.onClose("handlers", func() error { b.api.Close(); return nil })
	b.sayIfFew(c)
	var listeners []server.Listener
	for i, l := range b.info.Listeners {
		listeners = append(listeners, server.Listener{
			Listener: b.sockets[i], Name: l.Name, Protocol: l.Protocol.String(), TLS: b.tls[l.Name].listen(), SASL: b.sasl[l.Name],
			InterBroker: len(b.info.Listeners) > 1 && l.Name == c.InterBrokerListener(), // clients' own is never let in beyond a limit
		})
	}
	of := &addressLimits{log: b.log, resolve: net.DefaultResolver.LookupNetIP}
	of.refresh(ctx, c)
	s, err := server.New(server.Options{
		Listeners: listeners, Broker: b.api, Limits: b.limits(c, of), QueuedBytes: c.Int64("queued.max.request.bytes"),
		SendBuffer: c.Int("socket.send.buffer.bytes"), ReceiveBuffer: c.Int("socket.receive.buffer.bytes"),
		Logger: b.log.With("part", "server"),
	})
	if err != nil {
		return err
	}
	b.server = s
	s.Start()
	b.onClose("server", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), lastAnswers)
		defer cancel()
		if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		b.log.Info("closed connections whose requests were not done", "after", lastAnswers)
		return nil
	})
	changed := make(chan struct{}, 1)
	b.running.Go(func() {
		of.keep(b.ctx, b.config, changed, func(c *config.Broker) { s.SetLimits(b.limits(c, of)) })
	})
	b.config.Subscribe(func(old, now *config.Broker) {
		token(changed)
		if now.Int("max.connections") != old.Int("max.connections") {
			b.sayIfFew(now)
		}
	})
	token(changed) // of what has changed since c was read
	b.renewStores()
	wait, cancel := context.WithTimeout(ctx, firstMetadata)
	defer cancel()
	if !b.metadata.WaitFor(func() bool { return len(b.metadata.Cluster().Brokers) > 0 }, wait.Done()) {
		b.log.Warn("no controller has spoken yet; serving without knowing the cluster")
	}
	if c.IBP() < config.V3_0IV0 { // below, each broker takes a block when it starts (KIP-730)
		b.api.PrefetchProducerIDs()
	}
	return nil
}
