package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/jute"
	"barnabas/internal/security"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
)

// changesKept is how long a notification stays under /config/changes (Kafka's
// ZkNodeChangeNotificationListener).
const changesKept = 15 * time.Minute

// configWatcher applies what /config/changes names: it re-reads the entity's
// node, so a notification is only a reason to look. One goroutine, run, does
// it; topics holds the overrides for logs that are opened later. Who takes a
// LeaderAndIsr request reads topics too. Reads are numbered before they are
// sent, so that of two reads of a topic the later one stays in force whichever
// is done first.
type configWatcher struct {
	zk      *zookeeper.Client
	log     *slog.Logger
	dynamic *config.Dynamic
	id      int32
	users   *security.Credentials
	apply   func(topic string, c *config.Topic) // to the logs that are open
	changed func(topic string)                  // tells the controller

	wake chan struct{} // of capacity 1

	// Owned by run:
	last int64                // the number of the newest notification read
	left []znode.ConfigEntity // what was named until then and is not in force yet, each once

	mu struct {
		sync.Mutex
		topics map[string]map[string]string // overrides of each topic that has any
		begun  uint64                       // the number of the newest read of topics
		open   int                          // reads of topics that are not done
		set    map[string]uint64            // while there are any: the newest read that set a topic
		// refused are those whose overrides ZooKeeper did not show when their logs
		// were to be made, until they can be read.
		refused map[string]bool
	}
}

func newConfigWatcher(zk *zookeeper.Client, log *slog.Logger, dynamic *config.Dynamic, id int32, users *security.Credentials) *configWatcher {
	w := &configWatcher{zk: zk, log: log, dynamic: dynamic, id: id, users: users, wake: make(chan struct{}, 1), last: -1}
	w.mu.topics = map[string]map[string]string{}
	w.mu.set = map[string]uint64{}
	w.mu.refused = map[string]bool{}
	return w
}

// notify wakes run.
func (w *configWatcher) notify() { token(w.wake) }

// run applies changes until ctx ends.
func (w *configWatcher) run(ctx context.Context) {
	said := ""
	for {
		var again <-chan time.Time
		err := w.round(ctx)
		switch {
		case err == nil:
			said = ""
		case ctx.Err() == nil && !errors.Is(err, jute.ErrSessionExpired): // else the next session brings it
			again = time.After(refusedPause)
			if why := err.Error(); why != said {
				said = why
				w.log.Error("reading changed configuration", "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-again:
		}
	}
}

// round does the notifications that are new and what is left of earlier ones,
// and removes old ones. It leaves a watch for the next.
func (w *configWatcher) round(ctx context.Context) error {
	var names []string
	err := w.zk.Retry(ctx, func() (err error) {
		names, _, err = w.zk.ChildrenW(ctx, znode.ConfigChanges)
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(names)
	var fresh []string
	last := w.last
	for _, name := range names {
		number, err := znode.Sequence(name, znode.ConfigChangePrefix)
		if err == nil && number > w.last {
			fresh = append(fresh, znode.ConfigChanges+"/"+name)
			last = number
		}
	}
	reads, err := w.zk.GetMany(ctx, fresh, false)
	if err != nil {
		return err
	}
	waits := map[znode.ConfigEntity]bool{}
	for _, entity := range w.left {
		waits[entity] = true
	}
	for i, r := range reads {
		if r.Err != nil {
			continue // purged by another broker
		}
		entity, err := znode.DecodeConfigChange(r.Data)
		if err != nil {
			w.log.Warn("skipped a config change that can't be read", "path", fresh[i], "err", err)
			continue
		}
		if !waits[entity] {
			waits[entity] = true
			w.left = append(w.left, entity)
		}
	}
	w.last = last
	err = w.reloadLeft(ctx)
	if ctx.Err() == nil && !errors.Is(err, jute.ErrSessionExpired) { // what can't be read yet is in left
		w.purge(ctx, names)
	}
	return err
}

// reloadLeft puts what is left in force. What fails stays, for the next round,
// and holds up nothing else; when the session ends all the rest does.
func (w *configWatcher) reloadLeft(ctx context.Context) error {
	var failed []znode.ConfigEntity
	var errs []error
	for i, entity := range w.left {
		err := w.reload(ctx, entity)
		if ctx.Err() != nil || errors.Is(err, jute.ErrSessionExpired) {
			w.left = append(failed, w.left[i:]...)
			return err
		}
		if err != nil {
			failed = append(failed, entity)
			errs = append(errs, fmt.Errorf("%s: %w", entity.Path(), err))
		}
	}
	w.left = failed
	return errors.Join(errs...)
}

// purge removes notifications that every broker must have seen long ago. The
// time is ZooKeeper's own, of the newest node.
func (w *configWatcher) purge(ctx context.Context, names []string) {
	if len(names) < 2 {
		return
	}
	newest, ok, err := w.zk.Exists(ctx, znode.ConfigChanges+"/"+names[len(names)-1])
	if err != nil || !ok {
		return
	}
	for _, name := range names {
		path := znode.ConfigChanges + "/" + name
		stat, ok, err := w.zk.Exists(ctx, path)
		if err != nil || ok && newest.Ctime-stat.Ctime < changesKept.Milliseconds() {
			return // names are in order of age
		}
		_ = w.zk.Delete(ctx, path, zookeeper.AnyVersion) // another broker may be doing the same
	}
}

// reload reads an entity's node and puts it in force.
func (w *configWatcher) reload(ctx context.Context, e znode.ConfigEntity) error {
	switch e.Type {
	case znode.TopicEntity:
		number := w.beginRead()
		defer w.endRead()
		overrides, err := w.read(ctx, e.Path())
		if err != nil {
			return err
		}
		w.setTopic(number, e.Name, overrides)
		w.apply(e.Name, w.topic(e.Name))
		w.changed(e.Name)
	case znode.BrokerEntity:
		if e.Default || e == znode.BrokerConfig(w.id) {
			return w.reloadBroker(ctx)
		}
	case znode.UserEntity:
		if !e.Default && !e.HasClient {
			return w.reloadUser(ctx, e.Name)
		}
	default:
		// Quotas are kept in ZooKeeper; nothing enforces them yet.
	}
	return nil
}

// reloadUser puts a user's SCRAM credentials in force, or that there are none.
func (w *configWatcher) reloadUser(ctx context.Context, user string) error {
	properties, err := w.read(ctx, znode.UserConfig(znode.EntityName{Name: user}).Path())
	if err != nil {
		return err
	}
	w.setUser(user, properties)
	return nil
}

func (w *configWatcher) setUser(user string, properties map[string]string) {
	if err := w.users.Set(user, properties); err != nil {
		w.log.Warn("a SCRAM credential can't be read; the user can't authenticate with it", "err", err)
	}
}

// readAllUsers reads the SCRAM credentials of all users, for a start.
func (w *configWatcher) readAllUsers(ctx context.Context) error {
	names, _, err := w.zk.Children(ctx, znode.ConfigPath(znode.UserEntity))
	if err != nil {
		return err
	}
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = znode.ConfigPath(znode.UserEntity) + "/" + name
	}
	reads, err := w.zk.GetMany(ctx, paths, false)
	if err != nil {
		return err
	}
	for i, r := range reads {
		user, err := znode.ParseEntityName(znode.UserEntity, names[i])
		if err != nil || user.Default || r.Err != nil {
			continue
		}
		properties, err := znode.DecodeConfig(r.Data)
		if err != nil {
			w.log.Error("skipped a user's configuration that can't be read", "path", paths[i], "err", err)
		}
		w.setUser(user.Name, properties)
	}
	return nil
}

// reloadBroker puts the dynamic properties of this broker and of all brokers in
// force.
func (w *configWatcher) reloadBroker(ctx context.Context) error {
	own, err := w.read(ctx, znode.BrokerConfig(w.id).Path())
	if err != nil {
		return err
	}
	all, err := w.read(ctx, znode.BrokerDefaultConfig().Path())
	if err != nil {
		return err
	}
	for _, warning := range w.dynamic.UpdateStored(own, all) {
		w.log.Warn("left out a dynamic property", "why", warning.String())
	}
	return nil
}

// reencode writes this broker's passwords anew when password.encoder.secret has
// changed and password.encoder.old.secret says what it was.
func (w *configWatcher) reencode(ctx context.Context) error {
	path := znode.BrokerConfig(w.id).Path()
	own, err := w.read(ctx, path)
	if err != nil {
		return err
	}
	encoded, changed, err := w.dynamic.Load().ReencodePasswords(own)
	if err != nil || !changed {
		return err
	}
	w.log.Info("passwords are encoded with the new password.encoder.secret", "path", path)
	return w.zk.Retry(ctx, func() error {
		_, err := w.zk.Set(ctx, path, znode.EncodeConfig(encoded), zookeeper.AnyVersion)
		return err
	})
}

// read returns an entity's properties, none if it has no node.
func (w *configWatcher) read(ctx context.Context, path string) (map[string]string, error) {
	var data []byte
	err := w.zk.Retry(ctx, func() (err error) {
		data, _, err = w.zk.Get(ctx, path)
		return err
	})
	if errors.Is(err, jute.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	properties, err := znode.DecodeConfig(data)
	if err != nil {
		w.log.Error("skipped a configuration that can't be read", "path", path, "err", err)
		return nil, nil
	}
	return properties, nil
}

// readAllTopics reads the overrides of all topics, for a start.
func (w *configWatcher) readAllTopics(ctx context.Context) error {
	names, _, err := w.zk.Children(ctx, znode.ConfigPath(znode.TopicEntity))
	if err != nil {
		return err
	}
	return w.readTopics(ctx, names)
}

// readTopics reads the overrides of topics whose logs are about to be made: no
// notification tells of a new topic's. One that ZooKeeper does not show is an
// error, after the others, and has no log made until it is shown: with the
// defaults, records that it is to keep could be deleted.
func (w *configWatcher) readTopics(ctx context.Context, names []string) error {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = znode.TopicConfig(name).Path()
	}
	number := w.beginRead()
	defer w.endRead()
	reads, err := w.zk.GetMany(ctx, paths, false)
	if err != nil {
		return err
	}
	var failed error
	for i, r := range reads {
		var overrides map[string]string
		if r.Err != nil && !errors.Is(r.Err, jute.ErrNoNode) {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", paths[i], r.Err))
			w.refuse(number, names[i])
			continue
		}
		if r.Err == nil {
			if overrides, err = znode.DecodeConfig(r.Data); err != nil {
				w.log.Error("skipped a topic's configuration that can't be read", "path", paths[i], "err", err)
			}
		}
		w.setTopic(number, names[i], overrides)
	}
	return failed
}

// beginRead numbers a read of topics, before it is sent: it finds whatever was
// known by then.
func (w *configWatcher) beginRead() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.open++
	w.mu.begun++
	return w.mu.begun
}

func (w *configWatcher) endRead() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.open--; w.mu.open == 0 {
		w.mu.set = map[string]uint64{} // not cleared: a start's is large
	}
}

// setTopic puts in force what a read found, unless a later one did.
func (w *configWatcher) setTopic(read uint64, topic string, overrides map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if read < w.mu.set[topic] {
		return
	}
	w.mu.set[topic] = read
	delete(w.mu.refused, topic)
	if len(overrides) == 0 {
		delete(w.mu.topics, topic)
	} else {
		w.mu.topics[topic] = overrides
	}
}

// refuse remembers a topic that a read did not show, unless a later one did.
func (w *configWatcher) refuse(read uint64, topic string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if read >= w.mu.set[topic] {
		w.mu.refused[topic] = true
	}
}

// shown is topic, or nil for one whose overrides ZooKeeper did not show.
func (w *configWatcher) shown(name string) *config.Topic {
	w.mu.Lock()
	refused := w.mu.refused[name]
	w.mu.Unlock()
	if refused {
		return nil
	}
	return w.topic(name)
}

// topic resolves a topic's configuration. Overrides that no longer pass leave
// the broker's defaults.
func (w *configWatcher) topic(name string) *config.Topic {
	w.mu.Lock()
	overrides := w.mu.topics[name]
	w.mu.Unlock()
	broker := w.dynamic.Load()
	c, err := broker.Topic(overrides)
	if err != nil {
		w.log.Error("a topic's configuration is refused; the broker's defaults apply", "topic", name, "err", err)
		c, _ = broker.Topic(nil) // defaults pass: they were checked at the start
	}
	return c
}
