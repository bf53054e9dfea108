package znode

import (
	"bytes"
	"iter"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds how deep skipped JSON may nest.
const maxDepth = 100

// parser walks JSON in place. encoding/json is not used since it matches keys
// without regard to case, takes invalid UTF-8, and costs ten times as much: a
// controller decodes a state node for each partition.
//
// The first error sticks: later calls return zero values, and end reports it.
type parser struct {
	kind  string
	data  []byte
	pos   int
	depth int
	key   []byte // last key entered, for messages
	err   error
}

// parse starts on data, the value of a node that is described by kind.
func parse(kind string, data []byte) *parser {
	p := &parser{kind: kind, data: data}
	if len(data) > MaxData {
		p.err = &DecodeError{Kind: kind, Cause: ErrTooLarge, Detail: strconv.Itoa(len(data)) + " bytes"}
		return p
	}
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		p.pos = 3 // Jackson skips a byte order mark
	}
	return p
}

func (p *parser) fail(what string) {
	if p.err != nil {
		return
	}
	detail := what + " at byte " + strconv.Itoa(p.pos)
	if p.key != nil {
		detail = strconv.Quote(string(p.key)) + ": " + detail
	}
	p.err = &DecodeError{Kind: p.kind, Cause: ErrFormat, Detail: detail}
}

// require fails with "missing" unless ok.
func (p *parser) require(ok bool, key string) {
	if p.err == nil && !ok {
		p.err = &DecodeError{Kind: p.kind, Cause: ErrFormat, Detail: strconv.Quote(key) + " is missing"}
	}
}

// peek skips white space and returns the next byte, 0 at the end.
func (p *parser) peek() byte {
	for p.pos < len(p.data) {
		switch c := p.data[p.pos]; c {
		case ' ', '\t', '\r', '\n':
			p.pos++
		default:
			return c
		}
	}
	return 0
}

// open enters an object or array; false if the value is none.
func (p *parser) open(c byte, what string) bool {
	if p.err != nil {
		return false
	}
	if p.peek() != c {
		p.fail("expected " + what)
		return false
	}
	if p.depth++; p.depth > maxDepth {
		p.fail("nested too deep")
		return false
	}
	p.pos++
	return true
}

// next handles what stands between two members: true if one more follows.
func (p *parser) next(first bool, end byte) bool {
	if p.err != nil {
		return false
	}
	switch c := p.peek(); {
	case c == end:
		p.pos++
		p.depth--
		return false
	case first:
		return true
	case c == ',':
		p.pos++
		return true
	}
	p.fail("expected a comma or the end")
	return false
}

// fields walks an object. The body must consume each value, if only by skip.
// The key is valid until the next one.
func (p *parser) fields() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if !p.open('{', "an object") {
			return
		}
		for first := true; p.next(first, '}'); first = false {
			key := p.rawString()
			if p.err == nil && p.peek() != ':' {
				p.fail("expected a colon")
			}
			if p.err != nil {
				return
			}
			p.pos++
			p.key = key
			if !yield(key) {
				return
			}
		}
	}
}

// elements walks an array. The body must consume each value.
func (p *parser) elements() iter.Seq[struct{}] {
	return func(yield func(struct{}) bool) {
		if !p.open('[', "an array") {
			return
		}
		for first := true; p.next(first, ']'); first = false {
			if !yield(struct{}{}) {
				return
			}
		}
	}
}

// null consumes a null and tells whether there was one.
func (p *parser) null() bool {
	if p.err == nil && p.peek() == 'n' {
		p.literal("null")
		return p.err == nil
	}
	return false
}

func (p *parser) literal(word string) {
	if !bytes.HasPrefix(p.data[p.pos:], []byte(word)) {
		p.fail("expected a value")
		return
	}
	p.pos += len(word)
}

// number returns the text of a number and whether it is an integer.
func (p *parser) number() (text []byte, integer bool) {
	if p.err != nil {
		return nil, false
	}
	p.peek()
	start, at := p.pos, p.pos
	digits := func() bool {
		from := at
		for at < len(p.data) && p.data[at] >= '0' && p.data[at] <= '9' {
			at++
		}
		return at > from
	}
	is := func(set string) bool {
		return at < len(p.data) && bytes.IndexByte([]byte(set), p.data[at]) >= 0
	}
	if is("-") {
		at++
	}
	zero := is("0")
	from := at
	if !digits() || zero && at > from+1 {
		p.fail("expected a number")
		return nil, false
	}
	integer = true
	if is(".") {
		integer = false
		at++
		if !digits() {
			p.fail("malformed number")
			return nil, false
		}
	}
	if is("eE") {
		integer = false
		at++
		if is("+-") {
			at++
		}
		if !digits() {
			p.fail("malformed number")
			return nil, false
		}
	}
	p.pos = at
	return p.data[start:at], integer
}

func (p *parser) integer(bits int) int64 {
	text, integer := p.number()
	if p.err != nil {
		return 0
	}
	n, err := strconv.ParseInt(string(text), 10, bits)
	if !integer || err != nil {
		p.fail("not a " + strconv.Itoa(bits) + "-bit integer")
		return 0
	}
	return n
}

func (p *parser) int32() int32 { return int32(p.integer(32)) }
func (p *parser) int64() int64 { return p.integer(64) }

// decimal reads an integer that is written as a JSON string.
func (p *parser) decimal() int64 {
	n, err := strconv.ParseInt(p.string(), 10, 64)
	if err != nil {
		p.fail("not a decimal string")
		return 0
	}
	return n
}

// timestamp reads milliseconds. Kafka reads no timestamp back, so whatever
// stands there is taken; what is no number counts as 0.
func (p *parser) timestamp() int64 {
	var text []byte
	switch c := p.peek(); {
	case c == '"':
		text = p.rawString()
	case c == '-' || c >= '0' && c <= '9':
		text, _ = p.number()
	default:
		p.skip()
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (p *parser) int32s() []int32 {
	list := []int32{}
	for range p.elements() {
		list = append(list, p.int32())
	}
	return list
}

func (p *parser) strings() []string {
	list := []string{}
	for range p.elements() {
		list = append(list, p.string())
	}
	return list
}

func (p *parser) string() string { return string(p.rawString()) }

// rawString returns the text of a string; without escapes it is a part of data.
func (p *parser) rawString() []byte {
	if p.err != nil {
		return nil
	}
	if p.peek() != '"' {
		p.fail("expected a string")
		return nil
	}
	p.pos++
	start := p.pos
	for p.pos < len(p.data) {
		switch c := p.data[p.pos]; {
		case c == '"':
			text := p.data[start:p.pos]
			if !utf8.Valid(text) {
				p.fail("invalid UTF-8")
				return nil
			}
			p.pos++
			return text
		case c == '\\':
			return p.escapedString(start)
		case c < ' ':
			p.fail("control character in a string")
			return nil
		}
		p.pos++
	}
	p.fail("unterminated string")
	return nil
}

// escapedString goes on at the first escape of a string that began at start.
func (p *parser) escapedString(start int) []byte {
	out := append([]byte(nil), p.data[start:p.pos]...)
	for p.pos < len(p.data) {
		c := p.data[p.pos]
		p.pos++
		switch {
		case c == '"':
			if !utf8.Valid(out) {
				p.fail("invalid UTF-8")
				return nil
			}
			return out
		case c < ' ':
			p.fail("control character in a string")
			return nil
		case c != '\\':
			out = append(out, c)
			continue
		}
		if p.pos == len(p.data) {
			break
		}
		c = p.data[p.pos]
		p.pos++
		switch c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := p.hex4()
			if utf16.IsSurrogate(r) && bytes.HasPrefix(p.data[p.pos:], []byte(`\u`)) {
				p.pos += 2
				r = utf16.DecodeRune(r, p.hex4())
			}
			if p.err != nil {
				return nil
			}
			out = utf8.AppendRune(out, r)
		default:
			p.fail("unknown escape")
			return nil
		}
	}
	p.fail("unterminated string")
	return nil
}

func (p *parser) hex4() rune {
	if len(p.data)-p.pos < 4 {
		p.fail("unterminated string")
		return 0
	}
	n, err := strconv.ParseUint(string(p.data[p.pos:p.pos+4]), 16, 16)
	if err != nil {
		p.fail("malformed escape")
		return 0
	}
	p.pos += 4
	return rune(n)
}

// skip consumes any one value.
func (p *parser) skip() {
	if p.err != nil {
		return
	}
	switch c := p.peek(); {
	case c == '{':
		for range p.fields() {
			p.skip()
		}
	case c == '[':
		for range p.elements() {
			p.skip()
		}
	case c == '"':
		p.rawString()
	case c == 't':
		p.literal("true")
	case c == 'f':
		p.literal("false")
	case c == 'n':
		p.literal("null")
	default:
		p.number()
	}
}

// appendString appends s as a JSON string with the escapes that Jackson uses.
// Invalid UTF-8 becomes U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\b':
			dst = append(dst, `\b`...)
		case r == '\f':
			dst = append(dst, `\f`...)
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\r':
			dst = append(dst, `\r`...)
		case r == '\t':
			dst = append(dst, `\t`...)
		case r < ' ':
			const hex = "0123456789ABCDEF"
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

func appendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }

// appendDecimal appends n as a JSON string (invariant 4).
func appendDecimal(dst []byte, n int64) []byte {
	return append(strconv.AppendInt(append(dst, '"'), n, 10), '"')
}

func appendInt32s(dst []byte, list []int32) []byte {
	dst = append(dst, '[')
	for i, n := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(n), 10)
	}
	return append(dst, ']')
}

func appendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, s)
	}
	return append(dst, ']')
}
