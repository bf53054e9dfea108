package security

import (
	"errors"
	"fmt"
	"time"

	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Anonymous is the principal of a connection without authentication.
const Anonymous = "User:ANONYMOUS"

// betweenReauthentications must pass before a client may authenticate again
// (KafkaChannel.MIN_REAUTH_INTERVAL_ONE_SECOND_NANOS).
const betweenReauthentications = time.Second

var (
	// ErrUnauthenticated: a request came that has to wait for authentication.
	ErrUnauthenticated = errors.New("request before SASL authentication")
	// ErrExpired: the session is older than connections.max.reauth.ms.
	ErrExpired = errors.New("SASL session has expired (connections.max.reauth.ms)")
	// ErrOtherMechanism: a client wants to authenticate again in another way.
	ErrOtherMechanism = errors.New("SASL mechanism differs from that of the first authentication")
)

// state is how far a session is (SaslServerAuthenticator.SaslState).
type state int8

const (
	initial       state = iota // SaslHandshake or ApiVersions may come
	versionsKnown              // after ApiVersions: SaslHandshake must come
	tokens                     // after SaslHandshake: the mechanism's tokens
	wrongAgain                 // SaslHandshake of a session named another mechanism: the next token is refused
	complete
	failed
)

// Session is the authentication of one connection of a SASL listener.
type Session struct {
	listener  *Listener
	state     state
	raw       bool // tokens come without a Kafka header (SaslHandshake v0)
	mechanism *mechanism
	exchange  exchange
	user      string // "" until authenticated for the first time
	ends      time.Time
	began     time.Time // of the last authentication after the first
}

// Answer is what a client is told.
type Answer struct {
	Code     wire.Code
	Message  string // "" is null
	Token    []byte
	Lifetime time.Duration // of the session; 0: for ever, or not authenticated yet
	Reason   error         // not nil: the connection ends after this answer, and why
}

// Session begins the authentication of a new connection.
func (l *Listener) Session() *Session { return &Session{listener: l} }

// Authenticated tells whether requests of every kind may come.
func (s *Session) Authenticated() bool { return s.state == complete }

// Failed tells whether the connection is about to end: nothing more is read.
func (s *Session) Failed() bool { return s.state == failed }

// Raw tells whether the next frame is a bare token.
func (s *Session) Raw() bool { return s.raw && s.Exchanging() }

// MaxReceive is the largest frame to be taken before authentication.
func (s *Session) MaxReceive() int { return s.listener.maxReceive }

// Principal returns who the client is.
func (s *Session) Principal() string {
	if s.user == "" {
		return Anonymous
	}
	return "User:" + s.user
}

// Admit tells whether a request with this key may be read now; an error closes
// the connection without an answer.
func (s *Session) Admit(key int16, now time.Time) error {
	handshake, versions := key == int16(kmsg.SASLHandshake), key == int16(kmsg.ApiVersions)
	ok := false
	switch s.state {
	case complete:
		if !s.ends.IsZero() && now.After(s.ends) && !(handshake && s.mayBeginAgain(now)) {
			return ErrExpired
		}
		return nil
	case initial:
		ok = handshake || versions
	case versionsKnown:
		ok = handshake
	case tokens, wrongAgain:
		ok = key == int16(kmsg.SASLAuthenticate) || handshake || versions // those two are told what is wrong
	}
	if ok {
		return nil
	}
	return fmt.Errorf("%w: %s; is the client's security.protocol SASL_PLAINTEXT or SASL_SSL, as the listener's?", ErrUnauthenticated, kmsg.NameForKey(key))
}

func (s *Session) mayBeginAgain(now time.Time) bool {
	return !s.ends.IsZero() && (s.began.IsZero() || now.Sub(s.began) >= betweenReauthentications)
}

// VersionsAsked notes that ApiVersions was answered with the versions.
func (s *Session) VersionsAsked() {
	if s.state == initial {
		s.state = versionsKnown
	}
}

// Exchanging tells whether the mechanism's tokens are under way.
func (s *Session) Exchanging() bool { return s.state == tokens || s.state == wrongAgain }

// Unexpected ends a session in which another request came than the tokens that
// are under way; the client is told ILLEGAL_SASL_STATE.
func (s *Session) Unexpected(key int16) error {
	s.state = failed
	return fmt.Errorf("unexpected Kafka request of type %s during SASL authentication", kmsg.NameForKey(key))
}

// Handshake takes the mechanism that a client names and returns the code and
// the mechanisms of the answer; with an error the connection ends after it.
func (s *Session) Handshake(version int16, name string, now time.Time) (wire.Code, []string, error) {
	switch s.state {
	case complete:
		if !s.mayBeginAgain(now) {
			return wire.IllegalSASLState, nil, nil
		}
		s.began = now
	case tokens, wrongAgain:
		return wire.IllegalSASLState, nil, s.Unexpected(int16(kmsg.SASLHandshake))
	}
	for _, m := range s.listener.mechanisms {
		if m.name != name {
			continue
		}
		s.raw, s.state = version == 0, tokens
		if s.user != "" && m != s.mechanism {
			s.state = wrongAgain
		} else {
			s.mechanism, s.exchange = m, m.start()
		}
		return wire.None, s.listener.names, nil
	}
	s.state = failed
	return wire.UnsupportedSASLMechanism, s.listener.names, fmt.Errorf("SASL mechanism %q is not among sasl.enabled.mechanisms", name)
}

// Authenticate takes the client's next token. With an error the connection
// ends without an answer.
func (s *Session) Authenticate(token []byte, now time.Time) (Answer, error) {
	switch s.state {
	case tokens:
	case wrongAgain:
		s.state = failed
		return Answer{}, fmt.Errorf("%w, %s", ErrOtherMechanism, s.mechanism.name)
	default:
		return Answer{}, s.Unexpected(int16(kmsg.SASLAuthenticate))
	}
	answer, user, err := s.exchange.next(token)
	if err == nil && user == "" {
		return Answer{Token: answer}, nil
	}
	if err == nil && s.user != "" && user != s.user {
		err = refusal(fmt.Sprintf("Cannot change principals during re-authentication from User.%s: User.%s", s.user, user))
	}
	s.exchange = nil
	if err != nil {
		return s.refuse(err), nil
	}
	s.user, s.state, s.ends = user, complete, time.Time{}
	if s.mechanism.lifetime > 0 {
		s.ends = now.Add(s.mechanism.lifetime)
	}
	return Answer{Token: answer, Lifetime: s.mechanism.lifetime}, nil
}

// refuse ends the session. What is no refusal is told in words that say nothing
// of whether there is such a user.
func (s *Session) refuse(err error) Answer {
	s.state = failed
	during := "authentication"
	if s.user != "" {
		during = "re-authentication"
	}
	var told refusal
	if !errors.As(err, &told) {
		told = refusal("Authentication failed during " + during + " due to invalid credentials with SASL mechanism " + s.mechanism.name)
	}
	return Answer{Code: wire.SASLAuthenticationFailed, Message: string(told), Reason: fmt.Errorf("%s failed: %w", during, err)}
}
