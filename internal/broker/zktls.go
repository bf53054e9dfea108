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
	if err := pemstore.Limit(t, c.List(prefix+"enabled.protocols"), c.List(prefix+"cipher.suites")); err != nil {
		return nil, fmt.Errorf("%s%w", prefix, err)
	}
	return t, nil
}
