package config

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// property is one line of a properties file.
type property struct {
	key, value string
	line       int // the first, if it goes on over several; from 1
}

// maxPropertiesSize is the largest file that is read.
const maxPropertiesSize = 16 << 20

// parseProperties reads a file as java.util.Properties.load(InputStream) does:
//
//   - bytes are ISO 8859-1; anything else is written \uXXXX, in UTF-16
//   - lines end with \n, \r or \r\n; blank ones, and those whose first character
//     is # or !, are skipped
//   - a line that ends with an odd number of backslashes goes on in the next,
//     whose leading blanks are dropped, even if that looks like a comment; but a
//     lone backslash counts as a blank line (and, at the end of the file, as an
//     empty key)
//   - a key ends at the first =, : or blank that has no backslash before it; one
//     = or : and the blanks around it are dropped
//   - \t, \n, \r and \f are what they look like; before anything else a
//     backslash is dropped
//
// A bad \u escape is reported with its line; the other lines are still read.
func parseProperties(data []byte) (props []property, bad []property) {
	lines := splitLines(data)
	for i := 0; i < len(lines); i++ {
		text := strings.TrimLeft(lines[i], blanks)
		if text == "" || text[0] == '#' || text[0] == '!' {
			continue
		}
		if text == `\` {
			if strings.Join(lines[i+1:], "") == "" && len(lines) <= i+2 && !bytes.HasSuffix(data, []byte("\r\n")) {
				props = append(props, property{"", "", i + 1})
			}
			continue
		}
		first := i + 1
		for continues(text) {
			text = text[:len(text)-1]
			if i++; i == len(lines) {
				break
			}
			text += strings.TrimLeft(lines[i], blanks)
		}
		key, value := splitProperty(text)
		k, okKey := unescape(key)
		v, okValue := unescape(value)
		if !okKey || !okValue {
			bad = append(bad, property{k, text, first})
			continue
		}
		props = append(props, property{k, v, first})
	}
	return props, bad
}

// blanks are what java.util.Properties calls white space within a line.
const blanks = " \t\f"

// splitLines cuts the file into lines and makes UTF-8 of ISO 8859-1.
func splitLines(data []byte) []string {
	var b strings.Builder
	for _, c := range data {
		b.WriteRune(rune(c))
	}
	text := strings.ReplaceAll(b.String(), "\r\n", "\n")
	return strings.Split(strings.ReplaceAll(text, "\r", "\n"), "\n")
}

func continues(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

func splitProperty(text string) (key, value string) {
	end := len(text)
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' {
			i++
		} else if strings.IndexByte("=:"+blanks, text[i]) >= 0 {
			end = i
			break
		}
	}
	key, value = text[:end], strings.TrimLeft(text[end:], blanks)
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = strings.TrimLeft(value[1:], blanks)
	}
	return key, value
}

func unescape(s string) (string, bool) {
	if !strings.Contains(s, `\`) {
		return s, true
	}
	var units []uint16
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		if r == '\\' && i < len(s) {
			r, n = utf8.DecodeRuneInString(s[i:])
			i += n
			switch r {
			case 't':
				r = '\t'
			case 'n':
				r = '\n'
			case 'r':
				r = '\r'
			case 'f':
				r = '\f'
			case 'u':
				unit, ok := hex4(s[i:])
				if !ok {
					return s, false
				}
				i += 4
				units = append(units, unit)
				continue
			}
		}
		units = utf16.AppendRune(units, r)
	}
	return string(utf16.Decode(units)), true
}

func hex4(s string) (unit uint16, ok bool) {
	if len(s) < 4 {
		return 0, false
	}
	for _, c := range []byte(s[:4]) {
		digit := strings.IndexByte("0123456789abcdef", c|0x20)
		if digit < 0 || c < '0' {
			return 0, false
		}
		unit = unit<<4 | uint16(digit)
	}
	return unit, true
}

// looksUTF8 returns the first line that has UTF-8 beyond ASCII in it, 0 if none
// has: what Kafka makes of such a line is most likely not what was meant.
func looksUTF8(data []byte) int {
	for i, line := range strings.Split(string(data), "\n") {
		if utf8.ValidString(line) && strings.ContainsFunc(line, func(r rune) bool { return r >= utf8.RuneSelf }) {
			if t := strings.TrimLeft(line, blanks); t != "" && t[0] != '#' && t[0] != '!' {
				return i + 1
			}
		}
	}
	return 0
}

// splitOverride reads the argument of --override.
func splitOverride(arg string) (key, value string, err error) {
	key, value, ok := strings.Cut(arg, "=")
	if key = trim(key); !ok || key == "" {
		return "", "", fmt.Errorf("--override %s: write name=value", arg)
	}
	return key, value, nil
}
