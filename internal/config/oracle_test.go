package config

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// lines returns the lines of a file in testdata, cut at tabs.
func lines(t *testing.T, name string) [][]string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]string
	for line := range strings.SplitSeq(strings.TrimSuffix(string(data), "\n"), "\n") {
		out = append(out, strings.Split(line, "\t"))
	}
	return out
}

// asKafka prints a definition as the dumps have it.
func asKafka(d *Definition) []string {
	dflt, valid, visible := "<null>", d.Valid.String(), "public"
	if d.HasDefault {
		dflt = d.Default
	}
	if valid == "" {
		valid = "null"
	}
	if d.Hidden {
		visible = "internal"
	}
	return []string{d.Name, strings.ToUpper(d.Type.String()), dflt, valid, strings.ToUpper(d.Importance.String()), visible}
}

// normal makes alike what the dumps and our definitions word differently.
func normal(row []string) string {
	row = slices.Clone(row)
	switch {
	case strings.HasPrefix(row[3], "[0.8.0, "):
		row[3] = metadataVersion.String()
	case strings.HasPrefix(row[3], "The default value of -1 means"):
		row[3] = positiveOrUnset.String()
	}
	return strings.Join(row, " | ")
}

func compareDefinitions(t *testing.T, got, want []string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("Kafka has, we have not: %s", w)
		}
	}
	for _, g := range got {
		if !slices.Contains(want, g) {
			t.Errorf("we have, Kafka has not: %s", g)
		}
	}
}

func TestBrokerDefinitionsEqualKafkas(t *testing.T) {
	var want, got []string
	for _, row := range lines(t, "kafka-3.9.1-broker.txt") {
		want = append(want, normal(row))
	}
	dynamicOnly := map[string]bool{}
	for _, d := range BrokerDefinitions() {
		switch {
		case d.Ours:
		case d.DynamicOnly:
			dynamicOnly[d.Name] = true
		default:
			row := append(asKafka(d), d.Mode.String(), strings.Join(brokerSynonyms(d.Name), ","))
			got = append(got, normal(row))
		}
	}
	compareDefinitions(t, got, want)

	for _, row := range lines(t, "kafka-3.9.1-broker-dynamic.txt") {
		d := brokerTable.get(row[0])
		if d == nil || d.Mode == ReadOnly {
			t.Errorf("%s can change while running in Kafka, and not here", row[0])
		}
		delete(dynamicOnly, row[0])
	}
	if len(dynamicOnly) > 0 {
		t.Errorf("Kafka does not have %v", dynamicOnly)
	}
}

func TestListenerSecurityKeysAreTheOnesOfOneMode(t *testing.T) {
	for _, key := range append(slices.Clone(listenerSecurityKeys), clusterListenerKeys...) {
		if d := brokerTable.get(key); d == nil || d.Mode == ReadOnly {
			t.Errorf("%s is not a dynamic property", key)
		}
	}
}

func TestTopicDefinitionsEqualKafkas(t *testing.T) {
	var want, got []string
	for _, row := range lines(t, "kafka-3.9.1-topic.txt") {
		want = append(want, normal(row))
	}
	for _, d := range TopicDefinitions() {
		synonym := d.BrokerKey
		if synonym == "" {
			synonym = "-"
		}
		got = append(got, normal(append(asKafka(d), synonym)))
	}
	compareDefinitions(t, got, want)
}

func TestEntityDefinitionsEqualKafkas(t *testing.T) {
	for file, kind := range map[string]EntityKind{"client": Clients, "user": Users, "ip": IPs} {
		var want, got []string
		for _, row := range lines(t, "kafka-3.9.1-"+file+".txt") {
			want = append(want, normal(row[:6]))
		}
		for _, d := range EntityDefinitions(kind) {
			row := asKafka(d)
			if strings.HasPrefix(d.Name, "SCRAM") {
				row[3] = "null" // Kafka checks these elsewhere
			}
			got = append(got, normal(row))
		}
		compareDefinitions(t, got, want)
	}
}

func TestDefinitionsAreComplete(t *testing.T) {
	all := append(BrokerDefinitions(), TopicDefinitions()...)
	for _, kind := range []EntityKind{Users, Clients, IPs} {
		all = append(all, EntityDefinitions(kind)...)
	}
	for _, d := range all {
		if d.Doc == "" || !strings.HasSuffix(d.Doc, ".") || strings.Contains(d.Doc, "\n") {
			t.Errorf("%s: the text has to be one sentence with a full stop: %q", d.Name, d.Doc)
		}
		if d.HasDefault {
			v, reason := d.parse(d.Default)
			if reason != "" || format(v) != d.Default {
				t.Errorf("%s: the default %q is read as %v %s", d.Name, d.Default, v, reason)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(embeddedDefaults)) {
		if d := brokerTable.get(key); d == nil {
			t.Errorf("embeddedDefaults has %s, which is not defined", key)
		} else if _, reason := d.parse(embeddedDefaults[key]); reason != "" {
			t.Errorf("embeddedDefaults: %s: %s", key, reason)
		}
	}
}

func TestValuesAreReadAndPrintedAsInJava(t *testing.T) {
	types := map[string]Type{"INT": TypeInt, "SHORT": TypeShort, "LONG": TypeLong, "DOUBLE": TypeDouble,
		"BOOLEAN": TypeBoolean, "LIST": TypeList, "STRING": TypeString}
	for _, row := range lines(t, "values.txt") {
		typ, text, verdict, answer := row[0], row[1], row[2], row[3]
		d := def("k", types[typ], null, anything, Low, ReadOnly, "")
		v, reason := d.parse(text)
		got := "ok " + format(v)
		if reason != "" {
			got = "error Invalid value " + text + " for configuration k: " + reason
		}
		if want := verdict + " " + answer; got != want {
			t.Errorf("%s %q: got %q, Kafka says %q", typ, text, got, want)
		}
	}
}

func TestPropertiesFilesAreReadAsInJava(t *testing.T) {
	for _, row := range lines(t, "properties.txt") {
		data, err := hex.DecodeString(row[0])
		if err != nil {
			t.Fatal(err)
		}
		props, bad := parseProperties(data)
		got := map[string]string{}
		for _, p := range props {
			got[p.key] = p.value
		}
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(got)) {
			parts = append(parts, fmt.Sprintf("%x=%x", k, got[k]))
		}
		answer := strings.Join(parts, " ")
		if len(bad) > 0 {
			answer = "malformed"
		}
		// The order of keys is Java's, by UTF-16; compare as sets.
		want := strings.Fields(row[1])
		slices.Sort(want)
		have := strings.Fields(answer)
		slices.Sort(have)
		if !slices.Equal(have, want) {
			t.Errorf("%q: got %s, Java reads %s", data, answer, row[1])
		}
	}
}

// differences are the verdicts on static properties that are not Kafka's.
var differences = map[string]string{
	"-zookeeper.connect ; broker.id=1": "ok", // the broker runs its own ZooKeeper
}

func TestVerdictsOnStaticPropertiesAreKafkas(t *testing.T) {
	for _, row := range lines(t, "static.txt") {
		static := map[string]string{"zookeeper.connect": "localhost:2181"}
		for pair := range strings.SplitSeq(row[0], " ; ") {
			if key, ok := strings.CutPrefix(pair, "-"); ok {
				delete(static, key)
				continue
			}
			key, text, _ := strings.Cut(pair, "=")
			static[key] = text
		}
		want := row[1]
		if different, ok := differences[row[0]]; ok {
			want = different
		}
		_, err := NewBroker(static)
		switch {
		case want == "ok" && err != nil:
			t.Errorf("%s: got %v, Kafka takes it", row[0], err)
		case want != "ok" && err == nil:
			t.Errorf("%s: taken, Kafka says %s", row[0], want)
		case strings.HasPrefix(want, "Invalid value") && err.Error() != want:
			t.Errorf("%s: got %v, Kafka says %s", row[0], err, want)
		}
	}
}

var update = flag.Bool("update", false, "write docs/configuration.md")

func TestConfigurationPage(t *testing.T) {
	const path = "../../docs/configuration.md"
	page := []byte(Page())
	if *update {
		if err := os.WriteFile(path, page, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	committed, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(committed, page) {
		t.Errorf("docs/configuration.md is not what the definitions say (%v): run go generate ./internal/config", err)
	}
}
