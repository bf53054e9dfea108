package api

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"barnabas/internal/zookeeper"
)

// tree reads what is under the paths, without what differs from run to run:
// data as JSON with its keys in order, topic ids as a word.
func tree(t *testing.T, connect string, paths ...string) map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	zk, err := zookeeper.New(zookeeper.Options{Connect: connect, SessionTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	zk.Start(ctx)
	defer zk.Close()
	if err := zk.WaitConnected(ctx); err != nil {
		t.Fatal(err)
	}
	nodes := map[string]string{}
	var walk func(path string)
	walk = func(path string) {
		data, _, err := zk.Get(ctx, path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		nodes[path] = canonicalData(data)
		children, _, err := zk.Children(ctx, path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, c := range children {
			walk(path + "/" + c)
		}
	}
	for _, p := range paths {
		walk(p)
	}
	return nodes
}

func canonicalData(data []byte) string {
	var v map[string]any
	if data == nil {
		return "null"
	}
	if json.Unmarshal(data, &v) != nil {
		return string(data)
	}
	if _, ok := v["topic_id"]; ok {
		v["topic_id"] = "an id"
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// compareTrees tells what the two brokers wrote differently. Both went through
// the same requests, so even the notifications are the same, in order.
func compareTrees(t *testing.T, kafka, ours map[string]string, skip func(path string) bool) {
	t.Helper()
	all := maps.Clone(kafka)
	maps.Copy(all, ours)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		want, inKafka := kafka[path]
		got, inOurs := ours[path]
		switch {
		case skip(path) || inKafka && inOurs && want == got:
		case !inOurs:
			t.Errorf("%s: Kafka has %s, barnabas nothing", path, want)
		case !inKafka:
			t.Errorf("%s: barnabas has %s, Kafka nothing", path, got)
		default:
			t.Errorf("%s:\n  Kafka:    %s\n  barnabas: %s", path, want, got)
		}
	}
}

// refusedHere are the topics that Kafka made of requests which barnabas
// refuses, and the empty folder of a topic whose brokers never lived, which
// barnabas makes with the topic.
func refusedHere(path string) bool {
	return strings.Contains(path, "/nowhere") || strings.Contains(path, "/below") || path == "/brokers/topics/ghost/partitions"
}
