package security

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"barnabas/internal/config"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// ErrMechanism is a SASL mechanism that this broker can't serve.
var ErrMechanism = errors.New("SASL mechanism is not supported")

const plainName = "PLAIN"

// Listener is what a SASL listener takes.
type Listener struct {
	names      []string // as sasl.enabled.mechanisms has them
	mechanisms []*mechanism
	maxReceive int
}

// mechanism is an enabled mechanism of a listener.
type mechanism struct {
	name     string
	lifetime time.Duration // connections.max.reauth.ms; 0: for ever
	start    func() exchange
}

// exchange is one authentication. next takes the client's next token; with a
// user in its answer the client is authenticated. Only a [refusal] may be told
// to the client.
type exchange interface {
	next(token []byte) (answer []byte, user string, err error)
}

// NewListener reads what a SASL listener of this broker takes. SCRAM
// credentials are looked up in users as they are then.
func NewListener(c *config.Broker, name string, users *Credentials) (*Listener, error) {
	own := c.ForListener(name)
	l := &Listener{maxReceive: own.Int("sasl.server.max.receive.size")}
	for _, m := range own.List("sasl.enabled.mechanisms") {
		if slices.Contains(l.names, m) {
			continue
		}
		made, err := newMechanism(c, name, m, users)
		if err != nil {
			return nil, fmt.Errorf("listener %s: %w", name, err)
		}
		l.names, l.mechanisms = append(l.names, m), append(l.mechanisms, made)
	}
	if len(l.names) == 0 {
		return nil, fmt.Errorf("listener %s: sasl.enabled.mechanisms is empty", name)
	}
	return l, nil
}

func newMechanism(c *config.Broker, listener, name string, users *Credentials) (*mechanism, error) {
	m := &mechanism{name: name, lifetime: c.MaxReauth(listener, name)}
	if class, key := c.MechanismProperty(listener, name, "sasl.server.callback.handler.class"); class != "" {
		return nil, fmt.Errorf("%s: the Java class %s decides who clients are, and this broker can't run it", key, class)
	}
	if name == plainName {
		entry, key, err := readLogin(c, listener, name)
		if err != nil {
			return nil, err
		}
		passwords := plainPasswords(entry)
		if len(passwords) == 0 {
			return nil, fmt.Errorf(`%s names no user: add user_NAME="PASSWORD" for each`, key)
		}
		m.start = func() exchange { return plainExchange{passwords} }
		return m, nil
	}
	for _, s := range SCRAMs {
		if s.Name == name {
			m.start = func() exchange { return &scramExchange{m: s, credentials: users} }
			return m, nil
		}
	}
	return nil, fmt.Errorf("sasl.enabled.mechanisms: %w: %s; set it to one or more of PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512 "+
		"(unset, it is Kafka's default, GSSAPI)", ErrMechanism, name)
}

// readLogin reads a mechanism's JAAS entry, which must be there.
func readLogin(c *config.Broker, listener, mechanism string) (login, string, error) {
	module := "org.apache.kafka.common.security.scram.ScramLoginModule"
	if mechanism == plainName {
		module = "org.apache.kafka.common.security.plain.PlainLoginModule"
	}
	text, key := c.MechanismProperty(listener, mechanism, "sasl.jaas.config")
	if text == "" {
		return login{}, key, fmt.Errorf("%s is not set: write %s required with options and a semicolon after it "+
			"(a JAAS file of the JVM is not read)", key, module)
	}
	l, err := parseJAAS(text)
	if err != nil {
		return login{}, key, fmt.Errorf("%s: %w", key, err)
	}
	if short := module[strings.LastIndexByte(module, '.')+1:]; l.module != module && l.module != short {
		return login{}, key, fmt.Errorf("%s: the login module of %s is %s, not %s", key, mechanism, module, l.module)
	}
	return l, key, nil
}

// Login returns how this broker authenticates to others on a SASL listener, by
// sasl.mechanism.inter.broker.protocol.
func Login(c *config.Broker, listener string) (sasl.Mechanism, error) {
	name := c.String("sasl.mechanism.inter.broker.protocol")
	if name != plainName && !slices.ContainsFunc(SCRAMs, func(s *SCRAM) bool { return s.Name == name }) {
		return nil, fmt.Errorf("sasl.mechanism.inter.broker.protocol: %w: %s; use PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", ErrMechanism, name)
	}
	entry, key, err := readLogin(c, listener, name)
	if err != nil {
		return nil, err
	}
	user, password := entry.options["username"], entry.options["password"]
	if user == "" || password == "" {
		return nil, fmt.Errorf("%s: brokers use it among themselves, so it needs the options username and password", key)
	}
	switch name {
	case "SCRAM-SHA-256":
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism(), nil
	default:
		return plain.Auth{User: user, Pass: password}.AsMechanism(), nil
	}
}
