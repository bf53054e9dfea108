package broker

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/jute"
	"barnabas/internal/keeper"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
)

// held is a log whose writer says that it has come and waits to be let on.
type held struct{ come, on chan struct{} }

func (h held) Write(p []byte) (int, error) {
	h.come <- struct{}{}
	<-h.on
	return len(p), nil
}

// What was read of topics before one of them was altered is put in force after
// the alteration was.
func TestWhatWasReadOfATopicBeforeItWasAlteredIsNotPutInForce(t *testing.T) {
	c := startCluster(t, 0, nil)
	zk := c.admin()
	o, err := config.NewBroker(map[string]string{"zookeeper.connect": c.keeper, "log.retention.ms": "1"})
	if err != nil {
		t.Fatal(err)
	}
	h := held{come: make(chan struct{}), on: make(chan struct{})}
	w := newConfigWatcher(zk, slog.New(slog.NewTextHandler(h, nil)), config.NewDynamic(o), 1, nil)
	w.apply, w.changed = func(string, *config.Topic) {}, func(string) {}

	retention := func(ms string) []byte { return znode.EncodeConfig(map[string]string{"retention.ms": ms}) }
	create := func(topic string, data []byte) {
		t.Helper()
		if _, _, err := zk.CreateRecursive(t.Context(), znode.TopicConfig(topic).Path(), data, zookeeper.Persistent); err != nil {
			t.Fatal(err)
		}
	}
	set := func(topic string, data []byte) {
		t.Helper()
		if _, err := zk.Set(t.Context(), znode.TopicConfig(topic).Path(), data, zookeeper.AnyVersion); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(topic string) {
		t.Helper()
		if err := zk.Delete(t.Context(), znode.TopicConfig(topic).Path(), zookeeper.AnyVersion); err != nil {
			t.Fatal(err)
		}
	}
	create("unreadable", []byte("?")) // readTopics says so after it has read
	create("altered", retention("5"))
	create("removed", retention("5"))
	create("made again", retention("5"))

	read := make(chan error)
	go func() {
		read <- w.readTopics(t.Context(), []string{"unreadable", "altered", "removed", "made again", "created", "untouched"})
	}()
	<-h.come
	set("altered", retention("77"))
	remove("removed")
	remove("made again")
	create("made again", retention("78"))
	create("created", retention("79"))
	for _, topic := range []string{"altered", "removed", "made again", "created"} {
		if err := w.reload(t.Context(), znode.TopicConfig(topic)); err != nil {
			t.Error(err)
		}
	}
	h.on <- struct{}{}
	if err := <-read; err != nil {
		t.Fatal(err)
	}
	if len(w.mu.set) > 0 {
		t.Errorf("%d topics are remembered when nothing is read", len(w.mu.set))
	}
	for topic, want := range map[string]int64{"altered": 77, "removed": 1, "made again": 78, "created": 79, "untouched": 1} {
		if got := w.topic(topic).RetentionMs; got != want {
			t.Errorf("%s: retention.ms is %d, want %d", topic, got, want)
		}
	}
}

// While ZooKeeper refuses to tell of one topic, those that were changed with it
// are in force, and are put in force once.
func TestATopicThatCanNotBeReadHasNoOtherAppliedAgain(t *testing.T) {
	c := startCluster(t, 0, nil)
	zk := c.admin()
	o, err := config.NewBroker(map[string]string{"zookeeper.connect": c.keeper})
	if err != nil {
		t.Fatal(err)
	}
	w := newConfigWatcher(zk, slog.New(slog.NewTextHandler(t.Output(), nil)), config.NewDynamic(o), 1, nil)
	applied := map[string]int{}
	w.apply, w.changed = func(topic string, _ *config.Topic) { applied[topic]++ }, func(string) {}
	change := func(topic string) {
		t.Helper()
		data := znode.EncodeConfigChange(znode.TopicConfig(topic))
		if _, _, err := zk.Create(t.Context(), znode.ConfigChanges+"/"+znode.ConfigChangePrefix, data, zookeeper.PersistentSequential); err != nil {
			t.Fatal(err)
		}
	}
	round := func(what string, refused bool, want map[string]int) {
		t.Helper()
		if err := w.round(t.Context()); errors.Is(err, jute.ErrNoAuth) != refused || !refused && err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if !maps.Equal(applied, want) {
			t.Errorf("%s: applied %v, want %v", what, applied, want)
		}
		clear(applied)
	}
	if _, _, err := zk.CreateRecursive(t.Context(), znode.ConfigChanges, nil, zookeeper.Persistent); err != nil {
		t.Fatal(err)
	}
	topics := []string{"first", "refused", "refused too", "last"}
	for _, topic := range topics {
		if _, _, err := zk.CreateRecursive(t.Context(), znode.TopicConfig(topic).Path(), znode.EncodeConfig(nil), zookeeper.Persistent); err != nil {
			t.Fatal(err)
		}
		change(topic)
	}
	permit(t, zk, znode.TopicConfig("refused").Path(), jute.PermAll&^jute.PermRead)
	permit(t, zk, znode.TopicConfig("refused too").Path(), jute.PermAll&^jute.PermRead)
	round("at first", true, map[string]int{"first": 1, "last": 1})
	round("again", true, nil)
	change("first")
	change("refused")
	round("another change", true, map[string]int{"first": 1})
	if err := w.readTopics(t.Context(), []string{"refused", "last"}); !errors.Is(err, jute.ErrNoAuth) || !strings.Contains(err.Error(), znode.TopicConfig("refused").Path()) {
		t.Errorf("logs could be made without the overrides of a topic: %v", err)
	}
	permit(t, zk, znode.TopicConfig("refused").Path(), jute.PermAll)
	round("one is let in", true, map[string]int{"refused": 1})
	permit(t, zk, znode.TopicConfig("refused too").Path(), jute.PermAll)
	round("both are", false, map[string]int{"refused too": 1})
	round("nothing is left", false, nil)
}

// Notifications that are old go, and fresh ones stay, also while a topic that was
// changed can't be read.
func TestOldChangesGoWhileATopicCanNotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, err := keeper.Open(keeper.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		zk, err := zookeeper.New(zookeeper.Options{Connect: "unused:1", SessionTimeout: 20 * time.Second,
			Dial: func(ctx context.Context, _ string) (net.Conn, error) { return k.Dial(ctx) }})
		if err != nil {
			t.Fatal(err)
		}
		if err := zk.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer zk.Close()
		o, err := config.NewBroker(map[string]string{"zookeeper.connect": "unused:1"})
		if err != nil {
			t.Fatal(err)
		}
		w := newConfigWatcher(zk, slog.New(slog.NewTextHandler(t.Output(), nil)), config.NewDynamic(o), 1, nil)
		w.apply, w.changed = func(string, *config.Topic) {}, func(string) {}
		entity := znode.TopicConfig("refused")
		for path, data := range map[string][]byte{znode.ConfigChanges: nil, entity.Path(): znode.EncodeConfig(nil)} {
			if _, _, err := zk.CreateRecursive(t.Context(), path, data, zookeeper.Persistent); err != nil {
				t.Fatal(err)
			}
		}
		permit(t, zk, entity.Path(), jute.PermAll&^jute.PermRead)
		change := func(want int) {
			t.Helper()
			if _, _, err := zk.Create(t.Context(), znode.ConfigChanges+"/"+znode.ConfigChangePrefix, znode.EncodeConfigChange(entity), zookeeper.PersistentSequential); err != nil {
				t.Fatal(err)
			}
			if err := w.round(t.Context()); !errors.Is(err, jute.ErrNoAuth) {
				t.Fatal(err)
			}
			names, _, err := zk.Children(t.Context(), znode.ConfigChanges)
			if err != nil || len(names) != want {
				t.Errorf("%v, %v: want %d", names, err, want)
			}
		}
		change(1)
		change(2)
		<-time.After(changesKept - time.Minute) // the bubble's time
		change(3)
		<-time.After(2 * time.Minute)
		if err := w.round(t.Context()); !errors.Is(err, jute.ErrNoAuth) {
			t.Fatal(err)
		}
		if names, _, err := zk.Children(t.Context(), znode.ConfigChanges); err != nil || len(names) != 3 {
			t.Errorf("by the broker's own clock: %v, %v", names, err)
		}
		change(2)
	})
}
