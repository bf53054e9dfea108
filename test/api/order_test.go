package api

import (
	"testing"
	"time"

	"barnabas/test/raw"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Requests that go through ZooKeeper are done in the order they were sent, even
// when the client did not wait for the answers.
func TestPipelinedAdministrationKeepsItsOrder(t *testing.T) {
	b := real.Barnabas(t, 1)
	conn := raw.Dial(t, b.Addr)
	alter := incremental(ofTopic, "piped", operation{Name: "retention.ms", Value: ptr("12345")}).req
	steps := []kmsg.Request{
		create(4, 5000, false, topic("piped", 1, 1)).req, alter, describe(1, res(ofTopic, "piped", "retention.ms")).req,
	}
	var ids []int32
	for _, r := range steps {
		ids = append(ids, conn.Write(r))
	}
	var last kmsg.Response
	for i, r := range steps {
		var err error
		if last, err = conn.Read(r, ids[i], 10*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if c := last.(*kmsg.DescribeConfigsResponse).Resources[0].Configs; len(c) != 1 || *c[0].Value != "12345" {
		t.Errorf("%+v", c)
	}
}
