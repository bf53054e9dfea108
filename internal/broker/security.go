package broker

import (
	"fmt"

	"barnabas/internal/config"
	"barnabas/internal/security"

	"github.com/twmb/franz-go/pkg/sasl"
)

// secure reads what the listeners take, and how this broker authenticates to
// others, before anything is opened.
func (b *Broker) secure(c *config.Broker) error {
	b.users = security.NewCredentials()
	b.sasl = map[string]*security.Listener{}
	b.logins = map[string]sasl.Mechanism{}
	for _, l := range c.Listeners() {
		switch l.Protocol {
		case config.Plaintext:
			continue
		case config.SASLPlaintext:
		default:
			return fmt.Errorf("listener %s: security protocol %v is not supported yet: make it PLAINTEXT or SASL_PLAINTEXT "+
				"(listeners, listener.security.protocol.map), with a proxy before it that speaks TLS where TLS is needed", l, l.Protocol)
		}
		taken, err := security.NewListener(c, l.Name, b.users)
		if err != nil {
			return err
		}
		b.sasl[l.Name] = taken
		if l.Name != c.InterBrokerListener() && l.Name != c.ControlPlaneListener() {
			continue
		}
		if b.logins[l.Name], err = security.Login(c, l.Name); err != nil {
			return err
		}
	}
	return nil
}
