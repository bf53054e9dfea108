package config

import (
	"fmt"
	"strings"
)

//go:generate go test . -run TestConfigurationPage -update

// Page returns docs/configuration.md.
func Page() string {
	var w strings.Builder
	w.WriteString(`# Configuration

This page is made from the definitions in ` + "`internal/config`" + `; do not edit it.

` + "`barnabas start [server.properties] [--override name=value]...`" + ` reads the file as Apache Kafka 3.9 does:
Java properties, in ISO 8859-1. Keys that are not known bring a warning, bad values an error with file and line.

"Changes" says when a new value counts: after a restart (read-only), while running for one broker (per-broker), or
while running for one broker or all (cluster-wide). A default of "-" means that the property is unset.

## Ours

`)
	head := "| property | type | default | allowed | changes | what it does |\n|---|---|---|---|---|---|\n"
	w.WriteString(head)
	rows(&w, brokerTable, func(d *Definition) bool { return d.Ours })
	w.WriteString(`
## Defaults that are not Kafka's

While ` + "`zookeeper.connect`" + ` is unset, the broker runs its own ZooKeeper, and each of these defaults holds unless the
property is set:

| property | default |
|---|---|
`)
	for _, d := range brokerTable.sorted {
		if text, ok := embeddedDefaults[d.Name]; ok {
			fmt.Fprintf(&w, "| `%s` | `%s` |\n", d.Name, text)
		}
	}
	fmt.Fprintf(&w, "\n`queued.max.request.bytes` is bounded in any case: %d unless it is set, or `socket.request.max.bytes` if that is more.\n", defaultQueuedBytes)
	w.WriteString("\n## Broker\n\n" + head)
	rows(&w, brokerTable, func(d *Definition) bool { return !d.Ours && !d.Unused })
	w.WriteString("\n## Topic\n\nUnset, a topic takes the value of the broker property in the last column but one.\n\n" +
		"| property | type | default | allowed | broker property | what it does |\n|---|---|---|---|---|---|\n")
	rows(&w, topicTable, func(d *Definition) bool { return !d.Unused })
	for _, e := range []struct {
		title string
		kind  EntityKind
	}{{"User", Users}, {"Client", Clients}, {"IP address", IPs}} {
		w.WriteString("\n## " + e.title + "\n\n" + head)
		rows(&w, entityTables[e.kind], func(*Definition) bool { return true })
	}
	w.WriteString(`
## Known, but without effect

These are checked and described as in Kafka, and change nothing here: they belong to KRaft, to the group protocols that
ZooKeeper mode does not offer, to tiered storage, or to the Java virtual machine. Setting one brings a warning; one that
asks for a mode this broker does not have, or for a Java class that decides what clients may do, is an error.

`)
	for _, t := range []*table{brokerTable, topicTable} {
		for _, d := range t.sorted {
			if d.Unused {
				fmt.Fprintf(&w, "- `%s`: %s\n", d.Name, cell(d.Doc))
			}
		}
	}
	return w.String()
}

func rows(w *strings.Builder, t *table, want func(*Definition) bool) {
	for _, d := range t.sorted {
		if !want(d) {
			continue
		}
		dflt := "-"
		if d.HasDefault {
			dflt = "`" + d.Default + "`"
			if d.Default == "" {
				dflt = "empty"
			}
		}
		changes := d.Mode.String()
		if t == topicTable {
			changes = "-"
			if d.BrokerKey != "" {
				changes = "`" + d.BrokerKey + "`"
			}
		} else if t != brokerTable {
			changes = "at once"
		}
		fmt.Fprintf(w, "| `%s` | %s | %s | %s | %s | %s |\n", d.Name, d.Type, dflt, cell(d.Valid.String()), changes, cell(d.Doc))
	}
}

// cell makes text fit for a cell of a table.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "<", "&lt;", "_", `\_`).Replace(s)
}
