package security

import (
	"crypto/pbkdf2"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// store keeps a user's password for one mechanism.
func store(t *testing.T, c *Credentials, m *SCRAM, user, password string) {
	t.Helper()
	salt := []byte("salt of " + user)
	salted, err := pbkdf2.Key(m.hash, password, salt, 4096, m.hash().Size())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Set(user, map[string]string{m.Name: m.Credential(salt, salted, 4096).String()}); err != nil {
		t.Fatal(err)
	}
}

// talk has franz-go's client authenticate.
func talk(t *testing.T, x exchange, m sasl.Mechanism) (user string, err error) {
	t.Helper()
	session, token, err := m.Authenticate(t.Context(), "host:9092")
	if err != nil {
		t.Fatal(err)
	}
	for {
		answer, user, err := x.next(token)
		if err != nil {
			return "", err
		}
		done, next, err := session.Challenge(answer)
		if err != nil || done != (user != "") {
			t.Fatalf("the client says %v, %v; the server %q", done, err, user)
		}
		if done {
			return user, nil
		}
		token = next
	}
}

func client(m *SCRAM, user, password string) sasl.Mechanism {
	a := scram.Auth{User: user, Pass: password}
	if m.Number == 1 {
		return a.AsSha256Mechanism()
	}
	return a.AsSha512Mechanism()
}

func TestSCRAM(t *testing.T) {
	for _, m := range SCRAMs {
		c := NewCredentials()
		start := func() exchange { return &scramExchange{m: m, credentials: c} }
		for _, user := range []string{"alice", "a=b,c", "CN=x y"} {
			store(t, c, m, user, "pass "+user)
			if got, err := talk(t, start(), client(m, user, "pass "+user)); err != nil || got != user {
				t.Errorf("%s: %s became %q, %v", m.Name, user, got, err)
			}
			if _, err := talk(t, start(), client(m, user, "Pass "+user)); err == nil {
				t.Errorf("%s: %s with a wrong password", m.Name, user)
			}
		}
		if _, err := talk(t, start(), client(m, "mallory", "x")); err == nil {
			t.Errorf("%s: an unknown user", m.Name)
		}
		for _, other := range SCRAMs {
			if _, err := talk(t, &scramExchange{m: other, credentials: c}, client(other, "alice", "pass alice")); (err == nil) != (other == m) {
				t.Errorf("a credential of %s with %s: %v", m.Name, other.Name, err)
			}
		}
		if err := c.Set("alice", nil); err != nil {
			t.Error(err)
		}
		if _, err := talk(t, start(), client(m, "alice", "pass alice")); err == nil {
			t.Errorf("%s: a deleted user", m.Name)
		}
	}
}

// TestSCRAMWithTheKeysOfRFC7677 checks the server against the example of the
// document, which has fixed nonces.
func TestSCRAMWithTheKeysOfRFC7677(t *testing.T) {
	m := SCRAMs[0]
	salted, err := pbkdf2.Key(m.hash, "pencil", []byte("[m\x99h\x9d\x125\x8e\xec\xa0K\x14\x126\xfa\x81"), 4096, 32)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parseCredential(m.Credential([]byte("[m\x99h\x9d\x125\x8e\xec\xa0K\x14\x126\xfa\x81"), salted, 4096).String())
	if err != nil {
		t.Fatal(err)
	}
	const nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
	x := &scramExchange{m: m, user: "user", found: parsed, nonce: nonce,
		messages: "n=user,r=rOprNGfwEbeRWgbNEkqO,r=" + nonce + ",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"}
	answer, user, err := x.next([]byte("c=biws,r=" + nonce + ",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="))
	if err != nil || user != "user" || string(answer) != "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=" {
		t.Errorf("%s, %q, %v", answer, user, err)
	}
}

func TestSCRAMRefusesWhatKafkaRefuses(t *testing.T) {
	m, c := SCRAMs[0], NewCredentials()
	store(t, c, m, "alice", "x")
	for _, message := range []string{
		"", "n,,", "n,,n=alice", "y,,n=alice,r=n", "p=tls-unique,,n=alice,r=n", "n,,n=,r=n", "n,,n=al=ice,r=n", "n,,n=alice,r=", "n,,n=alice,r=n,x", "n,,r=n,n=alice",
		"n,a=bob,n=alice,r=n", "n,,n=alice,r=n,tokenauth=true", "n,,n=alice,r=a b", "n,,n=alic\x00,r=n", "n,,n=alice,r=n\n",
	} {
		if answer, _, err := (&scramExchange{m: m, credentials: c}).next([]byte(message)); err == nil {
			t.Errorf("%q: %s", message, answer)
		}
	}
	for _, message := range []string{"n,,n=alice,r=n", "n,a=alice,n=alice,r=n", "n,,m=may,n=alice,r=n", "n,,n=alice,r=n,ext=1,tokenauth=false"} {
		x := &scramExchange{m: m, credentials: c}
		answer, _, err := x.next([]byte(message))
		if err != nil || !strings.HasPrefix(string(answer), "r=n") {
			t.Errorf("%q: %s, %v", message, answer, err)
		}
		for _, final := range []string{"", "c=biws,r=n,p=AAAA", "c=biws,r=" + x.nonce, "c=biws,r=" + x.nonce + ",p=", "c=biws,r=" + x.nonce + ",p=!", "c=biws,r=" + x.nonce + ",p=AAAA"} {
			y := *x
			if answer, user, err := y.next([]byte(final)); err == nil {
				t.Errorf("%q: %s %s", final, answer, user)
			}
		}
	}
	if err := c.Set("low", map[string]string{m.Name: "salt=QQ==,stored_key=QQ==,server_key=QQ==,iterations=4095"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := (&scramExchange{m: m, credentials: c}).next([]byte("n,,n=low,r=n")); err == nil {
		t.Error("too few iterations")
	}
	err := c.Set("low", map[string]string{m.Name: "salt=S3CRE,stored_key=QQ==,server_key=QQ==,iterations=4096", SCRAMs[1].Name: "S3CRE"})
	if err == nil || strings.Contains(err.Error(), "S3CRE") {
		t.Errorf("%v", err)
	}
	if _, _, err := (&scramExchange{m: m, credentials: c}).next([]byte("n,,n=low,r=n")); err == nil {
		t.Error("a credential that can't be read")
	}
}

func FuzzSCRAM(f *testing.F) {
	f.Add("n,,n=alice,r=n", "c=biws,r=n,p=AAAA")
	c := NewCredentials()
	if err := c.Set("alice", map[string]string{"SCRAM-SHA-256": "salt=QQ==,stored_key=QQ==,server_key=QQ==,iterations=4096"}); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, first, final string) {
		x := &scramExchange{m: SCRAMs[0], credentials: c}
		if _, _, err := x.next([]byte(first)); err != nil {
			return
		}
		if _, user, err := x.next([]byte(final)); err == nil {
			t.Errorf("%q is authenticated by %q, %q", user, first, final)
		}
	})
}
