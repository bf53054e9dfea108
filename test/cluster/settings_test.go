package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"barnabas/test/load"
	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// What a cluster is set to, or is told to be while it runs, its brokers do: on
// the embedded ZooKeeper, with brokers 1 and 2 in one rack and 3 and 4 in
// another.
func TestSettingsOfARunningCluster(t *testing.T) {
	server := real.StartKeeper(t)
	w := &toolWorld{}
	for id := 1; id <= 4; id++ {
		b := real.Barnabas(t, id, "zookeeper.connect="+server.Addr, fmt.Sprint("broker.rack=rack", (id+1)/2), "leader.imbalance.check.interval.seconds=1",
			"zookeeper.session.timeout.ms=6000", "replica.lag.time.max.ms=4000")
		w.brokers, w.seeds = append(w.brokers, b), append(w.seeds, b.Addr)
	}
	w.operator, w.admin = newOperator(t, server.Addr), load.NewAdmin(t, w.seeds)
	for _, c := range []struct {
		name string
		run  func(*toolWorld)
	}{
		{"replicas are spread over racks", racks},
		{"num.replica.fetchers changes under load", fetchersUnderLoad},
		{"read-only and unknown properties are refused", readOnly},
		{"leaderships go back to preferred leaders by themselves", imbalance},
		{"unclean.leader.election.enable is turned on while nobody leads", uncleanLater},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(w.on(t)) })
	}
}

func racks(w *toolWorld) {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	const partitions = 12
	if _, err := w.admin.CreateTopic(ctx, partitions, 2, nil, "racks"); err != nil {
		w.t.Fatal(err)
	}
	load.UntilInSync(w.t, w.admin, "racks", partitions, 2)
	leads := map[int32]int{}
	for _, p := range load.Describe(w.t, w.admin, "racks") {
		leads[p.Replicas[0]]++
		if (p.Replicas[0]+1)/2 == (p.Replicas[1]+1)/2 {
			w.t.Errorf("racks-%d has both replicas in one rack: %v", p.Partition, p.Replicas)
		}
	}
	for id := int32(1); id <= 4; id++ {
		if leads[id] != partitions/4 {
			w.t.Errorf("broker %d is preferred for %d partitions", id, leads[id])
		}
	}
}

// set alters one dynamic property of all brokers, through the API.
func (w *toolWorld) setAll(key, value string) error {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	answers, err := w.admin.AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: key, Value: &value}})
	if err != nil {
		w.t.Fatal(err)
	}
	if answers[0].Err != nil {
		return fmt.Errorf("%w: %s", answers[0].Err, answers[0].ErrMessage)
	}
	return nil
}

func fetchersUnderLoad(w *toolWorld) {
	load.CreateTopic(w.t, w.admin, "busy", 8, []int32{1, 2, 3}, map[string]*string{"min.insync.replicas": load.Text("3")})
	load.UntilInSync(w.t, w.admin, "busy", 8, 3)
	l := load.Start(w.t, "busy", 8, w.seeds)
	l.More(200)
	for _, count := range []string{"2", "4", "2", "1"} {
		if err := w.setAll("num.replica.fetchers", count); err != nil {
			w.t.Fatal(err)
		}
		for id := 1; id <= 3; id++ {
			w.config(id, kmsg.ConfigResourceTypeBroker, fmt.Sprint(id), "num.replica.fetchers", count)
		}
		l.More(500)
	}
	l.Finish()
	load.UntilInSync(w.t, w.admin, "busy", 8, 3)
	load.UntilEqual(w.t, []string{w.brokers[0].Dir, w.brokers[1].Dir, w.brokers[2].Dir}, "busy", 8)
}

func readOnly(w *toolWorld) {
	for _, key := range []string{"broker.id", "zookeeper.connect", "leader.imbalance.check.interval.seconds"} {
		if err := w.setAll(key, "5"); !errors.Is(err, kerr.InvalidRequest) || !strings.Contains(err.Error(), "Cannot update these configs dynamically: Set("+key+")") {
			w.t.Errorf("%s: %v", key, err)
		}
	}
	// By znode it is left out, and the rest holds.
	w.create("/config/brokers/4", `{"version":1,"config":{"broker.id":"7","log.cleaner.threads":"2"}}`)
	w.create("/config/changes/config_change_", `{"version":2,"entity_path":"brokers/4"}`)
	w.config(4, kmsg.ConfigResourceTypeBroker, "4", "log.cleaner.threads", "2")
	w.config(4, kmsg.ConfigResourceTypeBroker, "4", "broker.id", "4")
	// Nor does it stop what comes after it at that broker.
	conn := raw.Dial(w.t, w.seeds[3])
	for _, broker := range []string{"4", ""} {
		r := kmsg.NewPtrIncrementalAlterConfigsRequest()
		r.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeBroker, ResourceName: broker,
			Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "log.cleaner.threads", Value: load.Text("1")}}}}
		if answer := raw.Do[*kmsg.IncrementalAlterConfigsResponse](conn, r).Resources[0]; answer.ErrorCode != 0 {
			w.t.Errorf("a change of broker %q at broker 4: %d %s", broker, answer.ErrorCode, *answer.ErrorMessage)
		}
	}
}

func imbalance(w *toolWorld) {
	w.create("/brokers/topics/balanced", `{"version":1,"partitions":{"0":[1,2],"1":[1,3]}}`)
	w.replicas("balanced", 0, 1, 1, 2)
	w.replicas("balanced", 1, 1, 1, 3)
	w.brokers[0].Stop()
	real.Until(w.t, 20*time.Second, "others lead", func() bool {
		p := load.Describe(w.t, w.admin, "balanced")
		return p[0].Leader == 2 && p[1].Leader == 3
	})
	w.brokers[0].Restart(w.t)
	w.replicas("balanced", 0, 1, 1, 2)
	w.replicas("balanced", 1, 1, 1, 3)
}

// uncleanLater: a topic's leader is dead and the other replica is out of sync;
// what the topic, and then all brokers, are told elects it.
func uncleanLater(w *toolWorld) {
	for _, topic := range []string{"one", "all"} {
		w.create("/brokers/topics/"+topic, `{"version":1,"partitions":{"0":[3,4]}}`)
		w.replicas(topic, 0, 3, 3, 4)
	}
	w.brokers[3].Kill()
	for _, topic := range []string{"one", "all"} {
		load.UntilInSync(w.t, w.admin, topic, 1, 1)
	}
	w.brokers[2].Kill()
	w.brokers[3].Restart(w.t)
	leader := func(topic string, id int32) {
		w.t.Helper()
		real.Until(w.t, 30*time.Second, fmt.Sprintf("%s is led by %d", topic, id), func() bool { return load.Describe(w.t, w.admin, topic)[0].Leader == id })
	}
	leader("one", -1)
	w.create("/config/topics/one", `{"version":1,"config":{"unclean.leader.election.enable":"true"}}`)
	w.create("/config/changes/config_change_", `{"version":2,"entity_path":"topics/one"}`)
	leader("one", 4)
	leader("all", -1)
	if err := w.setAll("unclean.leader.election.enable", "true"); err != nil {
		w.t.Fatal(err)
	}
	leader("all", 4)
}
