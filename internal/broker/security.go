package broker

import (
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"

	"barnabas/internal/config"
	"barnabas/internal/pemstore"
	"barnabas/internal/security"

	"github.com/twmb/franz-go/pkg/sasl"
)

// secure reads what the listeners take, and how this broker makes itself known
// to others, before anything is opened.
func (b *Broker) secure(c *config.Broker) error {
	b.users = security.NewCredentials()
	b.sasl, b.logins = map[string]*security.Listener{}, map[string]sasl.Mechanism{}
	b.tls = map[string]*transport{}
	for _, l := range c.Listeners() {
		among := l.Name == c.InterBrokerListener() || l.Name == c.ControlPlaneListener()
		if l.Protocol == config.SSL || l.Protocol == config.SASLSSL {
			t := &transport{listener: l.Name, sasl: l.Protocol == config.SASLSSL}
			if err := t.read(c); err != nil {
				return fmt.Errorf("listener %s: %w", l, err)
			}
			b.tls[l.Name] = t
		}
		if l.Protocol == config.SASLPlaintext || l.Protocol == config.SASLSSL {
			if err := b.secureSASL(c, l.Name, among); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *Broker) secureSASL(c *config.Broker, listener string, among bool) (err error) {
	if b.sasl[listener], err = security.NewListener(c, listener, b.users); err == nil && among {
		b.logins[listener], err = security.Login(c, listener)
	}
	return err
}

// transport is the TLS of a listener and, where brokers use it among themselves,
// towards it. It is read anew when the configuration changes, even to what it
// was: certificates end, and files get new ones.
type transport struct {
	listener       string
	sasl           bool // who the client is, SASL tells
	server, client atomic.Pointer[tls.Config]
}

// listen returns what the listener is served with; nil for no TLS.
func (t *transport) listen() *tls.Config {
	if t == nil {
		return nil
	}
	return &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return t.server.Load(), nil }}
}

func (t *transport) read(all *config.Broker) error {
	c := all.ForListener(t.listener)
	stores, err := stores(c)
	if err != nil {
		return err
	}
	auth := tls.NoClientCert
	if !t.sasl || all.SetForListener(t.listener, "ssl.client.auth") { // KIP-684
		auth = map[string]tls.ClientAuthType{"requested": tls.VerifyClientCertIfGiven, "required": tls.RequireAndVerifyClientCert}[c.String("ssl.client.auth")]
	}
	server, err := stores.Server(auth)
	if err != nil {
		return fmt.Errorf("ssl.*: %w", err)
	}
	client, err := stores.Client(c.String("ssl.endpoint.identification.algorithm") != "")
	if err != nil {
		return fmt.Errorf("ssl.*: %w", err)
	}
	for _, made := range []*tls.Config{server, client} {
		if err := pemstore.Limit(made, c.List("ssl.enabled.protocols"), c.List("ssl.cipher.suites")); err != nil {
			return fmt.Errorf("ssl.%w", err)
		}
	}
	t.server.Store(server)
	t.client.Store(client)
	return nil
}

// renewStores has the TLS listeners read their stores whenever the
// configuration changes.
func (b *Broker) renewStores() {
	if len(b.tls) == 0 {
		return
	}
	changed := make(chan struct{}, 1)
	b.config.Subscribe(func(_, _ *config.Broker) { token(changed) })
	token(changed) // the listeners were bound before ZooKeeper's properties were read
	b.running.Go(func() {
		for {
			select {
			case <-b.ctx.Done():
				return
			case <-changed:
			}
			for _, t := range b.tls {
				if err := t.read(b.config.Load()); err != nil {
					b.log.Error("a listener keeps the certificates that it has", "listener", t.listener, "err", err)
				}
			}
		}
	})
}

// stores reads ssl.keystore.* and ssl.truststore.*: PEM in files or, as Kafka
// has it too, in the properties themselves (KIP-651).
func stores(c *config.Broker) (pemstore.Stores, error) {
	keys, trusted := c.String("ssl.keystore.location"), c.String("ssl.truststore.location")
	for _, s := range []struct{ key, location, text string }{
		{"ssl.keystore.type", keys, c.String("ssl.keystore.key")}, {"ssl.truststore.type", trusted, c.String("ssl.truststore.certificates")},
	} {
		if kind := c.String(s.key); kind != "PEM" && (s.location != "" || s.text != "") {
			return pemstore.Stores{}, fmt.Errorf("%s=%s: only PEM can be read: convert the store with keytool and openssl and set %s=PEM", s.key, kind, s.key)
		}
	}
	if keys == "" && c.String("ssl.keystore.key") == "" {
		return pemstore.Stores{}, errors.New("ssl.keystore.location is not set: it names a PEM file with the private key and its certificates")
	}
	s, err := pemstore.Read(keys, trusted)
	if err != nil {
		return s, err
	}
	if keys == "" {
		s.Keys = []byte(c.String("ssl.keystore.key") + "\n" + c.String("ssl.keystore.certificate.chain"))
	}
	if trusted == "" {
		s.Trusted = []byte(c.String("ssl.truststore.certificates"))
	}
	return s, nil
}
