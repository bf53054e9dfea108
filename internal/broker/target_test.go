package broker

import (
	"testing"

	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// An UpdateMetadata request of a controller that was deposed may pass the check
// of its epoch and then be overtaken by the new controller's.
func TestAnUpdateThatALaterControllersOvertookIsRefused(t *testing.T) {
	c := startCluster(t, 1, nil)
	b := c.brokers[0]
	until(t, "it knows itself", func() bool { return len(b.metadata.Cluster().Brokers) == 1 })
	update := func(controller, epoch int32) *kmsg.UpdateMetadataRequest {
		r := kmsg.NewPtrUpdateMetadataRequest()
		r.Version, r.ControllerID, r.ControllerEpoch, r.BrokerEpoch = 8, controller, epoch, -1
		return r
	}
	if b.metadata.Update(update(9, 9)); b.replicas.ControllerEpoch() >= 8 {
		t.Fatal("the check knows the later controller")
	}
	for _, step := range []struct {
		controller, epoch, now int32
		want                   wire.Code
	}{{8, 8, 9, wire.StaleControllerEpoch}, {7, 9, 7, wire.None}, {10, 10, 10, wire.None}} {
		resp, err := local{b}.UpdateMetadata(t.Context(), update(step.controller, step.epoch))
		if err != nil {
			t.Fatal(err)
		}
		if now := b.metadata.Cluster().ControllerID; wire.Code(resp.ErrorCode) != step.want || now != step.now {
			t.Errorf("epoch %d: error code %d, the controller is %d; want %d, %d", step.epoch, resp.ErrorCode, now, step.want, step.now)
		}
	}
}
