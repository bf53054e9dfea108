package security

import (
	"errors"
	"strings"
	"testing"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/wire"
)

func broker(t *testing.T, properties ...string) *config.Broker {
	t.Helper()
	all := map[string]string{"listeners": "PLAINTEXT://localhost:1,S://localhost:2", "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,S:SASL_PLAINTEXT"}
	for _, p := range properties {
		key, value, _ := strings.Cut(p, "=")
		all[key] = value
	}
	c, err := config.NewBroker(all)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestListenersThatCannotBeServed(t *testing.T) {
	const users = `=PlainLoginModule required user_a="hidden";`
	for _, c := range []struct{ says, properties string }{
		{"GSSAPI", ""},
		{"OAUTHBEARER", "sasl.enabled.mechanisms=OAUTHBEARER"},
		{"empty", "sasl.enabled.mechanisms="},
		{"listener.name.s.plain.sasl.jaas.config is not set", "sasl.enabled.mechanisms=PLAIN"},
		{"names no user", "sasl.enabled.mechanisms=PLAIN|plain.sasl.jaas.config=PlainLoginModule required;"},
		{"semicolon", `sasl.enabled.mechanisms=PLAIN|plain.sasl.jaas.config=PlainLoginModule required user_a="hidden"`},
		{"is org.apache.kafka.common.security.plain.PlainLoginModule, not", `sasl.enabled.mechanisms=PLAIN|plain.sasl.jaas.config=ScramLoginModule required user_a="hidden";`},
		{"listener.name.s.plain.sasl.jaas.config: ", `sasl.enabled.mechanisms=PLAIN|plain.sasl.jaas.config` + users + `|listener.name.s.plain.sasl.jaas.config=hidden`},
		{"com.example.Handler", `sasl.enabled.mechanisms=PLAIN|plain.sasl.jaas.config` + users + `|listener.name.s.plain.sasl.server.callback.handler.class=com.example.Handler`},
	} {
		_, err := NewListener(broker(t, strings.Split(c.properties, "|")...), "S", NewCredentials())
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v", c.properties, err)
		}
	}
	for _, c := range []struct{ says, properties string }{
		{"username and password", `plain.sasl.jaas.config` + users},
		{"not set", ``},
		{"GSSAPI", "sasl.mechanism.inter.broker.protocol=GSSAPI"},
	} {
		properties := append([]string{"sasl.mechanism.inter.broker.protocol=PLAIN"}, strings.Split(c.properties, "|")...)
		if _, err := Login(broker(t, properties...), "S"); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v", c.properties, err)
		}
	}
}

func sessions(t *testing.T) *Listener {
	t.Helper()
	users := NewCredentials()
	l, err := NewListener(broker(t, "listener.name.s.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,PLAIN", `plain.sasl.jaas.config=PlainLoginModule required user_a="b" user_c="d";`,
		"plain.connections.max.reauth.ms=10000"), "S", users)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var start = time.Unix(1_000_000, 0)

// at is a time in seconds.
func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

func logIn(t *testing.T, s *Session, now time.Time) {
	t.Helper()
	code, mechanisms, err := s.Handshake(1, "PLAIN", now)
	if code != wire.None || err != nil || len(mechanisms) != 2 {
		t.Fatalf("handshake: %v %q %v", code, mechanisms, err)
	}
	a, err := s.Authenticate([]byte("\x00a\x00b"), now)
	if err != nil || a.Code != wire.None || a.Lifetime != 10*time.Second || a.Reason != nil || !s.Authenticated() || s.Principal() != "User:a" {
		t.Fatalf("%+v, %v, %s", a, err, s.Principal())
	}
}

func TestASessionEndsAndIsRenewed(t *testing.T) {
	s := sessions(t).Session()
	if s.Principal() != Anonymous || s.Admit(3, at(0)) == nil || s.Admit(36, at(0)) == nil || s.Admit(18, at(0)) != nil || s.Admit(17, at(0)) != nil {
		t.Error("before authentication")
	}
	s.VersionsAsked()
	if s.Admit(18, at(0)) == nil || s.Admit(17, at(0)) != nil {
		t.Error("after ApiVersions")
	}
	logIn(t, s, at(0))
	if s.Admit(3, at(10)) != nil || !errors.Is(s.Admit(3, at(10.1)), ErrExpired) {
		t.Error("the session does not last 10 s")
	}
	if s.Admit(17, at(11)) != nil { // may come too late
		t.Error("no second authentication after the end")
	}
	logIn(t, s, at(11))
	if s.Admit(3, at(21)) != nil || s.Admit(3, at(21.1)) == nil {
		t.Error("the second session does not last 10 s")
	}
	if code, _, err := s.Handshake(1, "PLAIN", at(11.5)); code != wire.IllegalSASLState || err != nil || !s.Authenticated() {
		t.Errorf("again within a second: %v, %v", code, err)
	}
	if code, _, _ := s.Handshake(1, "PLAIN", at(12)); code != wire.None || s.Authenticated() || s.Admit(3, at(12)) == nil {
		t.Errorf("again after a second: %v", code)
	}
	if a, err := s.Authenticate([]byte("\x00c\x00d"), at(12)); err != nil || a.Code != wire.SASLAuthenticationFailed || !strings.Contains(a.Message, "from User.a: User.c") || a.Reason == nil || !s.Failed() {
		t.Errorf("another user: %+v, %v", a, err)
	}
}

func TestASessionKeepsItsMechanism(t *testing.T) {
	s := sessions(t).Session()
	logIn(t, s, at(0))
	if code, _, err := s.Handshake(0, "SCRAM-SHA-256", at(2)); code != wire.None || err != nil || !s.Raw() {
		t.Errorf("%v, %v", code, err)
	}
	if _, err := s.Authenticate([]byte("n,,n=a,r=b"), at(2)); !errors.Is(err, ErrOtherMechanism) || !s.Failed() {
		t.Errorf("%v", err)
	}
}

func TestASessionThatFailed(t *testing.T) {
	s := sessions(t).Session()
	if code, names, err := s.Handshake(1, "GSSAPI", at(0)); code != wire.UnsupportedSASLMechanism || len(names) != 2 || err == nil || !s.Failed() || s.Admit(17, at(0)) == nil {
		t.Errorf("%v %q %v", code, names, err)
	}
	s = sessions(t).Session()
	if _, _, err := s.Handshake(0, "SCRAM-SHA-256", at(0)); err != nil || !s.Raw() || !s.Exchanging() {
		t.Errorf("%v", err)
	}
	a, err := s.Authenticate([]byte("n,,n=nobody,r=b"), at(0))
	if err != nil || a.Message != "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256" || !s.Failed() || s.Raw() {
		t.Errorf("%+v, %v", a, err)
	}
}
