package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestListenersAreReadAsInKafka(t *testing.T) {
	b := mustBroker(t, map[string]string{
		"listeners":                      "plaintext://:9092, INTERNAL://[::1]:0 ,OUT-SIDE://127.0.0.1:9094",
		"advertised.listeners":           "INTERNAL://:0,OUT-SIDE://[2001:db8::1]:9094,PLAINTEXT://kafka.example.com:19092",
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,internal:sasl_plaintext,OUT-SIDE:SSL",
		"inter.broker.listener.name":     "internal",
		"sasl.enabled.mechanisms":        "GSSAPI",
		"control.plane.listener.name":    "out-side",
	})
	got := fmt.Sprint(b.Listeners(), b.AdvertisedListeners())
	want := "[PLAINTEXT://:9092 INTERNAL://[::1]:0 OUT-SIDE://127.0.0.1:9094] [INTERNAL://:0 OUT-SIDE://[2001:db8::1]:9094 PLAINTEXT://kafka.example.com:19092]"
	if got != want {
		t.Errorf("got %s", got)
	}
	if l := b.Listeners()[1]; l.Protocol != SASLPlaintext || l.Host != "::1" || l.Address() != "[::1]:0" {
		t.Errorf("got %+v", l)
	}
	if b.InterBrokerListener() != "INTERNAL" || b.ControlPlaneListener() != "OUT-SIDE" {
		t.Errorf("got %s and %s", b.InterBrokerListener(), b.ControlPlaneListener())
	}
	bound := map[string]int{"PLAINTEXT": 1, "INTERNAL": 2, "OUT-SIDE": 3}
	got = fmt.Sprint(b.Advertise(bound, "me"))
	if got != "[INTERNAL://me:2 OUT-SIDE://[2001:db8::1]:9094 PLAINTEXT://kafka.example.com:19092]" {
		t.Errorf("got %s", got)
	}
	if b.AdvertisedListeners()[0].Port != 0 {
		t.Error("Advertise changed the snapshot")
	}
	if p, ok := b.ListenerProtocol("internal"); !ok || p != SASLPlaintext {
		t.Error("the protocol of a name")
	}
}

func TestAnAdvertisedWildcardIsRefusedWithWhatToWrite(t *testing.T) {
	for _, static := range []map[string]string{
		{"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"},
		{"advertised.listeners": "PLAINTEXT://[::]:9092"},
		{"listeners": "PLAINTEXT://0.0.0.0:9092"},
		{"listeners": "PLAINTEXT://[::]:9092"},
		{"listeners": "PLAINTEXT://[0:0::0]:9092"},
	} {
		_, err := NewBroker(static)
		if err == nil || !strings.Contains(err.Error(), "advertised.listeners=PLAINTEXT://localhost:9092") {
			t.Errorf("%v: got %v", static, err)
		}
	}
	for _, host := range []string{"0.0.0.0", "[::]", ""} {
		mustBroker(t, map[string]string{"listeners": "PLAINTEXT://" + host + ":9092", "advertised.listeners": "PLAINTEXT://localhost:9092"})
	}
	mustBroker(t, map[string]string{"listeners": "PLAINTEXT://:9092"}) // the host's name is handed out
}

func TestPortsAreChecked(t *testing.T) {
	for _, port := range []string{"-1", "65536", "99999999999"} {
		if _, err := NewBroker(map[string]string{"listeners": "PLAINTEXT://localhost:" + port}); err == nil {
			t.Errorf("port %s is taken", port)
		}
	}
}

func TestEveryMistakeInListenersIsNamed(t *testing.T) {
	_, err := NewBroker(map[string]string{"listeners": "NOPE://x:1", "num.partitions": "0", "log.retention.ms": "0", "zookeeper.connect": "a:b"})
	var keys []string
	for _, e := range err.(Errors) {
		keys = append(keys, e.Key)
	}
	slices.Sort(keys)
	if got := strings.Join(keys, " "); got != "listeners log.retention.ms num.partitions zookeeper.connect" {
		t.Errorf("got %s\n%v", got, err)
	}
}

func TestZooKeeperConnect(t *testing.T) {
	tests := []struct{ in, want, wrong string }{
		{"a:1,b:2/x/y", "a:1,b:2/x/y", ""},
		{" a , b:5 ", "a:2181,b:5", ""},
		{"a:1/", "a:1", ""},
		{"[::1]:2181/kafka", "[::1]:2181/kafka", ""},
		{"", "", ""},
		{"a:1/x/", "", "slash"},
		{"a:1//x", "", "two slashes"},
		{"a:1/../x", "", "relative"},
		{"a:1/x\x01y", "", "character"},
		{"/x", "", "no server"},
		{",", "", "no server"},
		{"a:b", "", "not host:port"},
		{"a:0", "", "not host:port"},
	}
	for _, test := range tests {
		c, reason := parseConnect(test.in)
		if c.String() != test.want || (reason == "") != (test.wrong == "") || !strings.Contains(reason, test.wrong) {
			t.Errorf("%q: got %q, %q", test.in, c.String(), reason)
		}
	}
}
