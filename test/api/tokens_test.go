package api

import (
	"testing"

	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Without delegation.token.secret.key authenticated clients are told that tokens
// are off, where others are told that they may not ask.
func TestTokensAreOffForAuthenticatedClients(t *testing.T) {
	zk := real.ZooKeeper(t)
	addrs := map[bool]string{true: "127.0.0.1:" + real.FreePort(t), false: "127.0.0.1:" + real.FreePort(t)}
	properties := func(apache bool) []string {
		return []string{"inter.broker.protocol.version=3.9", "listeners=PLAINTEXT://{addr},SASL_PLAINTEXT://" + addrs[apache], "sasl.enabled.mechanisms=PLAIN",
			"listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_alice=\"secret\";"}
	}
	real.Kafka(t, "3.9.1", 1, zk, properties(true)...)
	real.Barnabas(t, 1, append(properties(false), "zookeeper.connect="+zk+"/ours")...)
	steps := securitySteps()
	answers := map[bool][]string{}
	for apache, addr := range addrs {
		p := &peer{addr: addr}
		for _, s := range steps {
			if key := s.req.Key(); key < 38 || key > 41 {
				continue
			}
			if p.conn == nil {
				p.conn = authenticated(t, addr)
			}
			answers[apache] = append(answers[apache], s.String()+"\n  "+p.do(t, s))
		}
	}
	for i, want := range answers[true] {
		if got := answers[false][i]; got != want {
			t.Errorf("Kafka:    %s\nbarnabas: %s", want, got)
		}
	}
}

func authenticated(t *testing.T, addr string) *raw.Conn {
	t.Helper()
	c := raw.Dial(t, addr)
	shake := kmsg.NewPtrSASLHandshakeRequest()
	shake.Version, shake.Mechanism = 1, "PLAIN"
	token := kmsg.NewPtrSASLAuthenticateRequest()
	token.Version, token.SASLAuthBytes = 2, []byte("\x00alice\x00secret")
	if code := raw.Do[*kmsg.SASLHandshakeResponse](c, shake).ErrorCode; code != 0 {
		t.Fatalf("handshake: %d", code)
	}
	if code := raw.Do[*kmsg.SASLAuthenticateResponse](c, token).ErrorCode; code != 0 {
		t.Fatalf("authentication: %d", code)
	}
	return c
}
