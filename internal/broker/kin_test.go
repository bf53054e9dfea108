package broker

import (
	"net"
	"testing"

	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestEveryBrokerLearnsThatTheOthersAreBarnabas(t *testing.T) {
	c := startCluster(t, 3, nil)
	for i, b := range c.brokers {
		until(t, "the others are known", func() bool { return len(b.metadata.Cluster().Brokers) == 3 && b.api.AllOurs() })
		for id := int32(1); id <= 3; id++ {
			b.kin.mu.Lock()
			r, known := b.kin.mu.known[id]
			b.kin.mu.Unlock()
			if own := int(id) == i+1; known == own || !own && !r.ours {
				t.Errorf("broker %d of %d: known %t, %+v", i+1, id, known, r)
			}
		}
	}
	first := c.brokers[0]
	c.stop(2)
	until(t, "two are left", func() bool { return len(first.metadata.Cluster().Brokers) == 2 && first.api.AllOurs() })
	c.start(2)
	until(t, "it is back", func() bool { return len(first.metadata.Cluster().Brokers) == 3 && first.api.AllOurs() })
}

// A live broker that answers ApiVersions without the tagged field is a stranger
// until it says otherwise.
func TestABrokerThatDoesNotSaySoIsNotBarnabas(t *testing.T) {
	c := startCluster(t, 1, nil)
	b := c.brokers[0]
	until(t, "alone", b.api.AllOurs)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 16)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			answerVersions(conn)
			asked <- struct{}{}
		}
	}()
	defer func() { l.Close(); <-done }()
	tell := func(port, epoch int32) {
		r := kmsg.NewPtrUpdateMetadataRequest()
		r.Version, r.ControllerID, r.ControllerEpoch = 8, 1, epoch
		for id, port := range map[int32]int32{1: 1, 2: port} {
			r.LiveBrokers = append(r.LiveBrokers, kmsg.UpdateMetadataRequestLiveBroker{ID: id, Endpoints: []kmsg.UpdateMetadataRequestLiveBrokerEndpoint{
				{ListenerName: "PLAINTEXT", Host: "127.0.0.1", Port: port}}})
		}
		b.metadata.Update(r)
	}
	tell(int32(l.Addr().(*net.TCPAddr).Port), 1)
	<-asked
	until(t, "the stranger is seen", func() bool { return !b.api.AllOurs() })
	tell(int32(l.Addr().(*net.TCPAddr).Port), 2) // another controller: it may be another broker by now
	<-asked
	tell(int32(b.Info().Listeners[0].Port), 2)
	until(t, "the broker of the id is another one", b.api.AllOurs)
}

// answerVersions answers one ApiVersions request as Kafka does.
func answerVersions(conn net.Conn) {
	defer conn.Close()
	b := make([]byte, 4096)
	n, err := conn.Read(b)
	if err != nil || n < 12 {
		return
	}
	r := kmsg.NewPtrApiVersionsResponse()
	r.Version = 3
	r.ApiKeys = []kmsg.ApiVersionsResponseApiKey{{ApiKey: 18, MaxVersion: 4}}
	w := wire.Writer{}
	body := r.AppendTo(nil)
	w.Int32(int32(4 + len(body)))
	w.B = append(w.B, b[8:12]...) // the correlation id
	_, _ = conn.Write(append(w.B, body...))
}
