package broker

import (
	"context"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/peer"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// controlledShutdown asks the active controller to move leadership away from
// this broker before it stops, as often as controlled.shutdown.max.retries
// says, until it leads nothing (KafkaServer.controlledShutdown). It is only
// politeness: the stop goes on whatever comes of it. Without ZooKeeper nobody
// can move a leadership, so one short try is enough: that of a broker that
// alone has lost it.
func (b *Broker) controlledShutdown() {
	c := b.config.Load()
	if b.server == nil || !c.Bool("controlled.shutdown.enable") || len(b.metadata.Cluster().Brokers) < 2 {
		return
	}
	began := time.Now()
	for tries := c.Int("controlled.shutdown.max.retries"); tries > 0; tries-- {
		limit := c.Duration("controller.socket.timeout.ms")
		if !b.zk.Connected() {
			tries, limit = 1, min(limit, withoutZooKeeper)
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		rest, err := b.askForShutdown(ctx, c)
		cancel()
		switch {
		case err == nil && rest == 0:
			b.log.Info("leadership has moved to other brokers", "took", time.Since(began).Round(time.Millisecond))
			return
		case err != nil:
			b.log.Warn("the controller did not take this broker's leaderships away", "err", err, "tries left", tries-1)
		default:
			b.log.Warn("this broker still leads partitions", "partitions", rest, "tries left", tries-1)
		}
		if tries > 1 {
			b.waitForOtherController(c.Duration("controlled.shutdown.retry.backoff.ms"))
		}
	}
}

// withoutZooKeeper is how long a stop waits for the controller while this
// broker has no connection to ZooKeeper.
const withoutZooKeeper = 2 * time.Second

// lastWords is how long a controller that stops waits until every broker has
// heard who leads now.
const lastWords = 500 * time.Millisecond

func (b *Broker) askForShutdown(ctx context.Context, c *config.Broker) (rest int, err error) {
	if b.link.own() {
		parts, err := b.controller.ControlledShutdown(ctx, b.info.ID, b.epoch.Load())
		if err == nil {
			ctx, cancel := context.WithTimeout(ctx, lastWords)
			defer cancel()
			b.controller.Delivered(ctx)
		}
		return len(parts), err
	}
	request := kmsg.NewPtrControlledShutdownRequest()
	request.SetVersion(c.IBP().ControlledShutdown()) // never negotiated
	request.BrokerID, request.BrokerEpoch = b.info.ID, b.epoch.Load()
	response, err := b.link.ask(ctx, func(*peer.Versions) (kmsg.Request, error) { return request, nil })
	if err != nil {
		return 0, err
	}
	r := response.(*kmsg.ControlledShutdownResponse)
	if code := wire.Code(r.ErrorCode); code != wire.None {
		return 0, code
	}
	return len(r.PartitionsRemaining), nil
}

// waitForOtherController waits before another try: less than the whole time
// when another controller speaks.
func (b *Broker) waitForOtherController(most time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	before := b.metadata.Cluster().ControllerID
	b.metadata.WaitFor(func() bool { return b.metadata.Cluster().ControllerID != before }, ctx.Done())
}
