package tool

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// security turns security.protocol, sasl.* and ssl.* of Java's clients into
// options. Key and trust stores are PEM (ssl.truststore.type=PEM, KIP-651).
func security(props map[string]string) ([]kgo.Opt, error) {
	var opts []kgo.Opt
	protocol := strings.ToUpper(props["security.protocol"])
	switch protocol {
	case "", "PLAINTEXT", "SASL_PLAINTEXT", "SSL", "SASL_SSL":
	default:
		return nil, fmt.Errorf("security.protocol=%s: write PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL", protocol)
	}
	if strings.HasSuffix(protocol, "SSL") {
		c, err := tlsConfig(props)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.DialTLSConfig(c))
	}
	if strings.HasPrefix(protocol, "SASL") {
		m, err := mechanism(props["sasl.mechanism"], props["sasl.jaas.config"])
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.SASL(m))
	}
	return opts, nil
}

func tlsConfig(props map[string]string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if v, ok := props["ssl.endpoint.identification.algorithm"]; ok && v == "" {
		c.InsecureSkipVerify = true // Java's way to turn the check of names off
	}
	trusted := []byte(props["ssl.truststore.certificates"])
	if file := props["ssl.truststore.location"]; file != "" {
		var err error
		if trusted, err = os.ReadFile(file); err != nil {
			return nil, err
		}
	}
	if len(trusted) > 0 {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(trusted) {
			return nil, fmt.Errorf("the trust store holds no PEM certificate; convert a JKS or PKCS12 one with keytool and openssl")
		}
	}
	if file := props["ssl.keystore.location"]; file != "" {
		pair, err := tls.LoadX509KeyPair(file, file)
		if err != nil {
			return nil, fmt.Errorf("ssl.keystore.location: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

var jaasOption = regexp.MustCompile(`(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s;]+))`)

func mechanism(name, jaas string) (sasl.Mechanism, error) {
	found := map[string]string{}
	for _, m := range jaasOption.FindAllStringSubmatch(jaas, -1) {
		found[m[1]] = strings.ReplaceAll(m[2]+m[3]+m[4], `\"`, `"`)
	}
	user, password := found["username"], found["password"]
	switch strings.ToUpper(name) {
	case "PLAIN":
		return plain.Auth{User: user, Pass: password}.AsMechanism(), nil
	case "SCRAM-SHA-256":
		return scram.Auth{User: user, Pass: password, IsToken: found["tokenauth"] == "true"}.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return scram.Auth{User: user, Pass: password, IsToken: found["tokenauth"] == "true"}.AsSha512Mechanism(), nil
	}
	return nil, fmt.Errorf("sasl.mechanism=%s: write PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", name)
}
