// Package pemstore makes TLS configurations of key and trust stores that are
// PEM files: what Java has as store type PEM (KIP-651, ZOOKEEPER-3850).
//
// It owns nothing but the reading of the files. It refuses other kinds of
// stores and private keys under a password, and says in its error how to
// convert them. TLS 1.2 is the lowest version.
package pemstore

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
)

// ErrNotPEM is a store of another kind.
var ErrNotPEM = errors.New("no certificate in PEM form; convert a JKS or PKCS12 store with keytool and openssl")

// ErrEncrypted is a private key under a password.
var ErrEncrypted = errors.New("key store: the private key is under a password; take it off with openssl pkcs8")

// Stores are a key store and a trust store, each as PEM.
type Stores struct {
	Keys    []byte // a private key and its certificates; empty: none
	Trusted []byte // certificates of authorities; empty: the system's
}

// Read reads stores from files; "" is none. An error names the file.
func Read(keys, trusted string) (s Stores, err error) {
	if keys != "" {
		if s.Keys, err = os.ReadFile(keys); err == nil {
			_, err = s.config()
		}
		if err != nil {
			return s, fmt.Errorf("%s: %w", keys, err)
		}
	}
	if trusted != "" {
		if s.Trusted, err = os.ReadFile(trusted); err == nil {
			_, err = pool(s.Trusted)
		}
		if err != nil {
			return s, fmt.Errorf("%s: %w", trusted, err)
		}
	}
	return s, nil
}

// Server returns what a listener is served with. keys is the file with the
// server's private key and certificates. With trusted, clients must show a
// certificate that one in that file vouches for; without, they show none.
func Server(keys, trusted string) (*tls.Config, error) {
	s, err := Read(keys, trusted)
	if err != nil {
		return nil, err
	}
	auth := tls.NoClientCert
	if trusted != "" {
		auth = tls.RequireAndVerifyClientCert
	}
	return s.Server(auth)
}

// Server returns what a listener is served with, which needs keys, and a trust
// store if clients may or must show a certificate.
func (s Stores) Server(auth tls.ClientAuthType) (*tls.Config, error) {
	if len(s.Keys) == 0 {
		return nil, errors.New("no key store")
	}
	c, err := s.config()
	if err != nil || auth == tls.NoClientCert {
		return c, err
	}
	if len(s.Trusted) == 0 {
		return nil, errors.New("no trust store for the certificates of clients")
	}
	c.ClientAuth = auth
	c.ClientCAs, err = pool(s.Trusted)
	return c, err
}

// Client returns what a server is called with. Its certificate must be vouched
// for by one in the file trusted, or by the system's if that is "", and bear
// its name if checkName says so. keys may be "".
func Client(keys, trusted string, checkName bool) (*tls.Config, error) {
	s, err := Read(keys, trusted)
	if err != nil {
		return nil, err
	}
	return s.Client(checkName)
}

// Client returns what a server is called with.
func (s Stores) Client(checkName bool) (*tls.Config, error) {
	c, err := s.config()
	if err == nil && len(s.Trusted) > 0 {
		c.RootCAs, err = pool(s.Trusted)
	}
	if err != nil {
		return nil, err
	}
	if !checkName {
		c.InsecureSkipVerify = true // of what VerifyConnection does instead, but for the name
		c.VerifyConnection = func(s tls.ConnectionState) error {
			o := x509.VerifyOptions{Roots: c.RootCAs, Intermediates: x509.NewCertPool()}
			for _, cert := range s.PeerCertificates[1:] {
				o.Intermediates.AddCert(cert)
			}
			_, err := s.PeerCertificates[0].Verify(o)
			return err
		}
	}
	return c, nil
}

func (s Stores) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(s.Keys) == 0 {
		return c, nil
	}
	if bytes.Contains(s.Keys, []byte("ENCRYPTED")) {
		return nil, ErrEncrypted
	}
	pair, err := tls.X509KeyPair(s.Keys, s.Keys)
	if err != nil {
		return nil, fmt.Errorf("key store: %w", err)
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

func pool(trusted []byte) (*x509.CertPool, error) {
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(trusted) {
		return nil, fmt.Errorf("trust store: %w", ErrNotPEM)
	}
	return p, nil
}

// Limit sets the versions and cipher suites that a configuration may use, by
// Java's names for them; none is the library's choice.
func Limit(c *tls.Config, versions, suites []string) error {
	for i, name := range versions {
		version, ok := map[string]uint16{"TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13}[name]
		if !ok {
			return fmt.Errorf("enabled.protocols: %s: write TLSv1.2, TLSv1.3 or both", name)
		}
		if i == 0 {
			c.MinVersion, c.MaxVersion = version, version
		}
		c.MinVersion, c.MaxVersion = min(c.MinVersion, version), max(c.MaxVersion, version)
	}
	for _, name := range suites {
		i := slices.IndexFunc(tls.CipherSuites(), func(s *tls.CipherSuite) bool { return s.Name == name })
		if i < 0 {
			return fmt.Errorf("cipher.suites: %s is unknown or not safe", name)
		}
		c.CipherSuites = append(c.CipherSuites, tls.CipherSuites()[i].ID)
	}
	return nil
}
