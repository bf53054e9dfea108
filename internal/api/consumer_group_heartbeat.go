package api

import (
	"time"

	"barnabas/internal/coordinator"
	groups "barnabas/internal/coordinator/group"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 68, Name: "ConsumerGroupHeartbeat", Min: 0, Max: 1, MaxFrame: 16 << 20, Expansion: 16,
	Versions: []string{
		"membership of a group whose assignment the coordinator makes (KIP-848)",
		"members make their ids (KIP-1082); without the protocol it is not listed; topics by a regular expression of RE2",
	},
	Handle: handleConsumerGroupHeartbeat,
})

func handleConsumerGroupHeartbeat(b *Broker, q *Request) {
	in := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	if !q.Decode(in) {
		return
	}
	fail := func(code wire.Code) {
		q.Reply(groups.ConsumerHeartbeatError(late(code, wire.CoordinatorNotAvailable), ""))
	}
	if code := b.consumerProtocol(in.MemberEpoch == 0); code != wire.None {
		fail(code)
		return
	}
	clientID, host := q.ClientID, clientHost(q)
	b.askGroup(q, in.Group,
		func(r any) { q.Reply(r.(*kmsg.ConsumerGroupHeartbeatResponse)) }, fail,
		func(m *groups.Machine, c coordinator.Caller, now time.Time, out *coordinator.Effects) {
			m.ConsumerHeartbeat(in, clientID, host, c, now, out)
		})
}

// strangersPatience is how long another broker may take to say that it is
// Barnabas before members are told that there is no such protocol.
const strangersPatience = 10 * time.Second

// consumerProtocol tells whether the protocol of KIP-848 is on: without the
// setting it is answered as Kafka does with ZooKeeper
// (KafkaApis.isConsumerGroupProtocolEnabled). Its records make Kafka's
// coordinators forget groups or stop loading them: so every broker must be
// Barnabas, or soon turn out to be.
func (b *Broker) consumerProtocol(joins bool) wire.Code {
	switch {
	case !b.Config.Load().Consumers():
		return wire.UnsupportedVersion
	case b.AllOurs():
		b.strangersSince.Store(0)
		return wire.None
	}
	now := b.Now().UnixMilli()
	b.strangersSince.CompareAndSwap(0, now)
	if joins && now-b.strangersSince.Load() > strangersPatience.Milliseconds() {
		return wire.UnsupportedVersion
	}
	return wire.CoordinatorNotAvailable // a member asks again
}
