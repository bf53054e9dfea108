package cases

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const plainModule = "org.apache.kafka.common.security.plain.PlainLoginModule required "

// saslAddrs are the addresses of a broker's listeners SASL_PLAINTEXT and SHORT,
// whose sessions end after 1.5 s.
type saslAddrs struct{ endless, short string }

// TestSASL is case 5, and the half of case 20 that is about named listeners of
// which not all are PLAINTEXT.
func TestSASL(t *testing.T) {
	at := saslAddrs{"127.0.0.1:" + real.FreePort(t), "127.0.0.1:" + real.FreePort(t)}
	users := plainModule + `user_alice="secret" user_bob="b";`
	seen := map[bool]string{}
	onBoth(t, func(t *testing.T, to target) {
		t.Run("framing", func(t *testing.T) { saslFraming(t, at.endless) })
		t.Run("refusals", func(t *testing.T) { saslRefusals(t, at.endless) })
		t.Run("order", func(t *testing.T) { saslOrder(t, to, at.endless) })
		t.Run("sessions", func(t *testing.T) { saslSessions(t, at.short) })
		seen[to.apache] = registeredWithoutAddr(t, to)
	}, "listeners=SHORT://"+at.short+",INSIDE://{addr},SASL_PLAINTEXT://"+at.endless, "inter.broker.listener.name=INSIDE", "inter.broker.protocol.version=3.9",
		"listener.security.protocol.map=INSIDE:PLAINTEXT,SHORT:SASL_PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
		"sasl.enabled.mechanisms=PLAIN", "listener.name.sasl_plaintext.plain.sasl.jaas.config="+users,
		"listener.name.short.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256", "listener.name.short.plain.sasl.jaas.config="+users,
		"listener.name.short.connections.max.reauth.ms=100000", "listener.name.short.plain.connections.max.reauth.ms=1500",
		"listener.name.short.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;")
	if len(seen) == 2 && seen[true] != seen[false] {
		t.Errorf("registered\n%s\nKafka\n%s", seen[false], seen[true])
	}
}

// registeredWithoutAddr is /brokers/ids/1 but for the time, and for the address
// of the PLAINTEXT listener, which must be its host and port.
func registeredWithoutAddr(t *testing.T, to target) string {
	fields := registered(t, to.zk)
	if _, ok := fields["timestamp"].(string); !ok {
		t.Errorf("timestamp %v is not a string", fields["timestamp"])
	}
	delete(fields, "timestamp")
	host, port, _ := net.SplitHostPort(to.addr)
	if fields["host"] != host || fmt.Sprint(fields["port"]) != port {
		t.Errorf("host %v, port %v; the PLAINTEXT listener is at %s", fields["host"], fields["port"], to.addr)
	}
	delete(fields, "port")
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), to.addr, "{addr}")
}

func handshake(version int16, mechanism string) *kmsg.SASLHandshakeRequest {
	r := kmsg.NewPtrSASLHandshakeRequest()
	r.Version, r.Mechanism = version, mechanism
	return r
}

func token(version int16, bytes string) *kmsg.SASLAuthenticateRequest {
	r := kmsg.NewPtrSASLAuthenticateRequest()
	r.Version, r.SASLAuthBytes = version, []byte(bytes)
	return r
}

// bare sends a token without a header and returns the answer.
func bare(c *raw.Conn, bytes string) ([]byte, error) {
	c.Send(append(binary.BigEndian.AppendUint32(nil, uint32(len(bytes))), bytes...))
	return c.Frame(10 * time.Second)
}

func shaken(t *testing.T, addr string, version int16) *raw.Conn {
	t.Helper()
	c := raw.Dial(t, addr)
	answer := raw.Do[*kmsg.SASLHandshakeResponse](c, handshake(version, "PLAIN"))
	if answer.ErrorCode != 0 || !slices.Equal(answer.SupportedMechanisms, []string{"PLAIN"}) {
		t.Fatalf("handshake v%d: %+v", version, answer)
	}
	return c
}

func closed(t *testing.T, c *raw.Conn) {
	t.Helper()
	if b, err := c.Frame(10 * time.Second); !errors.Is(err, raw.ErrClosed) {
		t.Errorf("want a closed connection, got %x, %v", b, err)
	}
}

// served tells that a connection takes any request.
func served(t *testing.T, c *raw.Conn) {
	t.Helper()
	if answer := raw.Do[*kmsg.MetadataResponse](c, metadata(1, nil, true)); len(answer.Brokers) != 1 {
		t.Errorf("%d brokers", len(answer.Brokers))
	}
}

// saslFraming authenticates in every way.
func saslFraming(t *testing.T, addr string) {
	c := shaken(t, addr, 0)
	if b, err := bare(c, "\x00alice\x00secret"); err != nil || len(b) != 0 {
		t.Errorf("v0: answer %x, %v, want an empty token", b, err)
	}
	served(t, c)
	if b, err := bare(shaken(t, addr, 0), "\x00alice\x00wrong"); !errors.Is(err, raw.ErrClosed) {
		t.Errorf("v0 with a wrong password: %x, %v", b, err)
	}
	for version := range int16(3) {
		c := shaken(t, addr, 1)
		answer := raw.Do[*kmsg.SASLAuthenticateResponse](c, token(version, "\x00alice\x00secret"))
		if answer.ErrorCode != 0 || answer.SessionLifetimeMillis != 0 || len(answer.SASLAuthBytes) != 0 {
			t.Errorf("v%d: %+v", version, answer)
		}
		served(t, c)
		if again := raw.Do[*kmsg.SASLAuthenticateResponse](c, token(version, "\x00alice\x00secret")); again.ErrorCode != 34 {
			t.Errorf("a token after authentication: %+v", again)
		}
		second := raw.Do[*kmsg.SASLHandshakeResponse](c, handshake(1, "PLAIN"))
		if second.ErrorCode != 34 || len(second.SupportedMechanisms) != 0 {
			t.Errorf("a second handshake: %+v", second)
		}
		served(t, c)
	}
}

// saslRefusals are the words of a failure; Kafka's 58 closes the connection.
func saslRefusals(t *testing.T, addr string) {
	for bad, text := range map[string]string{
		"\x00alice\x00wrong":       "Authentication failed: Invalid username or password",
		"\x00nobody\x00secret":     "Authentication failed: Invalid username or password",
		"bob\x00alice\x00secret":   "Authentication failed: Client requested an authorization id that is different from username",
		"\x00\x00secret":           "Authentication failed: username not specified",
		"\x00alice\x00":            "Authentication failed: password not specified",
		"":                         "Invalid SASL/PLAIN response: expected 3 tokens, got 1",
		"\x00alice\x00secret\x00":  "Invalid SASL/PLAIN response: expected 3 tokens, got 4",
		"alice\x00alice\x00secret": "",
	} {
		c := shaken(t, addr, 1)
		answer := raw.Do[*kmsg.SASLAuthenticateResponse](c, token(1, bad))
		switch {
		case text == "" && answer.ErrorCode == 0:
			served(t, c)
			continue
		case answer.ErrorCode != 58 || answer.ErrorMessage == nil || *answer.ErrorMessage != text:
			message := "null"
			if answer.ErrorMessage != nil {
				message = *answer.ErrorMessage
			}
			t.Errorf("%q: error %d %q, want %q", bad, answer.ErrorCode, message, text)
		}
		closed(t, c)
	}
}

// saslOrder is what may come when.
func saslOrder(t *testing.T, to target, addr string) {
	if _, err := raw.Dial(t, addr).Try(metadata(1, nil, true)); !errors.Is(err, raw.ErrClosed) {
		t.Errorf("Metadata before authentication: %v", err)
	}
	c := raw.Dial(t, addr)
	future := kmsg.NewPtrApiVersionsRequest()
	future.Version, future.ClientSoftwareName = 3, "!"
	if answer := raw.Do[*kmsg.ApiVersionsResponse](c, future); answer.ErrorCode != 42 {
		t.Errorf("a bad name: %+v", answer)
	}
	answer := raw.Do[*kmsg.ApiVersionsResponse](c, kmsg.NewPtrApiVersionsRequest())
	versions := map[int16]int16{}
	for _, k := range answer.ApiKeys {
		versions[k.ApiKey] = k.MaxVersion
	}
	if answer.ErrorCode != 0 || versions[17] != 1 || versions[36] != 2 {
		t.Errorf("ApiVersions before authentication: %+v", answer)
	}
	if _, err := c.Try(kmsg.NewPtrApiVersionsRequest()); !errors.Is(err, raw.ErrClosed) {
		t.Errorf("ApiVersions for the second time: %v", err)
	}
	if _, err := raw.Dial(t, addr).Try(token(1, "\x00alice\x00secret")); !errors.Is(err, raw.ErrClosed) {
		t.Errorf("a token before the handshake: %v", err)
	}
	if _, err := raw.Dial(t, addr).Try(handshake(2, "PLAIN")); !errors.Is(err, raw.ErrClosed) {
		t.Errorf("handshake v2: %v", err)
	}

	c = shaken(t, addr, 1)
	if second := raw.Do[*kmsg.SASLHandshakeResponse](c, handshake(1, "PLAIN")); second.ErrorCode != 34 || len(second.SupportedMechanisms) != 0 {
		t.Errorf("a handshake in the middle: %+v", second)
	}
	closed(t, c)
	c = shaken(t, addr, 1)
	if versions := raw.Do[*kmsg.ApiVersionsResponse](c, kmsg.NewPtrApiVersionsRequest()); versions.ErrorCode != 34 {
		t.Errorf("ApiVersions in the middle: %+v", versions)
	}
	closed(t, c)

	c = raw.Dial(t, addr)
	other := raw.Do[*kmsg.SASLHandshakeResponse](c, handshake(1, "SCRAM-SHA-256"))
	if other.ErrorCode != 33 || !slices.Equal(other.SupportedMechanisms, []string{"PLAIN"}) {
		t.Errorf("a mechanism that is not enabled: %+v", other)
	}
	closed(t, c)

	c = raw.Dial(t, to.addr)
	if plain := raw.Do[*kmsg.SASLHandshakeResponse](c, handshake(1, "PLAIN")); plain.ErrorCode != 34 || len(plain.SupportedMechanisms) != 0 {
		t.Errorf("handshake on a PLAINTEXT listener: %+v", plain)
	}
	if plain := raw.Do[*kmsg.SASLAuthenticateResponse](c, token(1, "\x00alice\x00secret")); plain.ErrorCode != 34 {
		t.Errorf("token on a PLAINTEXT listener: %+v", plain)
	}
	served(t, c)

	// Who has not authenticated yet may send half a MiB at once.
	c = raw.Dial(t, addr)
	c.Send(binary.BigEndian.AppendUint32(nil, 524289))
	closed(t, c)
	c = raw.Dial(t, addr)
	c.Send([]byte("GET / HTTP/1.1\r\n\r\n"))
	closed(t, c)
}

// saslSessions: with connections.max.reauth.ms a client authenticates again on
// the same connection, as the same user and in the same way, or loses it
// (KIP-368).
func saslSessions(t *testing.T, addr string) {
	login := func() *raw.Conn {
		c := raw.Dial(t, addr)
		raw.Do[*kmsg.SASLHandshakeResponse](c, handshake(1, "PLAIN"))
		if answer := raw.Do[*kmsg.SASLAuthenticateResponse](c, token(1, "\x00alice\x00secret")); answer.ErrorCode != 0 || answer.SessionLifetimeMillis != 1500 {
			t.Fatalf("%+v", answer)
		}
		return c
	}
	forgetful, other, bob, again, old := login(), login(), login(), login(), raw.Dial(t, addr)
	raw.Do[*kmsg.SASLHandshakeResponse](old, handshake(0, "PLAIN"))
	if _, err := bare(old, "\x00alice\x00secret"); err != nil {
		t.Fatal(err)
	}
	served(t, old)
	began := time.Now()
	raw.Do[*kmsg.SASLHandshakeResponse](again, handshake(1, "PLAIN"))
	if answer := raw.Do[*kmsg.SASLAuthenticateResponse](again, token(2, "\x00alice\x00secret")); answer.ErrorCode != 0 || answer.SessionLifetimeMillis != 1500 {
		t.Errorf("again: %+v", answer)
	}
	served(t, again)
	if soon := raw.Do[*kmsg.SASLHandshakeResponse](again, handshake(1, "PLAIN")); soon.ErrorCode != 34 && time.Since(began) < time.Second {
		t.Errorf("again within a second: %+v", soon)
	}
	if answer := raw.Do[*kmsg.SASLHandshakeResponse](other, handshake(1, "SCRAM-SHA-256")); answer.ErrorCode != 0 {
		t.Errorf("handshake with the other mechanism: %+v", answer)
	}
	if _, err := other.Try(token(1, "\x00alice\x00secret")); !errors.Is(err, raw.ErrClosed) {
		t.Errorf("authenticated again with another mechanism: %v", err)
	}
	raw.Do[*kmsg.SASLHandshakeResponse](bob, handshake(1, "PLAIN"))
	answer := raw.Do[*kmsg.SASLAuthenticateResponse](bob, token(1, "\x00bob\x00b"))
	if answer.ErrorCode != 58 || answer.ErrorMessage == nil || *answer.ErrorMessage != "Cannot change principals during re-authentication from User.alice: User.bob" {
		t.Errorf("as another user: %+v", answer)
	}
	closed(t, bob)
	for _, c := range []*raw.Conn{forgetful, old} {
		real.Until(t, 20*time.Second, "the session ends", func() bool {
			_, err := c.Try(metadata(1, nil, true))
			return errors.Is(err, raw.ErrClosed)
		})
	}
}
