package client

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// maxProperties is the largest properties file that is read.
const maxProperties = 16 << 20

// ReadProperties reads a file in the format of java.util.Properties, in UTF-8
// or with \uXXXX: lines of name=value, # and ! for comments, a backslash at the
// end of a line that goes on.
func ReadProperties(r io.Reader) (map[string]string, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxProperties+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxProperties {
		return nil, badOption("the properties file is larger than %d bytes", maxProperties)
	}
	props := map[string]string{}
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data)), "\n")
	for i := 0; i < len(lines); i++ {
		first := i + 1
		line := strings.TrimLeft(lines[i], " \t\f")
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		for (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1 {
			line = line[:len(line)-1]
			if i++; i == len(lines) {
				break
			}
			line += strings.TrimLeft(lines[i], " \t\f")
		}
		key, value := cutProperty(line)
		k, okKey := unescapeProperty(key)
		v, okValue := unescapeProperty(value)
		if !okKey || !okValue {
			return nil, badOption("line %d of the properties: \\u is followed by four hex digits", first)
		}
		props[k] = v
	}
	return props, nil
}

func cutProperty(line string) (key, value string) {
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '=', ':', ' ', '\t', '\f':
			rest := strings.TrimLeft(line[i:], " \t\f")
			if rest != "" && (rest[0] == '=' || rest[0] == ':') {
				rest = strings.TrimLeft(rest[1:], " \t\f")
			}
			return line[:i], rest
		}
	}
	return line, ""
}

func unescapeProperty(s string) (string, bool) {
	if !strings.Contains(s, `\`) {
		return s, true
	}
	var b strings.Builder
	var units []uint16
	flush := func() {
		b.WriteString(string(utf16.Decode(units)))
		units = units[:0]
	}
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			flush()
			b.WriteByte(s[i])
			continue
		}
		i++
		if s[i] == 'u' {
			if i+5 > len(s) {
				return "", false
			}
			n, err := strconv.ParseUint(s[i+1:i+5], 16, 16)
			if err != nil {
				return "", false
			}
			units = append(units, uint16(n))
			i += 4
			continue
		}
		flush()
		if at := strings.IndexByte("tnrf", s[i]); at >= 0 {
			b.WriteByte("\t\n\r\f"[at])
		} else {
			b.WriteByte(s[i])
		}
	}
	flush()
	return b.String(), true
}

// propertyReader takes properties one by one, noting what is wrong with them.
type propertyReader struct {
	props map[string]string
	known map[string]bool
	errs  []error
}

func newPropertyReader(props map[string]string) *propertyReader {
	return &propertyReader{props: props, known: map[string]bool{}}
}

// text returns the value of the first of names that is set.
func (r *propertyReader) text(names ...string) (name, value string, ok bool) {
	for _, n := range names {
		r.known[n] = true
	}
	for _, n := range names {
		if v, ok := r.props[n]; ok {
			return n, strings.TrimSpace(v), true
		}
	}
	return "", "", false
}

func (r *propertyReader) bad(name, value, want string) {
	r.errs = append(r.errs, badOption("%s=%s: write %s", name, value, want))
}

func (r *propertyReader) string(to *string, names ...string) {
	if _, v, ok := r.text(names...); ok {
		*to = v
	}
}

func (r *propertyReader) int(to *int, least int64, names ...string) {
	if name, v, ok := r.text(names...); ok {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < least {
			r.bad(name, v, fmt.Sprintf("a whole number from %d on", least))
			return
		}
		*to = int(n)
	}
}

// ms reads milliseconds. Below 0, where least allows it, is no limit.
func (r *propertyReader) ms(to *time.Duration, least int64, names ...string) {
	n := -1 << 40
	r.int(&n, least, names...)
	if n > -1<<40 {
		*to = time.Duration(min(n, 1<<40)) * time.Millisecond // 34 years
	}
}

func (r *propertyReader) bool(to *bool, names ...string) {
	if name, v, ok := r.text(names...); ok {
		switch strings.ToLower(v) {
		case "true":
			*to = true
		case "false":
			*to = false
		default:
			r.bad(name, v, "true or false")
		}
	}
}

func (r *propertyReader) list(to *[]string, names ...string) {
	if _, v, ok := r.text(names...); ok {
		*to = nil
		for part := range strings.SplitSeq(v, ",") {
			if part = strings.TrimSpace(part); part != "" {
				*to = append(*to, part)
			}
		}
	}
}

// unknown returns the names that nothing asked for.
func (r *propertyReader) unknown() (names []string) {
	for n := range r.props {
		if !r.known[n] {
			names = append(names, n)
		}
	}
	return names
}
