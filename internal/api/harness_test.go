package api

import (
	"encoding/binary"
	"log/slog"
	"testing"

	"barnabas/internal/config"
	"barnabas/internal/metadata"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// handlersBroker is a broker for the handlers that ask neither ZooKeeper nor
// the controller.
func handlersBroker(t testing.TB, properties map[string]string) *Broker {
	t.Helper()
	c, err := config.NewBroker(properties)
	if err != nil {
		t.Fatal(err)
	}
	b := &Broker{ID: 1, ClusterID: "AAAAAAAAAAAAAAAAAAAAAA", Config: config.NewDynamic(c), Metadata: metadata.New(), Log: slog.New(slog.DiscardHandler)}
	t.Cleanup(b.Close)
	return b
}

// ask hands a body to a handler and returns the request once it has ended.
func ask(b *Broker, key, version int16, body []byte) *Request {
	done := make(chan *Request, 1)
	q := &Request{
		Header: wire.Header{Key: key, Version: version}, Body: body, Conn: &Conn{Listener: "PLAINTEXT"},
		Finish: func(q *Request) { done <- q },
	}
	Lookup(key).Handle(b, q)
	return <-done
}

// call asks and decodes the answer.
func call[R kmsg.Response](t *testing.T, b *Broker, version int16, r kmsg.Request) R {
	t.Helper()
	r.SetVersion(version)
	q := ask(b, r.Key(), version, r.AppendTo(nil))
	if q.Outcome != Answer {
		t.Fatalf("%s v%d: outcome %d: %v", kmsg.NameForKey(r.Key()), version, q.Outcome, q.Reason)
	}
	response := r.ResponseKind()
	response.SetVersion(version)
	if err := response.ReadFrom(q.W.B); err != nil {
		t.Fatalf("%s v%d: %v: %x", kmsg.NameForKey(r.Key()), version, err, q.W.B)
	}
	again := response.AppendTo(nil)
	if len(again) != len(q.W.B) {
		t.Fatalf("%s v%d: %d bytes left over", kmsg.NameForKey(r.Key()), version, len(q.W.B)-len(again))
	}
	return response.(R)
}

func int32s(v ...int32) (b []byte) {
	for _, n := range v {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return b
}

func TestNullWhereKafkaHasNoneClosesTheConnection(t *testing.T) {
	b := handlersBroker(t, nil)
	cluster(b.Metadata, wire.UUID{})
	null := int32s(-1)
	for _, c := range []struct {
		key, version int16
		body         []byte
	}{
		{3, 0, null}, {3, 1, append(int32s(1), 255, 255)}, {3, 9, []byte{2, 0, 0, 0, 0, 0, 0}},
		{19, 0, append(null, int32s(5)...)}, {19, 4, append(null, 0, 0, 0, 5, 0)}, {19, 5, []byte{0, 0, 0, 0, 5, 0, 0}},
		{20, 0, append(null, int32s(5)...)}, {20, 4, []byte{0, 0, 0, 0, 5, 0}}, {20, 6, []byte{0, 0, 0, 0, 5, 0}},
		{37, 0, append(null, 0, 0, 0, 5, 0)}, {37, 2, []byte{0, 0, 0, 0, 5, 0, 0}},
		{32, 0, null}, {32, 4, []byte{0, 0, 0, 0}}, {33, 0, append(null, 0)}, {33, 2, []byte{0, 0, 0}}, {44, 0, append(null, 0)}, {44, 1, []byte{0, 0, 0}},
		{48, 0, append(null, 0)}, {49, 0, append(null, 0)}, {48, 1, []byte{0, 0, 0}}, {49, 1, []byte{0, 0, 0}},
		{51, 0, []byte{0, 1, 0}}, {51, 0, []byte{1, 0, 0}}, {10, 4, []byte{0, 0, 0}}, {10, 0, []byte{255, 255}}, {22, 0, []byte{255, 255}},
		{8, 0, append([]byte{0, 1, 'g'}, null...)}, {9, 0, append([]byte{0, 1, 'g'}, null...)}, {60, 0, nil}, {18, 3, []byte{0, 1, 0}},
	} {
		if q := ask(b, c.key, c.version, c.body); q.Outcome != CloseConn || q.Reason == nil {
			t.Errorf("%s v%d %x: outcome %d, answer %x", kmsg.NameForKey(c.key), c.version, c.body, q.Outcome, q.W.B)
		}
	}
}

func TestCutBodiesCloseTheConnection(t *testing.T) {
	b := handlersBroker(t, nil)
	cluster(b.Metadata, wire.UUID{})
	for _, a := range All() {
		if a.Key == 0 || a.Key == 1 || a.Key == 2 || a.Key == 23 || a.Key == 35 { // they need replicas
			continue
		}
		for v := a.Min; v <= a.Max; v++ {
			if a.Key == 18 && v < 3 { // no body
				continue
			}
			r := kmsg.RequestForKey(a.Key)
			r.SetVersion(v)
			whole := r.AppendTo(nil)
			for n := range whole {
				if q := ask(b, a.Key, v, whole[:n]); q.Outcome != CloseConn {
					t.Fatalf("%s v%d cut to %d of %d bytes: outcome %d", a.Name, v, n, len(whole), q.Outcome)
				}
			}
		}
	}
}
