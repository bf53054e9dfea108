package broker

import (
	"context"
	"errors"

	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// errNoPeers is the answer of the way to another broker.
var errNoPeers = errors.New("requests to other brokers are not supported yet")

// local is this broker as its own controller talks to it: the same requests as
// over the network, without one.
type local struct{ b *Broker }

func (l local) LeaderAndISR(ctx context.Context, r *kmsg.LeaderAndISRRequest) (*kmsg.LeaderAndISRResponse, error) {
	var fresh []string
	for i := range r.TopicStates {
		if name := r.TopicStates[i].Topic; l.b.replicas.Topic([]byte(name)) == nil {
			fresh = append(fresh, name)
		}
	}
	if len(fresh) > 0 {
		if err := l.b.configs.readTopics(ctx, fresh); err != nil {
			return nil, err
		}
	}
	return l.b.replicas.ApplyLeaderAndISR(r), nil
}

func (l local) UpdateMetadata(_ context.Context, r *kmsg.UpdateMetadataRequest) (*kmsg.UpdateMetadataResponse, error) {
	resp := r.ResponseKind().(*kmsg.UpdateMetadataResponse)
	resp.SetVersion(r.Version)
	code := l.b.replicas.CheckController(r.ControllerEpoch, r.BrokerEpoch)
	resp.ErrorCode = int16(code)
	if code == wire.None {
		l.b.metadata.Update(r)
	}
	return resp, nil
}

func (l local) StopReplica(_ context.Context, r *kmsg.StopReplicaRequest) (*kmsg.StopReplicaResponse, error) {
	return l.b.replicas.StopReplica(r), nil
}

// remote is another broker: later.
type remote struct{}

func (remote) LeaderAndISR(context.Context, *kmsg.LeaderAndISRRequest) (*kmsg.LeaderAndISRResponse, error) {
	return nil, errNoPeers
}

func (remote) UpdateMetadata(context.Context, *kmsg.UpdateMetadataRequest) (*kmsg.UpdateMetadataResponse, error) {
	return nil, errNoPeers
}

func (remote) StopReplica(context.Context, *kmsg.StopReplicaRequest) (*kmsg.StopReplicaResponse, error) {
	return nil, errNoPeers
}
