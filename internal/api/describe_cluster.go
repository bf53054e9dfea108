package api

import (
	"context"
	"fmt"

	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 60, Name: "DescribeCluster", Min: 0, Max: 1, MaxFrame: 64 << 10, Expansion: 8,
	Versions: []string{
		"brokers, controller, cluster id, authorized operations (KIP-700)",
		"the kind of end point asked for: brokers or controllers (KIP-919)",
	},
	Handle: handleDescribeCluster,
})

func handleDescribeCluster(b *Broker, q *Request) {
	var in kmsg.DescribeClusterRequest
	in.Default()
	if !q.Decode(&in) {
		return
	}
	r := kmsg.NewPtrDescribeClusterResponse()
	refuse := func(c wire.Code, message string) {
		r.ErrorCode, r.ErrorMessage, r.ControllerID = int16(c), &message, -1
		q.Reply(r)
	}
	switch in.EndpointType {
	case 1:
	case 2:
		refuse(wire.MismatchedEndpointType, "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER")
		return
	default:
		refuse(wire.UnsupportedEndpointType, fmt.Sprintf("Unsupported endpoint type %d", in.EndpointType))
		return
	}
	c := b.Metadata.Cluster()
	r.ClusterID, r.ControllerID = b.ClusterID, c.ControllerID
	r.ClusterAuthorizedOperations = noOperations
	if in.IncludeClusterAuthorizedOperations {
		r.ClusterAuthorizedOperations = clusterOperations
	}
	for _, broker := range c.Brokers {
		if e := broker.Endpoint(q.Conn.Listener); e != nil {
			r.Brokers = append(r.Brokers, kmsg.DescribeClusterResponseBroker{NodeID: broker.ID, Host: e.Host, Port: e.Port, Rack: broker.Rack})
		}
	}
	if topic, asked := asksWhy(&in.UnknownTags); asked {
		b.background(q, func(ctx context.Context) {
			b.answerWhy(ctx, topic, r)
			q.Reply(r)
		})
		return
	}
	q.Reply(r)
}
