package controller

import (
	"context"
	"log/slog"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/wire"
	"barnabas/internal/zookeeper"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Target is one broker as the controller talks to it. A call returns when the
// broker has answered; an error means that no answer came, and the same request
// is sent again. Requests have their version set (it follows the inter-broker
// protocol version, there is no negotiation) and are shared between brokers:
// an implementation reads them and never changes them, nor what they point to.
// It must return soon after its context ends, and must not wait for an answer
// of the Controller, which may be waiting for it.
type Target interface {
	LeaderAndISR(context.Context, *kmsg.LeaderAndISRRequest) (*kmsg.LeaderAndISRResponse, error)
	UpdateMetadata(context.Context, *kmsg.UpdateMetadataRequest) (*kmsg.UpdateMetadataResponse, error)
	StopReplica(context.Context, *kmsg.StopReplicaRequest) (*kmsg.StopReplicaResponse, error)
}

// Endpoint is a listener of a broker as its registration tells it.
type Endpoint struct {
	Listener         string
	SecurityProtocol string // PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL
	Host             string
	Port             int32
}

// Options are the arguments of New. All fields without "optional" are needed.
type Options struct {
	BrokerID int32
	IBP      config.IBP

	// ZooKeeper is the broker's session. Its events are not read here: whoever
	// reads them passes them on with Controller.Event.
	ZooKeeper *zookeeper.Client

	// InterBrokerListener is the listener whose endpoints go into the live
	// leaders of LeaderAndIsr.
	InterBrokerListener string

	// Targets makes the way to a broker, when it registers. The broker with
	// BrokerID is this process.
	Targets func(brokerID int32, endpoints []Endpoint) Target

	// Identify, optional, finds out whether the broker that listens there is
	// Barnabas. It is asked again after an error; this broker always is.
	Identify func(ctx context.Context, endpoints []Endpoint) (bool, error)

	DeleteTopicEnable      bool             // delete.topic.enable
	UncleanElectionEnable  bool             // unclean.leader.election.enable at start
	AutoRebalanceEnable    bool             // auto.leader.rebalance.enable
	ImbalancePercentage    int              // leader.imbalance.per.broker.percentage
	ImbalanceCheckInterval time.Duration    // leader.imbalance.check.interval.seconds
	SetACL                 bool             // without effect: the access lists of new nodes are the client's
	Now                    func() time.Time // optional
	NewTopicID             func() wire.UUID // optional: wire.NewUUID
	Logger                 *slog.Logger     // optional
	MaxOps, MaxBytes       int              // optional: bounds of one transaction, 400 and 512 KiB
}

func (o *Options) fill() {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewTopicID == nil {
		o.NewTopicID = wire.NewUUID
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxOps <= 0 {
		o.MaxOps = 400
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 512 << 10
	}
}
