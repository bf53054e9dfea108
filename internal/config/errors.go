package config

import (
	"errors"
	"slices"
	"strings"
)

// Kind is the kind of mistake that an [Error] tells of. Kafka answers different
// error codes, or wraps the message in other words, depending on it.
type Kind int8

// The kinds of mistakes, and what Kafka 3.9.1 answers when one is met in
// CreateTopics, AlterConfigs or IncrementalAlterConfigs. For a topic the code
// is INVALID_CONFIG in every case; for a broker it is INVALID_REQUEST.
const (
	// UnknownKey: a topic or client key that does not exist.
	UnknownKey Kind = iota
	// NotDynamic: a broker key that can't change while running.
	NotDynamic
	// NeedsListener: a security key that can change only with the prefix of a
	// listener.
	NeedsListener
	// BadValue: of the wrong type or out of bounds. When a topic is altered
	// (not created) Kafka puts "Invalid config value for resource
	// ConfigResource(type=TOPIC, name='t'): " before the message.
	BadValue
	// NeedsBroker: a broker key that can't have a cluster-wide default.
	NeedsBroker
	// Conflict: two or more values that do not fit together, or a rule that is
	// about more than bounds.
	Conflict
	// TooFarAtOnce: a value that is allowed, but too far from the current one.
	TooFarAtOnce
)

// Error is one mistake in the properties.
type Error struct {
	Kind Kind
	Key  string // of a Conflict, the key to look at first
	Text string // what was found and what is allowed; never shows a password
	File string // "--override" for an override, "" when the value is not from the start
	Line int    // from 1; 0 when the value did not come from a file
}

// Error returns the text, after the place if it is known.
func (e *Error) Error() string { return place(e.File, e.Line) + e.Text }

// Errors is every mistake found, in the order of lines, then of kinds, then of
// keys. It is never empty.
type Errors []*Error

// Error returns one line for each mistake.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i := range e {
		lines[i] = e[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the mistakes as errors.
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i := range e {
		errs[i] = e[i]
	}
	return errs
}

// First returns the first mistake of an error that this package returned, nil
// if it is none: Kafka's answers hold one only.
func First(err error) *Error {
	var all Errors
	if errors.As(err, &all) && len(all) > 0 {
		return all[0]
	}
	var one *Error
	errors.As(err, &one)
	return one
}

// problems gathers mistakes.
type problems struct {
	list Errors
	// where finds file and line of a static key; nil when nothing came from a
	// file.
	where func(key string) (file string, line int)
}

func (p *problems) add(kind Kind, key, text string) {
	e := &Error{Kind: kind, Key: key, Text: text}
	if p.where != nil {
		e.File, e.Line = p.where(key)
	}
	p.list = append(p.list, e)
}

// value adds a bad value, in the words of Kafka's ConfigException.
func (p *problems) value(d *Definition, key, text string, v value, reason string) {
	shown := text
	switch {
	case d.Sensitive():
		shown = "[hidden]"
	case v != nil:
		shown = display(v)
	}
	p.add(BadValue, key, "Invalid value "+shown+" for configuration "+key+": "+reason)
}

// conflict adds a Conflict unless ok.
func (p *problems) conflict(ok bool, key, text string) {
	if !ok {
		p.add(Conflict, key, text)
	}
}

// err returns what was gathered, sorted, or nil.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b *Error) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		if a.Kind != b.Kind {
			return int(a.Kind) - int(b.Kind)
		}
		return strings.Compare(a.Key, b.Key)
	})
	return p.list
}
