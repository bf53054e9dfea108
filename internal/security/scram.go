package security

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"regexp"
	"strings"
	"sync"

	"barnabas/internal/znode"
)

// SCRAM is a SCRAM mechanism (RFC 5802, KIP-84).
type SCRAM struct {
	Number        int8   // in the protocol (ScramMechanism.type)
	Name          string // also the key under /config/users
	MinIterations int32
	hash          func() hash.Hash
}

// SCRAMs are the mechanisms that there are.
var SCRAMs = []*SCRAM{
	{1, "SCRAM-SHA-256", 4096, sha256.New},
	{2, "SCRAM-SHA-512", 4096, sha512.New},
}

// MaxSCRAMIterations is the most that a broker stores (ZkAdminManager).
const MaxSCRAMIterations = 16384

func (m *SCRAM) mac(key []byte, text string) []byte {
	h := hmac.New(m.hash, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func (m *SCRAM) sum(b []byte) []byte {
	h := m.hash()
	h.Write(b)
	return h.Sum(nil)
}

// Credential makes the stored form of a salted password: the keys from which
// neither the password nor the salted one can be found.
func (m *SCRAM) Credential(salt, saltedPassword []byte, iterations int32) znode.SCRAMCredential {
	text := base64.StdEncoding.EncodeToString
	return znode.SCRAMCredential{
		Salt: text(salt), StoredKey: text(m.sum(m.mac(saltedPassword, "Client Key"))),
		ServerKey: text(m.mac(saltedPassword, "Server Key")), Iterations: int(iterations),
	}
}

// Credentials are the SCRAM credentials of all users. Its methods are safe for
// concurrent use.
type Credentials struct {
	mu struct {
		sync.RWMutex
		users map[string][]*credential // by user, in the order of SCRAMs; nil: none
	}
}

type credential struct {
	salt                 string // base64
	storedKey, serverKey []byte
	iterations           int
}

// NewCredentials returns an empty set.
func NewCredentials() *Credentials {
	c := &Credentials{}
	c.mu.users = map[string][]*credential{}
	return c
}

// Set takes the properties of a user's config node, nil for a user that has
// none any more. A credential that can't be read counts as none; the error says
// which.
func (c *Credentials) Set(user string, properties map[string]string) error {
	var errs []error
	var all []*credential
	for i, m := range SCRAMs {
		text, there := properties[m.Name]
		if !there {
			continue
		}
		parsed, err := parseCredential(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s of user %s: %w", m.Name, user, err))
			continue
		}
		if all == nil {
			all = make([]*credential, len(SCRAMs))
		}
		all[i] = parsed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if all == nil {
		delete(c.mu.users, user)
	} else {
		c.mu.users[user] = all
	}
	return errors.Join(errs...)
}

func parseCredential(text string) (*credential, error) {
	stored, err := znode.ParseSCRAMCredential(text)
	if err != nil {
		return nil, err
	}
	c := &credential{salt: stored.Salt, iterations: stored.Iterations}
	var bad error
	if _, bad = base64.StdEncoding.DecodeString(stored.Salt); bad == nil {
		if c.storedKey, bad = base64.StdEncoding.DecodeString(stored.StoredKey); bad == nil {
			c.serverKey, bad = base64.StdEncoding.DecodeString(stored.ServerKey)
		}
	}
	if bad != nil {
		return nil, errors.New("not base64") // without the text, which is secret
	}
	return c, nil
}

func (c *Credentials) find(m *SCRAM, user string) *credential {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for i, all := 0, c.mu.users[user]; i < len(all); i++ {
		if SCRAMs[i] == m {
			return all[i]
		}
	}
	return nil
}

// The messages as Kafka takes them (ScramMessages).
const (
	saslName   = `((?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+)`
	printable  = `([\x21-\x2b\x2d-\x7e]+)`
	anyValue   = `[\x01-\x2b\x2d-\x7f]+`
	extensions = `((?:,[A-Za-z]+=` + anyValue + `)*)`
)

var (
	clientFirst = regexp.MustCompile(`^n,(?:a=` + saslName + `)?,((?:m=` + anyValue + `,)?n=` + saslName + `,r=` + printable + extensions + `)$`)
	clientFinal = regexp.MustCompile(`^(c=[a-zA-Z0-9/+=]*,r=` + printable + extensions + `),p=([a-zA-Z0-9/+=]*)$`)
	unescape    = strings.NewReplacer("=2C", ",", "=3D", "=")
)

var errInvalidCredentials = errors.New("invalid credentials")

// scramExchange is the server's side of one SCRAM authentication.
type scramExchange struct {
	m           *SCRAM
	credentials *Credentials

	user     string
	found    *credential
	nonce    string // the client's and ours; "" before the first message
	messages string // client-first-message-bare,server-first-message,
}

func (x *scramExchange) next(token []byte) (answer []byte, user string, err error) {
	if x.nonce == "" {
		answer, err = x.first(string(token))
		return answer, "", err
	}
	answer, err = x.final(string(token))
	if err != nil {
		return nil, "", err
	}
	return answer, x.user, nil
}

func (x *scramExchange) first(message string) ([]byte, error) {
	m := clientFirst.FindStringSubmatch(message)
	if m == nil {
		return nil, errors.New("invalid SCRAM client first message")
	}
	zid, bare, user, nonce := m[1], m[2], unescape.Replace(m[3]), m[4]
	if strings.Contains(m[5]+",", ",tokenauth=true,") {
		return nil, errors.New("delegation tokens are not supported")
	}
	x.user, x.found = user, x.credentials.find(x.m, user)
	switch {
	case x.found == nil:
		return nil, errInvalidCredentials
	case zid != "" && zid != user:
		return nil, errOtherIdentity
	case x.found.iterations < int(x.m.MinIterations):
		return nil, fmt.Errorf("%d iterations are fewer than %d", x.found.iterations, x.m.MinIterations)
	}
	x.nonce = nonce + rand.Text()
	answer := fmt.Sprintf("r=%s,s=%s,i=%d", x.nonce, x.found.salt, x.found.iterations)
	x.messages = bare + "," + answer + ","
	return []byte(answer), nil
}

func (x *scramExchange) final(message string) ([]byte, error) {
	m := clientFinal.FindStringSubmatch(message)
	if m == nil {
		return nil, errors.New("invalid SCRAM client final message")
	}
	proof, err := base64.StdEncoding.DecodeString(m[4])
	if err != nil || !strings.HasSuffix(m[2], x.nonce) { // before it librdkafka, up to 2.6.0, writes its own nonce once more
		return nil, errors.New("invalid SCRAM client final message")
	}
	auth := x.messages + m[1]
	signature := x.m.mac(x.found.storedKey, auth)
	if len(proof) != len(signature) {
		return nil, errInvalidCredentials
	}
	subtle.XORBytes(proof, proof, signature) // now the client's key
	if subtle.ConstantTimeCompare(x.m.sum(proof), x.found.storedKey) != 1 {
		return nil, errInvalidCredentials
	}
	return []byte("v=" + base64.StdEncoding.EncodeToString(x.m.mac(x.found.serverKey, auth))), nil
}
