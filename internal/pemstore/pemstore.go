// Package pemstore makes TLS configurations of key and trust stores that are
// PEM files: what Java has as store type PEM (KIP-651, ZOOKEEPER-3850).
//
// It owns nothing but the reading of the files. It refuses other kinds of
// stores and private keys under a password, and says in its error how to
// convert them. TLS 1.2 is the lowest version.
package pemstore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// ErrNotPEM is a store of another kind.
var ErrNotPEM = errors.New("no certificate in PEM form; convert a JKS or PKCS12 store with keytool and openssl")

// Server returns what a listener is served with. keys is the file with the
// server's private key and certificates. With trusted, clients must show a
// certificate that one in that file vouches for; without, they show none.
func Server(keys, trusted string) (*tls.Config, error) {
	if keys == "" {
		return nil, errors.New("no key store")
	}
	c, err := withKeys(keys)
	if err != nil || trusted == "" {
		return c, err
	}
	c.ClientAuth = tls.RequireAndVerifyClientCert
	c.ClientCAs, err = pool(trusted)
	return c, err
}

// Client returns what a server is called with. Its certificate must be vouched
// for by one in the file trusted, or by the system's if that is "", and bear
// its name if checkName says so. keys may be "".
func Client(keys, trusted string, checkName bool) (*tls.Config, error) {
	c, err := withKeys(keys)
	if err == nil && trusted != "" {
		c.RootCAs, err = pool(trusted)
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

func withKeys(file string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if file == "" {
		return c, nil
	}
	pair, err := tls.LoadX509KeyPair(file, file)
	if err != nil {
		return nil, fmt.Errorf("key store %s: %w", file, err)
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

func pool(file string) (*x509.CertPool, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("trust store: %w", err)
	}
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(b) {
		return nil, fmt.Errorf("trust store %s: %w", file, ErrNotPEM)
	}
	return p, nil
}
