package api

import (
	"strings"
	"testing"
	"time"

	"barnabas/internal/wire"
	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// User interfaces give up when one request is missing, and clients choose by
// the versions: so the list is Kafka's, key by key.
func TestTheAdvertisedRequestsAreKafkas(t *testing.T) {
	kafka := real.Kafka(t, "3.9.1", 1, real.ZooKeeper(t), "inter.broker.protocol.version=3.9").Addr
	ours := real.Barnabas(t, 1).Addr
	for version := range int16(5) {
		want, got := advertised(t, kafka, version), advertised(t, ours, version)
		for key, versions := range want {
			if have, ok := got[key]; !ok || have != versions {
				t.Errorf("v%d: %s: Kafka serves %v, Barnabas %v", version, kmsg.NameForKey(key), versions, have)
			}
			delete(got, key)
		}
		for key, versions := range got {
			t.Errorf("v%d: %s: Kafka does not serve it, Barnabas %v", version, kmsg.NameForKey(key), versions)
		}
	}
}

func advertised(t *testing.T, addr string, version int16) map[int16][2]int16 {
	r := kmsg.NewPtrApiVersionsRequest()
	r.SetVersion(version)
	r.ClientSoftwareName, r.ClientSoftwareVersion = "test", "1"
	answer := raw.Ask[*kmsg.ApiVersionsResponse](t, addr, r)
	if answer.ErrorCode != 0 {
		t.Fatalf("%s: %+v", addr, answer)
	}
	served := map[int16][2]int16{}
	for _, k := range answer.ApiKeys {
		served[k.ApiKey] = [2]int16{k.MinVersion, k.MaxVersion}
	}
	return served
}

// The tagged field by which Barnabas brokers know one another goes to those
// only, and harms nobody else. Brokers of 2.8.2 and 3.9.1 meet Barnabas in
// test/replication.
func TestTheTaggedFieldHarmsNoClient(t *testing.T) {
	addr := real.Barnabas(t, 1).Addr
	for name, want := range map[string]bool{wire.KinName: true, "apache-kafka-java": false} {
		r := kmsg.NewPtrApiVersionsRequest()
		r.SetVersion(3)
		r.ClientSoftwareName, r.ClientSoftwareVersion = name, "1"
		told := false
		answer := raw.Ask[*kmsg.ApiVersionsResponse](t, addr, r)
		answer.UnknownTags.Each(func(tag uint32, _ []byte) { told = told || tag == wire.KinTag })
		if told != want {
			t.Errorf("told to %s: %t", name, told)
		}
	}
	for version, class := range map[string]string{
		"2.8.2": "kafka.admin.BrokerApiVersionsCommand", "3.9.1": "kafka.admin.BrokerApiVersionsCommand", "4.1.0": "org.apache.kafka.tools.BrokerApiVersionsCommand",
	} {
		if out := real.Run(t, time.Minute, real.Java(t, version, class, "--bootstrap-server", addr)); !strings.Contains(out, "Produce(0): 0 to 11") {
			t.Errorf("%s prints:\n%s", version, out)
		}
	}
	if out := real.Run(t, time.Minute, real.Kcat(t, "-b", addr, "-L", "-X", "debug=feature,protocol")); !strings.Contains(out, "broker 1 at "+addr) {
		t.Errorf("kcat prints:\n%s", out)
	}
}
