package tool

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// formatter writes records (org.apache.kafka.common.MessageFormatter).
type formatter interface {
	write(*bufio.Writer, *kgo.Record) error
}

func newFormatter(a *Args) (formatter, error) {
	class := a.Text("formatter")
	if a.Text("output") == "json" {
		class = "json"
	}
	switch class[strings.LastIndexByte(class, '.')+1:] {
	case "NoOpMessageFormatter":
		return noFormat{}, nil
	case "json":
		return jsonFormat{}, nil
	case "DefaultMessageFormatter", "LoggingMessageFormatter":
		return newDefaultFormat(a)
	}
	return nil, terse("There is no formatter %s here; write one of: %s", class, strings.Join(formatters(), ", "))
}

type noFormat struct{}

func (noFormat) write(*bufio.Writer, *kgo.Record) error { return nil }

// jsonFormat writes a record as one line of JSON. Keys and values that are no
// UTF-8 are in base64, under another name.
type jsonFormat struct{}

func (jsonFormat) write(w *bufio.Writer, r *kgo.Record) error {
	doc := map[string]any{"topic": r.Topic, "partition": r.Partition, "offset": r.Offset}
	if r.Attrs.TimestampType() >= 0 {
		doc["timestamp"] = r.Timestamp.UnixMilli()
	}
	put := func(name string, b []byte) {
		switch {
		case b == nil:
			doc[name] = nil
		case utf8.Valid(b):
			doc[name] = string(b)
		default:
			doc[name+"Base64"] = b
		}
	}
	put("key", r.Key)
	put("value", r.Value)
	if len(r.Headers) > 0 {
		var list []map[string]string
		for _, h := range r.Headers {
			list = append(list, map[string]string{"key": h.Key, "value": string(h.Value)})
		}
		doc["headers"] = list
	}
	line, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// defaultFormat is DefaultMessageFormatter.
type defaultFormat struct {
	timestamp, key, value, partition, offset, headers   bool
	keySeparator, lineSeparator, headersSeparator, null string
	readKey, readValue, readHeader                      func([]byte) string
}

func newDefaultFormat(a *Args) (formatter, error) {
	props, err := properties(a.Text("formatter-config"))
	if err != nil {
		return nil, err
	}
	pairs(props, a.All("property"))
	f := &defaultFormat{value: true, keySeparator: "\t", lineSeparator: "\n", headersSeparator: ",", null: "null"}
	for name, to := range map[string]*bool{
		"print.timestamp": &f.timestamp, "print.key": &f.key, "print.value": &f.value,
		"print.partition": &f.partition, "print.offset": &f.offset, "print.headers": &f.headers,
	} {
		if v, ok := props[name]; ok {
			*to = strings.EqualFold(strings.TrimSpace(v), "true")
		}
	}
	for name, to := range map[string]*string{
		"key.separator": &f.keySeparator, "line.separator": &f.lineSeparator, "headers.separator": &f.headersSeparator, "null.literal": &f.null,
	} {
		if v, ok := props[name]; ok {
			*to = v
		}
	}
	for name, to := range map[string]*func([]byte) string{"key.deserializer": &f.readKey, "value.deserializer": &f.readValue, "headers.deserializer": &f.readHeader} {
		class := props[name]
		if option := strings.Replace(name, ".", "-", 1); a.Text(option) != "" {
			class = a.Text(option)
		}
		read, ok := deserializers[class[strings.LastIndexByte(class, '.')+1:]]
		if !ok {
			return nil, terse("There is no deserializer %s here", class)
		}
		*to = read
	}
	return f, nil
}

// deserializers are those of org.apache.kafka.common.serialization, and what
// their values look like in text.
var deserializers = map[string]func([]byte) string{
	"":                      func(b []byte) string { return string(b) },
	"StringDeserializer":    func(b []byte) string { return string(b) },
	"ByteArrayDeserializer": func(b []byte) string { return string(b) },
	"IntegerDeserializer": func(b []byte) string {
		if len(b) != 4 {
			return fmt.Sprintf("(%d bytes, not 4)", len(b))
		}
		return strconv.Itoa(int(int32(binary.BigEndian.Uint32(b))))
	},
	"LongDeserializer": func(b []byte) string {
		if len(b) != 8 {
			return fmt.Sprintf("(%d bytes, not 8)", len(b))
		}
		return strconv.FormatInt(int64(binary.BigEndian.Uint64(b)), 10)
	},
	"ShortDeserializer": func(b []byte) string {
		if len(b) != 2 {
			return fmt.Sprintf("(%d bytes, not 2)", len(b))
		}
		return strconv.Itoa(int(int16(binary.BigEndian.Uint16(b))))
	},
	"DoubleDeserializer": func(b []byte) string {
		if len(b) != 8 {
			return fmt.Sprintf("(%d bytes, not 8)", len(b))
		}
		return javaDouble(math.Float64frombits(binary.BigEndian.Uint64(b)))
	},
	"BooleanDeserializer": func(b []byte) string { return strconv.FormatBool(len(b) == 1 && b[0] == 1) },
}

// timestampTypes are what Kafka calls a record's TimestampType.
var timestampTypes = map[int8]string{0: "CreateTime", 1: "LogAppendTime"}

func (f *defaultFormat) write(w *bufio.Writer, r *kgo.Record) error {
	first := true
	part := func(on bool, s func() string) {
		if !on {
			return
		}
		if !first {
			w.WriteString(f.keySeparator)
		}
		first = false
		w.WriteString(s())
	}
	orNull := func(b []byte, read func([]byte) string) string {
		if b == nil {
			return f.null
		}
		return read(b)
	}
	part(f.timestamp, func() string {
		name, ok := timestampTypes[r.Attrs.TimestampType()]
		if !ok {
			return "NO_TIMESTAMP"
		}
		return name + ":" + strconv.FormatInt(r.Timestamp.UnixMilli(), 10)
	})
	part(f.partition, func() string { return "Partition:" + itoa(r.Partition) })
	part(f.offset, func() string { return "Offset:" + strconv.FormatInt(r.Offset, 10) })
	part(f.headers, func() string {
		if len(r.Headers) == 0 {
			return "NO_HEADERS"
		}
		var list []string
		for _, h := range r.Headers {
			list = append(list, h.Key+":"+orNull(h.Value, f.readHeader))
		}
		return strings.Join(list, f.headersSeparator)
	})
	part(f.key, func() string { return orNull(r.Key, f.readKey) })
	part(f.value, func() string { return orNull(r.Value, f.readValue) })
	_, err := w.WriteString(f.lineSeparator)
	return err
}
