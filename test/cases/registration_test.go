package cases

import (
	"encoding/json"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// registered returns the fields of /brokers/ids/1.
func registered(t *testing.T, zkAddr string) map[string]any {
	t.Helper()
	data, _, err := connect(t, zkAddr).Get(t.Context(), "/brokers/ids/1")
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return fields
}

// TestRegistrationOfNamedListeners is the second half of case 20, as far as
// listeners without SASL go: the fields, and which end point old clients see.
func TestRegistrationOfNamedListeners(t *testing.T) {
	inside, outside := "127.0.0.1:"+real.FreePort(t), "127.0.0.1:"+real.FreePort(t)
	broker := start(t, "listeners=INSIDE://"+inside+",OUTSIDE://"+outside, "listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
		"inter.broker.listener.name=INSIDE", "broker.rack=r1")
	broker.UntilRunning(30*time.Second, "answers on both listeners", func() bool { return real.Ready(inside) && real.Ready(outside) })
	fields := registered(t, broker.keeper)
	if _, ok := fields["timestamp"].(string); !ok {
		t.Errorf("timestamp %v is not a string", fields["timestamp"])
	}
	delete(fields, "timestamp")
	_, port, _ := net.SplitHostPort(inside)
	want := `{"endpoints":["INSIDE://` + inside + `","OUTSIDE://` + outside + `"],"features":{},"host":"127.0.0.1","jmx_port":-1,` +
		`"listener_security_protocol_map":{"INSIDE":"PLAINTEXT","OUTSIDE":"PLAINTEXT"},"port":` + port + `,"rack":"r1","version":5}`
	if got, _ := json.Marshal(fields); string(got) != want {
		t.Errorf("registration\n%s\nwant\n%s", got, want)
	}
	// Each listener names its own kind of address.
	for _, addr := range []string{inside, outside} {
		answer := raw.Ask[*kmsg.MetadataResponse](t, addr, metadata(1, nil, false))
		if got := net.JoinHostPort(answer.Brokers[0].Host, portText(answer.Brokers[0].Port)); got != addr {
			t.Errorf("listener %s sends clients to %s", addr, got)
		}
	}
	// The first answer to Metadata says in the log what was handed out.
	if out := broker.Output(); !strings.Contains(out, inside) || !strings.Contains(out, "advertised.listeners") {
		t.Errorf("the log does not say where clients are sent:\n%s", out)
	}
}

// TestCreateTopicsTellsEverything: v5 and later answer with partitions, factor
// and all configs (KIP-525), the same as Kafka's.
func TestCreateTopicsTellsEverything(t *testing.T) {
	seen := map[string][]string{}
	onBoth(t, func(t *testing.T, to target) {
		three := "3"
		r := createRequest("told", kmsg.CreateTopicsRequestTopicConfig{Name: "min.insync.replicas", Value: &three})
		got := raw.Ask[*kmsg.CreateTopicsResponse](t, to.addr, r).Topics[0]
		if got.ErrorCode != 0 || got.NumPartitions != 1 || got.ReplicationFactor != 1 || got.TopicID == [16]byte{} {
			t.Errorf("answer %+v", got)
		}
		for _, c := range got.Configs {
			value := "null"
			if c.Value != nil {
				value = *c.Value
			}
			seen[t.Name()] = append(seen[t.Name()], c.Name+"="+value)
			if c.Name == "min.insync.replicas" && c.Source != 1 {
				t.Errorf("source of min.insync.replicas: %d, want 1 (topic)", c.Source)
			}
		}
		slices.Sort(seen[t.Name()])
	})
	all := slices.Collect(maps.Values(seen))
	if len(all) == 2 && !slices.Equal(all[0], all[1]) {
		t.Errorf("configs differ:\n%q\n%q", all[0], all[1])
	}
}

// TestFirstProduceMakesTheTopic: what auto-creation is for.
func TestFirstProduceMakesTheTopic(t *testing.T) {
	broker := real.Barnabas(t, 1, "num.partitions=3")
	cmd := real.Kcat(t, "-P", "-b", broker.Addr, "-t", "made-by-producing")
	cmd.Stdin = strings.NewReader("one\ntwo\n")
	real.Run(t, 30*time.Second, cmd)
	got := real.Run(t, 30*time.Second, real.Kcat(t, "-C", "-b", broker.Addr, "-t", "made-by-producing", "-o", "beginning", "-e", "-q"))
	lines := strings.Fields(got)
	slices.Sort(lines)
	if !slices.Equal(lines, []string{"one", "two"}) {
		t.Errorf("read %q", got)
	}
	if n := partitionsServed(t, raw.Dial(t, broker.Addr), "made-by-producing"); n != 3 {
		t.Errorf("%d partitions, want num.partitions=3", n)
	}
}

// TestFirstInitProducerIDIsAnsweredAtOnce: Kafka 3.9.1 answers 14 once.
func TestFirstInitProducerIDIsAnsweredAtOnce(t *testing.T) {
	broker := real.Barnabas(t, 1)
	r := kmsg.NewPtrInitProducerIDRequest()
	r.Version = 4
	r.ProducerID, r.ProducerEpoch = -1, -1
	c := raw.Dial(t, broker.Addr)
	first := raw.Do[*kmsg.InitProducerIDResponse](c, r)
	second := raw.Do[*kmsg.InitProducerIDResponse](c, r)
	if first.ErrorCode != 0 || second.ErrorCode != 0 || second.ProducerID != first.ProducerID+1 {
		t.Errorf("ids %d (error %d) and %d (error %d)", first.ProducerID, first.ErrorCode, second.ProducerID, second.ErrorCode)
	}
}

// TestManyConnectionsToTheEmbeddedZooKeeper: some tools keep pools of 300.
func TestManyConnectionsToTheEmbeddedZooKeeper(t *testing.T) {
	broker := real.Barnabas(t, 1)
	for range 400 {
		c, err := net.Dial("tcp", broker.Keeper)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if got := real.FourLetterWord(broker.Keeper, "ruok"); got != "imok" {
		t.Errorf("ruok: %q", got)
	}
	srvr := real.FourLetterWord(broker.Keeper, "srvr")
	for _, want := range []string{"Zookeeper version", "Latency min/avg/max", "Received:", "Sent:", "Connections: 40", "Outstanding:", "Zxid:", "Mode: standalone", "Node count:"} {
		if !strings.Contains(srvr, want) {
			t.Errorf("srvr lacks %q:\n%s", want, srvr)
		}
	}
	if mntr := real.FourLetterWord(broker.Keeper, "mntr"); !strings.Contains(mntr, "zk_znode_count\t") {
		t.Errorf("mntr: %q", mntr)
	}
}
