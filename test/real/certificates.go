package real

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// PEMStores are PEM files as Java, Python and Go take them: Authority has one
// certificate, each of the others a private key and a certificate that the
// authority vouches for. Alone has one that it does not.
type PEMStores struct {
	Authority, Server, Client, Alone string
}

// PEM makes the files; the server is 127.0.0.1 and localhost.
func PEM(t testing.TB) PEMStores {
	t.Helper()
	dir := t.TempDir()
	authority, authorityKey := certificate(t, "authority", nil, nil)
	other, otherKey := certificate(t, "another authority", nil, nil)
	write := func(name string, cert *x509.Certificate, key *ecdsa.PrivateKey) string {
		var b []byte
		if key != nil {
			der, err := x509.MarshalPKCS8PrivateKey(key)
			if err != nil {
				t.Fatal(err)
			}
			b = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
		}
		b = append(b, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})...)
		path := filepath.Join(dir, name+".pem")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	server, serverKey := certificate(t, "server", authority, authorityKey)
	client, clientKey := certificate(t, "client", authority, authorityKey)
	alone, aloneKey := certificate(t, "alone", other, otherKey)
	return PEMStores{write("authority", authority, nil), write("server", server, serverKey), write("client", client, clientKey), write("alone", alone, aloneKey)}
}

// certificate makes one, of an authority if by is nil.
func certificate(t testing.TB, name string, by *x509.Certificate, byKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	if by == nil {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
		by, byKey = c, key
	} else {
		c.KeyUsage = x509.KeyUsageDigitalSignature
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
		c.DNSNames, c.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, byKey)
	if err == nil {
		c, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c, key
}
