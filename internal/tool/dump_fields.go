package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// fields are what a line of dump-log says, "name: value name: value", or a
// document of it.
type fields []field

type field struct {
	name  string
	value any
}

func (f fields) String() string {
	var parts []string
	for _, p := range f {
		parts = append(parts, fmt.Sprintf("%s: %v", p.name, p.value))
	}
	return strings.Join(parts, " ")
}

// MarshalJSON keeps the order.
func (f fields) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range f {
		if i > 0 {
			b.WriteByte(',')
		}
		for j, v := range []any{p.name, p.value} {
			if j > 0 {
				b.WriteByte(':')
			}
			text, err := json.Marshal(v)
			if err != nil {
				return nil, err
			}
			b.Write(text)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// optional is a number that may be missing: Java's OptionalLong, null in JSON.
type optional struct {
	n  int64
	ok bool
}

func (o optional) String() string {
	if !o.ok {
		return "OptionalLong.empty"
	}
	return fmt.Sprintf("OptionalLong[%d]", o.n)
}

// MarshalJSON writes the number or null.
func (o optional) MarshalJSON() ([]byte, error) {
	if !o.ok {
		return []byte("null"), nil
	}
	return json.Marshal(o.n)
}

// names are written with commas between, in brackets.
type names []string

func (n names) String() string { return "[" + strings.Join(n, ",") + "]" }

// braced is a number behind which Kafka's script writes a brace.
type braced uint32

func (b braced) String() string { return fmt.Sprintf("%d}", uint32(b)) }

// say writes a line that says nothing of the content.
func (d *dump) say(line string) {
	if !d.c.JSON {
		fmt.Fprintln(d.c.Out, line)
	}
}

// line writes what there is to say of one thing in the file.
func (d *dump) line(prefix string, f fields, suffix ...string) {
	if !d.c.JSON {
		fmt.Fprintln(d.c.Out, prefix+f.String()+strings.Join(suffix, ""))
		return
	}
	_ = d.c.printJSON(append(fields{{"file", d.name}}, f...)) // who reads no more ends the command
}
