package config

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Warning is something in the properties that is not fatal, such as a key that
// no definition has.
type Warning struct {
	File string // "--override" for an override
	Line int    // from 1; 0 for an override
	Key  string
	Text string
}

// String returns the text, after the place if it is known.
func (w Warning) String() string { return place(w.File, w.Line) + w.Text }

// fromOverride is the File of what an override said.
const fromOverride = "--override"

// place is what stands before the text of a mistake or a warning.
func place(file string, line int) string {
	switch {
	case file == "":
		return ""
	case line == 0:
		return file + ": "
	default:
		return file + ":" + strconv.Itoa(line) + ": "
	}
}

// loader is the state of one Load.
type loader struct {
	file     string
	static   map[string]string
	lines    map[string]int // of keys from the file; 0 for those from an override
	warnings []Warning
	problems problems
}

// Load reads server.properties as java.util.Properties would, lets overrides
// ("name=value", the last wins) replace what the file says, and checks all of
// it. An empty path means no file. The error is that of reading the file, or an
// [Errors] that names every bad property with its file and line.
func Load(path string, overrides []string) (*Broker, []Warning, error) {
	l := &loader{file: path, static: map[string]string{}, lines: map[string]int{}}
	l.problems.where = l.where
	if path != "" {
		data, err := readLimited(path)
		if err != nil {
			return nil, nil, err
		}
		l.readFile(data)
	}
	for _, arg := range overrides {
		key, text, err := splitOverride(arg)
		if err != nil {
			return nil, nil, err
		}
		l.static[key] = text
		l.lines[key] = 0
	}
	for _, key := range slices.Sorted(maps.Keys(l.static)) {
		if text := l.remark(key, l.static[key]); text != "" {
			l.warn(key, text)
		}
	}
	b := build(l.static, nil, nil, &l.problems)
	slices.SortStableFunc(l.warnings, func(a, b Warning) int { return a.Line - b.Line })
	if err := l.problems.err(); err != nil {
		return nil, l.warnings, err
	}
	return b, l.warnings, nil
}

func readLimited(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPropertiesSize+1))
	if err == nil && len(data) > maxPropertiesSize {
		err = fmt.Errorf("%s: more than %d bytes: this is no server.properties", path, maxPropertiesSize)
	}
	return data, err
}

func (l *loader) readFile(data []byte) {
	props, bad := parseProperties(data)
	for _, p := range bad {
		l.lines[p.key] = p.line
		l.problems.add(BadValue, p.key, `Malformed \uxxxx encoding: a backslash and u need four hexadecimal digits after them`)
	}
	for _, p := range props {
		if earlier, ok := l.lines[p.key]; ok && l.static[p.key] != p.value {
			l.lines[p.key] = p.line
			l.warn(p.key, fmt.Sprintf("%s is set already in line %d; this line counts", p.key, earlier))
		}
		l.static[p.key], l.lines[p.key] = p.value, p.line
	}
	if line := looksUTF8(data); line > 0 {
		l.warnings = append(l.warnings, Warning{File: l.file, Line: line,
			Text: `the file is read as ISO 8859-1, as Kafka reads it; write other characters as \uXXXX`})
	}
}

// where finds the line of a key, or else of one of its synonyms: a rule on
// log.retention.ms is about log.retention.hours when that is what was written.
func (l *loader) where(key string) (string, int) {
	for _, name := range append([]string{key}, brokerSynonyms(key)...) {
		if line, ok := l.lines[name]; ok {
			if line == 0 {
				return fromOverride, 0
			}
			return l.file, line
		}
	}
	return "", 0
}

func (l *loader) warn(key, text string) {
	file, line := l.where(key)
	l.warnings = append(l.warnings, Warning{File: file, Line: line, Key: key, Text: text})
}

// replaced names the keys of earlier versions of Kafka and what took their
// place.
var replaced = map[string]string{
	"port":                     "use listeners",
	"host.name":                "use listeners",
	"advertised.port":          "use advertised.listeners",
	"advertised.host.name":     "use advertised.listeners",
	"replica.lag.max.messages": "replica.lag.time.max.ms alone decides",
	"quota.producer.default":   "set producer_byte_rate of the default client",
	"quota.consumer.default":   "set consumer_byte_rate of the default client",
	"zookeeper.sync.time.ms":   "nothing took its place",
}

// remark returns what there is to say about a key that is not wrong, "" for
// nothing.
func (l *loader) remark(key, text string) string {
	if what, ok := replaced[key]; ok {
		return key + " is of an earlier version of Kafka and has no effect: " + what
	}
	d := brokerDefinition(key)
	mechanism, base := mechanismKey(key)
	switch {
	case base != "" && mechanism != "":
		return ""
	case base == "sasl.jaas.config":
		return key + " has no effect without the mechanism's name: write listener.name.LISTENER.MECHANISM.sasl.jaas.config, both in lower case"
	case d == nil && topicTable.get(key) != nil:
		return fmt.Sprintf("%s is a topic's property and has no effect here: the default of all topics is %s",
			key, orNone(topicTable.get(key).BrokerKey))
	case d == nil && strings.HasPrefix(key, listenerPrefix):
		return key + " is not known, and has no effect"
	case d == nil:
		return key + " is not known, and has no effect" + suggestion(key)
	case d.DynamicOnly:
		return key + " has no effect in this file: it can only be set while the broker runs"
	case d.Unused && !sameValue(d, text):
		return key + " has no effect on this broker. " + d.Doc
	}
	return ""
}

func orNone(s string) string {
	if s == "" {
		return "not to be set"
	}
	return s
}

func sameValue(d *Definition, text string) bool {
	v, reason := d.parse(text)
	return reason != "" || format(v) == d.Default
}

// suggestion names the key that was most likely meant.
func suggestion(key string) string {
	best, distance := "", len(key)/4+1
	for _, d := range brokerTable.sorted {
		if n := editDistance(key, d.Name); n < distance {
			best, distance = d.Name, n
		}
	}
	if best == "" {
		return ""
	}
	return "; is " + best + " meant?"
}

// editDistance counts the insertions, deletions and replacements of bytes
// between two keys.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
