package core

import (
	"testing"

	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestALeaderOf28IsToldToAskAgainByTheWholeAnswer(t *testing.T) {
	for _, try := range []struct {
		codes []wire.Code
		want  wire.Code
	}{
		{[]wire.Code{wire.None, wire.OperationNotAttempted}, wire.OperationNotAttempted},
		{[]wire.Code{wire.NotController}, wire.NotController},
		{[]wire.Code{wire.None, wire.FencedLeaderEpoch, wire.InvalidUpdateVersion, wire.UnknownTopicOrPartition}, wire.None},
	} {
		resp := kmsg.NewPtrAlterPartitionResponse()
		resp.Topics = append(resp.Topics, kmsg.NewAlterPartitionResponseTopic())
		var list []*alteration
		for _, c := range try.codes {
			list = append(list, &alteration{code: c})
		}
		askAgain(resp, list)
		if wire.Code(resp.ErrorCode) != try.want || (len(resp.Topics) == 0) != (try.want != wire.None) {
			t.Errorf("%v: answer %v with %d topics", try.codes, wire.Code(resp.ErrorCode), len(resp.Topics))
		}
	}
}
