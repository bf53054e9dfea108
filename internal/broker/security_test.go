package broker

import (
	"crypto/tls"
	"fmt"
	"testing"

	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
	"barnabas/test/real"
)

// The listeners are bound before ZooKeeper's properties are read: a certificate
// that only those name is served after a start.
func TestACertificateOfADynamicPropertyIsServedAfterAStart(t *testing.T) {
	pem := real.PEM(t)
	c := startCluster(t, 0, map[string]string{
		"listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0", "ssl.keystore.type": "PEM", "ssl.keystore.location": pem.Server,
	})
	properties := znode.EncodeConfig(map[string]string{"listener.name.ssl.ssl.keystore.location": pem.Alone})
	if _, _, err := c.admin().CreateRecursive(t.Context(), znode.BrokerConfig(1).Path(), properties, zookeeper.Persistent); err != nil {
		t.Fatal(err)
	}
	c.dirs, c.ports, c.brokers = []string{t.TempDir()}, []int{0}, []*Broker{nil}
	c.start(0)
	address := fmt.Sprintf("127.0.0.1:%d", c.brokers[0].Info().Listeners[1].Port)
	until(t, "the certificate is served", func() bool {
		nc, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		return nc.ConnectionState().PeerCertificates[0].Subject.CommonName == "alone"
	})
}
