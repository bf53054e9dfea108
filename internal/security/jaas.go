package security

import (
	"errors"
	"fmt"
	"strings"
)

// login is one entry of a JAAS configuration:
//
//	org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b";
type login struct {
	module  string
	options map[string]string
}

var errJAAS = errors.New("not JAAS syntax")

// parseJAAS reads the value of sasl.jaas.config, which holds exactly one entry
// (JaasConfig). Errors name keys, never values.
func parseJAAS(text string) (login, error) {
	s := jaasScanner{rest: []rune(text)}
	module := s.next()
	switch {
	case module.kind == endOfText:
		return login{}, fmt.Errorf("%w: it names no login module", errJAAS)
	case module.kind == symbol:
		return login{}, fmt.Errorf("%w: it begins with %q, not with a login module", errJAAS, module.text)
	}
	l := login{module: module.text, options: map[string]string{}}
	flag := s.next()
	switch strings.ToUpper(flag.text) {
	case "REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL":
	default:
		return login{}, fmt.Errorf("%w: a control flag such as required must follow the login module", errJAAS)
	}
	for {
		key := s.next()
		switch {
		case key.kind == symbol && key.text == ";":
			if s.next().kind != endOfText {
				return login{}, fmt.Errorf("%w: more than one login module", errJAAS)
			}
			return l, nil
		case key.kind == endOfText:
			return login{}, fmt.Errorf("%w: the entry does not end with a semicolon", errJAAS)
		case key.kind == symbol:
			return login{}, fmt.Errorf("%w: %q where an option's name should be", errJAAS, key.text)
		}
		equals, value := s.next(), s.next()
		if equals.text != "=" || equals.kind != symbol || value.kind != word {
			return login{}, fmt.Errorf("%w: the option %s has no value", errJAAS, key.text)
		}
		l.options[key.text] = value.text
	}
}

type jaasKind int8

const (
	endOfText jaasKind = iota
	symbol             // ; or =
	word               // quoted or not
)

type jaasToken struct {
	kind jaasKind
	text string
}

// jaasScanner cuts text into tokens as the java.io.StreamTokenizer of Kafka's
// JaasConfig does: blanks part words, a slash outside of quotes begins a
// comment, quotes are single or double with C's escapes.
type jaasScanner struct{ rest []rune }

func (s *jaasScanner) next() jaasToken {
	for len(s.rest) > 0 {
		switch c := s.rest[0]; {
		case c <= ' ':
			s.rest = s.rest[1:]
		case c == '/':
			s.comment()
		case c == ';' || c == '=':
			s.rest = s.rest[1:]
			return jaasToken{symbol, string(c)}
		case c == '"' || c == '\'':
			s.rest = s.rest[1:]
			return jaasToken{word, s.quoted(c)}
		default:
			n := 1
			for n < len(s.rest) && s.rest[n] > ' ' && !strings.ContainsRune(`/;="'`, s.rest[n]) {
				n++
			}
			text := string(s.rest[:n])
			s.rest = s.rest[n:]
			return jaasToken{word, text}
		}
	}
	return jaasToken{}
}

func (s *jaasScanner) comment() {
	end, keep := "\n", 0
	if len(s.rest) > 1 && s.rest[1] == '*' {
		end, keep = "*/", 2
	}
	text := string(s.rest[max(1, keep):])
	if i := strings.Index(text, end); i >= 0 {
		s.rest = []rune(text[i+len(end):])
	} else {
		s.rest = nil
	}
}

// quoted reads to the closing quote, or the end of the line.
func (s *jaasScanner) quoted(quote rune) string {
	var b strings.Builder
	for len(s.rest) > 0 {
		c := s.rest[0]
		if c == '\n' || c == '\r' {
			break
		}
		s.rest = s.rest[1:]
		if c == quote {
			break
		}
		if c == '\\' && len(s.rest) > 0 {
			c = s.escape()
		}
		b.WriteRune(c)
	}
	return b.String()
}

// escape reads what follows a backslash: up to three octal digits, a letter of
// C, or any character itself.
func (s *jaasScanner) escape() rune {
	c := s.rest[0]
	s.rest = s.rest[1:]
	if i := strings.IndexRune("abfnrtv", c); i >= 0 {
		return []rune("\a\b\f\n\r\t\v")[i]
	}
	if c < '0' || c > '7' {
		return c
	}
	most := 2
	if c <= '3' {
		most = 3
	}
	value := c - '0'
	for n := 1; n < most && len(s.rest) > 0 && s.rest[0] >= '0' && s.rest[0] <= '7'; n++ {
		value = value*8 + s.rest[0] - '0'
		s.rest = s.rest[1:]
	}
	return value
}
