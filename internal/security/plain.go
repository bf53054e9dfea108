package security

import (
	"bytes"
	"crypto/subtle"
	"fmt"
	"strings"
)

// refusal is an error whose text the client may read.
type refusal string

func (r refusal) Error() string { return string(r) }

const (
	errWrongPassword = refusal("Authentication failed: Invalid username or password")
	errOtherIdentity = refusal("Authentication failed: Client requested an authorization id that is different from username")
)

// plainExchange is the server's side of one PLAIN authentication (RFC 4616).
type plainExchange struct{ passwords map[string]string }

// next takes [authzid] NUL username NUL password.
func (x plainExchange) next(token []byte) (answer []byte, user string, err error) {
	parts := bytes.SplitN(token, []byte{0}, 4)
	if len(parts) != 3 {
		return nil, "", refusal(fmt.Sprintf("Invalid SASL/PLAIN response: expected 3 tokens, got %d", len(parts)))
	}
	zid, user, password := string(parts[0]), string(parts[1]), parts[2]
	switch {
	case user == "":
		return nil, "", refusal("Authentication failed: username not specified")
	case len(password) == 0:
		return nil, "", refusal("Authentication failed: password not specified")
	}
	want, known := x.passwords[user]
	if subtle.ConstantTimeCompare(password, []byte(want)) != 1 || !known {
		return nil, "", errWrongPassword
	}
	if zid != "" && zid != user {
		return nil, "", errOtherIdentity
	}
	return nil, user, nil
}

// plainPasswords are the users of a PlainLoginModule: options user_NAME.
func plainPasswords(l login) map[string]string {
	passwords := map[string]string{}
	for key, value := range l.options {
		if user, ok := strings.CutPrefix(key, "user_"); ok {
			passwords[user] = value
		}
	}
	return passwords
}
