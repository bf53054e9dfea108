package api

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestMain(m *testing.M) { real.Main(m) }

// step is one request of a script.
type step struct {
	req     kmsg.Request // with its version set
	body    []byte       // sent in the place of the request's own body, if not nil
	leaders string       // the topic whose partitions must have leaders first
	differs string       // why the answers differ on purpose: not compared, but there must be one
}

func at(version int16, r kmsg.Request) step {
	r.SetVersion(version)
	return step{req: r}
}

func after(topic string, s step) step {
	s.leaders = topic
	return s
}

func otherwise(why string, s step) step {
	s.differs = why
	return s
}

func rawBody(key, version int16, body ...byte) step {
	r := kmsg.RequestForKey(key)
	r.SetVersion(version)
	return step{req: r, body: body}
}

func ptr[T any](v T) *T { return &v }

func (s step) String() string {
	if s.body != nil {
		return fmt.Sprintf("%s v%d body %x", kmsg.NameForKey(s.req.Key()), s.req.GetVersion(), s.body)
	}
	b, _ := json.Marshal(s.req)
	return fmt.Sprintf("%s v%d %s", kmsg.NameForKey(s.req.Key()), s.req.GetVersion(), b)
}

// peer is a broker under comparison.
type peer struct {
	addr string
	conn *raw.Conn
}

func (p *peer) do(t *testing.T, s step) string {
	if s.leaders != "" {
		p.awaitLeaders(t, s.leaders)
	}
	if p.conn == nil {
		p.conn = raw.Dial(t, p.addr)
	}
	var response kmsg.Response
	var err error
	if s.body == nil {
		response, err = p.conn.Try(s.req)
	} else {
		response, err = p.doRaw(s)
	}
	if errors.Is(err, raw.ErrClosed) {
		p.conn = nil
		return "closed"
	}
	if err != nil {
		p.conn = nil
		return err.Error()
	}
	return canonical(t, response)
}

func (p *peer) doRaw(s step) (kmsg.Response, error) {
	const id = 1 << 30
	b := binary.BigEndian.AppendUint16(make([]byte, 4), uint16(s.req.Key()))
	b = binary.BigEndian.AppendUint16(b, uint16(s.req.GetVersion()))
	b = binary.BigEndian.AppendUint32(b, id)
	b = append(b, 0, 1, 'r')
	if s.req.IsFlexible() {
		b = append(b, 0)
	}
	b = append(b, s.body...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	p.conn.Send(b)
	return p.conn.Read(s.req, id, 10*time.Second)
}

func (p *peer) awaitLeaders(t *testing.T, topic string) {
	r := kmsg.NewPtrMetadataRequest()
	r.SetVersion(4)
	r.Topics = []kmsg.MetadataRequestTopic{{Topic: &topic}}
	conn := raw.Dial(t, p.addr)
	real.Until(t, 20*time.Second, "leaders of "+topic, func() bool {
		answer := raw.Do[*kmsg.MetadataResponse](conn, r).Topics[0]
		ready := answer.ErrorCode == 0 && len(answer.Partitions) > 0
		for _, p := range answer.Partitions {
			ready = ready && p.ErrorCode == 0
		}
		return ready
	})
}

// canonical writes an answer as JSON in which what differs from run to run has
// become a word, lists are in order of their text, and of messages only
// remains whether there is one.
func canonical(t *testing.T, r kmsg.Response) string {
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	out, _ := json.Marshal(simplify("", v))
	return string(out)
}

var masked = map[string]bool{"Host": true, "Port": true, "ClusterID": true, "Dir": true, "TotalBytes": true, "UsableBytes": true, "Documentation": true, "ProducerID": true}

func simplify(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "UnknownTags")
		delete(v, "ThrottleMillis") // the quotas that the script sets are not enforced here yet
		for k := range v {
			v[k] = simplify(k, v[k])
		}
		return v
	case []any:
		if key == "TopicID" {
			for _, b := range v {
				if b != 0.0 {
					return "an id"
				}
			}
			return "no id"
		}
		if len(v) == 0 {
			return nil
		}
		texts := make([]string, len(v))
		for i := range v {
			v[i] = simplify("", v[i])
			b, _ := json.Marshal(v[i])
			texts[i] = string(b)
		}
		sort.Sort(byText{texts, v})
		return v
	case string:
		if key == "ErrorMessage" && v != "" {
			return "a message"
		}
	}
	if masked[key] && v != nil && v != "" && v != -1.0 {
		return "some"
	}
	return v
}

type byText struct {
	texts []string
	v     []any
}

func (b byText) Len() int           { return len(b.v) }
func (b byText) Less(i, j int) bool { return b.texts[i] < b.texts[j] }
func (b byText) Swap(i, j int) {
	b.texts[i], b.texts[j] = b.texts[j], b.texts[i]
	b.v[i], b.v[j] = b.v[j], b.v[i]
}

func TestAnswersEqualKafkas(t *testing.T) {
	zk := real.ZooKeeper(t)
	kafka := &peer{addr: real.Kafka(t, "3.9.1", 1, zk, "inter.broker.protocol.version=3.9").Addr}
	// With zookeeper.connect set, every default is Kafka's.
	ours := &peer{addr: real.Barnabas(t, 1, "zookeeper.connect="+zk+"/ours", "offsets.topic.replication.factor=1",
		"transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1").Addr}
	for _, script := range []struct {
		name  string
		steps []step
	}{
		{"metadata", metadataSteps()}, {"topics", topicSteps()}, {"partitions", partitionSteps()}, {"deletion", deletionSteps()},
		{"describe configs", describeSteps()}, {"alter configs", alterSteps()}, {"incremental configs", incrementalSteps()},
		{"quotas", quotaSteps()}, {"SCRAM", scramSteps()}, {"coordinators", coordinatorSteps()}, {"old offsets", offsetSteps()},
		{"log dirs", logDirSteps()}, {"cluster", clusterSteps()}, {"security", securitySteps()},
	} {
		t.Run(script.name, func(t *testing.T) {
			kafka.conn, ours.conn = nil, nil
			for i, s := range script.steps {
				want := kafka.do(t, s)
				got := ours.do(t, s)
				if s.differs != "" {
					if got == "closed" || strings.Contains(got, "no answer") {
						t.Errorf("step %d: %s\n  barnabas: %s", i, s, got)
					}
					if got == want {
						t.Errorf("step %d: %s\n  the answers are equal; they were to differ: %s", i, s, s.differs)
					}
					continue
				}
				if got != want {
					t.Errorf("step %d: %s\n  Kafka:    %s\n  barnabas: %s", i, s, want, got)
				}
			}
		})
	}
	t.Run("znodes", func(t *testing.T) {
		paths := []string{"/config", "/consumers", "/admin", "/brokers/topics"}
		compareTrees(t, tree(t, zk, paths...), tree(t, zk+"/ours", paths...), refusedHere)
	})
}
