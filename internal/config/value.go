package config

import (
	"math"
	"strconv"
	"strings"
)

// A value is what text becomes for its type: bool, int64, float64, string or
// []string; nil is null.
type value any

// trim cuts what Java's String.trim cuts: anything up to the space character.
func trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
}

// parse reads text as ConfigDef.parseType does and checks it with the
// definition. On failure it returns why, in Kafka's words for the kind of
// mistake, and what is wrong if it was of the right type.
func (d *Definition) parse(text string) (v value, reason string) {
	v, reason = parseType(d.Type, trim(text))
	if reason != "" {
		return nil, reason // Kafka shows the text, not a value, then
	}
	v, reason = d.Valid.check(v)
	return v, strings.Replace(reason, nameHere, d.Name, 1)
}

// parseType is parse without the checks.
func parseType(t Type, s string) (value, string) {
	switch t {
	case TypeBoolean:
		switch {
		case strings.EqualFold(s, "true"):
			return true, ""
		case strings.EqualFold(s, "false"):
			return false, ""
		}
		return nil, "Expected value to be either true or false"
	case TypeInt:
		return parseInt(s, 32, "INT")
	case TypeShort:
		return parseInt(s, 16, "SHORT")
	case TypeLong:
		return parseInt(s, 64, "LONG")
	case TypeDouble:
		return parseDouble(s)
	case TypeList:
		return parseList(s), ""
	default:
		return s, ""
	}
}

func parseInt(s string, bits int, name string) (value, string) {
	n, err := strconv.ParseInt(s, 10, bits)
	if err != nil {
		return nil, "Not a number of type " + name
	}
	return n, ""
}

// parseDouble takes what Java's Double.parseDouble takes: exact names of the
// special values, an f or d at the end, infinity when out of range.
func parseDouble(s string) (value, string) {
	const reason = "Not a number of type DOUBLE"
	switch s {
	case "NaN", "+NaN", "-NaN":
		return math.NaN(), ""
	case "Infinity", "+Infinity":
		return math.Inf(1), ""
	case "-Infinity":
		return math.Inf(-1), ""
	}
	number := s
	if n := len(s); n > 1 && strings.ContainsRune("fFdD", rune(s[n-1])) && !strings.HasPrefix(strings.ToLower(s), "0x") {
		number = s[:n-1]
	}
	if strings.ContainsAny(number, "_iInN") {
		return nil, reason
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil && !math.IsInf(f, 0) {
		return nil, reason
	}
	return f, ""
}

func parseList(s string) []string {
	if s == "" {
		return []string{}
	}
	items := strings.Split(s, ",")
	for i := range items {
		// The blanks around a comma are those of \s in a Java pattern.
		items[i] = strings.Trim(items[i], " \t\n\v\f\r")
	}
	return items
}

// format writes a value as ConfigDef.convertToString does.
func format(v value) string {
	switch v := v.(type) {
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return formatDouble(v)
	case string:
		return v
	case []string:
		return strings.Join(v, ",")
	}
	return ""
}

// formatDouble writes a double as Java's Double.toString does: a decimal point
// always, an exponent below 10^-3 and from 10^7 on.
func formatDouble(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-3 || a >= 1e7) {
		mantissa, exp, _ := strings.Cut(strconv.FormatFloat(f, 'E', -1, 64), "E")
		if !strings.Contains(mantissa, ".") {
			mantissa += ".0"
		}
		n, _ := strconv.Atoi(exp)
		return mantissa + "E" + strconv.Itoa(n)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// display writes a value as it appears in an error message.
func display(v value) string {
	if l, ok := v.([]string); ok {
		return "[" + strings.Join(l, ", ") + "]"
	}
	return format(v)
}
