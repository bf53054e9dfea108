package group

import "barnabas/internal/wire"

// eachTopic calls f for each topic of a consumer's subscription, the metadata
// of its JoinGroup (Kafka's ConsumerProtocolSubscription):
//
//	version int16 | topics []string | user data bytes? | more in later versions
//
// It returns false if that is not what b holds.
func eachTopic(b []byte, f func(topic string)) bool {
	r := wire.NewReader(b)
	if r.Int16() < 0 {
		return false
	}
	for n := r.Array(false, 2); n > 0 && r.Err() == nil; n-- {
		if topic := r.String(false); r.Err() == nil {
			f(string(topic))
		}
	}
	return r.Err() == nil
}
