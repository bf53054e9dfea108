package tool

import (
	"crypto/tls"
	"fmt"
	"maps"
	"regexp"
	"strings"

	"barnabas/internal/pemstore"

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

// takeSecurity is security for a producer, whose properties it takes out of
// props: the producer does not know them.
func takeSecurity(props map[string]string) ([]kgo.Opt, error) {
	secure, err := security(props)
	maps.DeleteFunc(props, func(name, _ string) bool {
		return strings.HasPrefix(name, "sasl.") || strings.HasPrefix(name, "ssl.") || strings.HasPrefix(name, "security.")
	})
	return secure, err
}

// tlsConfig makes one of Java's properties ssl.*. Its errors name the property.
func tlsConfig(props map[string]string) (*tls.Config, error) {
	for _, name := range []string{"ssl.keystore.type", "ssl.truststore.type"} {
		if kind := props[name]; kind != "" && !strings.EqualFold(kind, "PEM") {
			return nil, fmt.Errorf("%s=%s: only PEM can be read: convert the store with keytool and openssl and set %s=PEM", name, kind, name)
		}
	}
	s, err := pemstore.Read(props["ssl.keystore.location"], props["ssl.truststore.location"])
	if err != nil {
		return nil, err
	}
	if key := props["ssl.keystore.key"]; key != "" {
		s.Keys = []byte(key + "\n" + props["ssl.keystore.certificate.chain"])
	}
	if trusted := props["ssl.truststore.certificates"]; trusted != "" {
		s.Trusted = []byte(trusted)
	}
	algorithm, set := props["ssl.endpoint.identification.algorithm"]
	c, err := s.Client(!set || algorithm != "") // empty is Java's way to turn the check of names off
	if err != nil {
		return nil, err
	}
	if err := pemstore.Limit(c, list(props["ssl.enabled.protocols"]), list(props["ssl.cipher.suites"])); err != nil {
		return nil, fmt.Errorf("ssl.%w", err)
	}
	return c, nil
}

// list splits a value at commas.
func list(value string) (all []string) {
	for v := range strings.SplitSeq(value, ",") {
		if v = strings.TrimSpace(v); v != "" {
			all = append(all, v)
		}
	}
	return all
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
