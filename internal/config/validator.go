package config

import (
	"slices"
	"strconv"
	"strings"
)

// Validator says which values of the right type are allowed. The zero value
// allows all.
type Validator struct {
	text string // "" when everything is allowed
	fn   func(v value) string
	each bool // of a list, look at one member at a time
}

// String describes what is allowed, in the notation of Kafka's documentation;
// "" if everything is.
func (v Validator) String() string { return v.text }

// check returns why a value is refused, "" if it is not, and the value or the
// member of a list that is.
func (v Validator) check(x value) (value, string) {
	if v.fn == nil {
		return x, ""
	}
	if members, ok := x.([]string); ok && v.each {
		for _, m := range members {
			if reason := v.fn(m); reason != "" {
				return m, reason
			}
		}
		return x, ""
	}
	return x, v.fn(x)
}

var anything Validator

func number(x value) float64 {
	switch n := x.(type) {
	case int64:
		return float64(n)
	case float64:
		return n
	}
	return 0
}

func bound(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

func tooSmall(min float64) string { return "Value must be at least " + bound(min) }
func tooLarge(max float64) string { return "Value must be no more than " + bound(max) }

func atLeast(min float64) Validator {
	return Validator{text: "[" + bound(min) + ",...]", fn: func(x value) string {
		if number(x) < min {
			return tooSmall(min)
		}
		return ""
	}}
}

func between(min, max float64) Validator {
	return Validator{text: "[" + bound(min) + ",...," + bound(max) + "]", fn: func(x value) string {
		switch n := number(x); {
		case n < min:
			return tooSmall(min)
		case n > max:
			return tooLarge(max)
		}
		return ""
	}}
}

// oneOf allows these strings; of a list, each member has to be one of them.
func oneOf(names ...string) Validator {
	list := strings.Join(names, ", ")
	return Validator{text: "[" + list + "]", each: true, fn: func(x value) string {
		if !slices.Contains(names, x.(string)) {
			return "String must be one of: " + list
		}
		return ""
	}}
}

// oneOfFold allows these strings, in upper or lower case.
func oneOfFold(names ...string) Validator {
	list := strings.Join(names, ", ")
	return Validator{text: "(case insensitive) [" + list + "]", fn: func(x value) string {
		if !slices.Contains(names, strings.ToUpper(x.(string))) {
			return "String must be one of (case insensitive): " + list
		}
		return ""
	}}
}

var nonEmpty = Validator{text: "non-empty string", fn: func(x value) string {
	if x.(string) == "" {
		return "String must be non-empty"
	}
	return ""
}}

// nonNull and nonEmptyList only name themselves: a value that is set is not
// null, and Kafka takes an empty list in the two places that say otherwise.
var (
	nonNull      = Validator{text: "non-null string", fn: nil}
	nonEmptyList = Validator{text: "non-empty list", fn: nil}
)

var gzipLevel = Validator{text: "[1,...,9] or -1", fn: func(x value) string {
	if n := x.(int64); n != -1 && (n < 1 || n > 9) {
		return "Value must be between 1 and 9 or equal to -1"
	}
	return ""
}}

var positiveOrUnset = Validator{text: "[1,...] or -1", fn: func(x value) string {
	if n := x.(int64); n != -1 && n < 1 {
		return "Value must be at least 1, or -1"
	}
	return ""
}}

var metadataVersion = Validator{text: "a version of Kafka, such as 2.8 or 2.8-IV1", fn: func(x value) string {
	if s := x.(string); resolveVersion(s) == "" {
		return "Version " + s + " is not a valid version"
	}
	return ""
}}

// nameHere, in a reason, stands for the name of the property.
const nameHere = "{name}"

const throttledForm = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."

var throttledReplicas = Validator{text: throttledForm, fn: func(x value) string {
	if _, ok := parseThrottled(x.([]string)); !ok {
		return nameHere + " must be the literal '*' or a list of replicas in the following format: " + throttledForm
	}
	return ""
}}
