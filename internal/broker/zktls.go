package broker

import (
	"crypto/tls"
	"fmt"

	"barnabas/internal/config"
	"barnabas/internal/pemstore"
)

// zkTLS returns what ZooKeeper is called with over TLS, or nil.
func zkTLS(c *config.Broker) (*tls.Config, error) {
	if !c.Bool("zookeeper.ssl.client.enable") {
		return nil, nil
	}
	const prefix = "zookeeper.ssl."
	for _, key := range []string{"keystore.type", "truststore.type"} {
		if kind := c.String(prefix + key); kind != "" && kind != "PEM" {
			return nil, fmt.Errorf("%s%s=%s: only PEM can be read; convert the store with keytool and openssl", prefix, key, kind)
		}
	}
	for _, key := range []string{"crl.enable", "ocsp.enable"} {
		if c.Bool(prefix + key) {
			return nil, fmt.Errorf("%s%s: revoked certificates are not looked up by this broker", prefix, key)
		}
	}
	t, err := pemstore.Client(c.String(prefix+"keystore.location"), c.String(prefix+"truststore.location"),
		c.String(prefix+"endpoint.identification.algorithm") != "")
	if err != nil {
		return nil, fmt.Errorf("zookeeper.ssl.*: %w", err)
	}
	for i, name := range c.List(prefix + "enabled.protocols") {
		version, ok := map[string]uint16{"TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13}[name]
		if !ok {
			return nil, fmt.Errorf("%senabled.protocols: %s: write TLSv1.2, TLSv1.3 or both", prefix, name)
		}
		if i == 0 {
			t.MinVersion, t.MaxVersion = version, version
		}
		t.MinVersion, t.MaxVersion = min(t.MinVersion, version), max(t.MaxVersion, version)
	}
	for _, name := range c.List(prefix + "cipher.suites") {
		id, ok := suite(name)
		if !ok {
			return nil, fmt.Errorf("%scipher.suites: %s is unknown or not safe", prefix, name)
		}
		t.CipherSuites = append(t.CipherSuites, id)
	}
	return t, nil
}

func suite(name string) (uint16, bool) {
	for _, s := range tls.CipherSuites() {
		if s.Name == name {
			return s.ID, true
		}
	}
	return 0, false
}
