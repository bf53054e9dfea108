package api

import (
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 18, Name: "ApiVersions", Min: 0, Max: 4, MaxFrame: 64 << 10, Expansion: 16,
	Versions: []string{
		"the keys that this broker serves",
		"throttle time",
		"as 1; throttled after the answer, not before it (KIP-219)",
		"flexible, but with the old response header; the client's name and version (KIP-511); finalized features (KIP-584); to a client that calls itself barnabas, a tagged field by which its brokers know one another",
		"features whose minimum is 0 (KAFKA-17011)",
	},
	Handle: handleAPIVersions,
})

// handleAPIVersions answers what the registry holds. A version that is too new
// gets an answer in version 0 that names the versions of ApiVersions alone, so
// that the client can ask again (KIP-511): the server must let such requests
// through to here, with their header read as if they were of the newest version.
func handleAPIVersions(b *Broker, q *Request) {
	if q.Version > Lookup(q.Key).Max {
		r := kmsg.ApiVersionsResponse{ErrorCode: int16(wire.UnsupportedVersion)}
		own := Lookup(q.Key)
		r.ApiKeys = []kmsg.ApiVersionsResponseApiKey{{ApiKey: own.Key, MinVersion: own.Min, MaxVersion: own.Max}}
		q.W.B = r.AppendTo(q.W.B) // at version 0
		q.Done()
		return
	}
	r := kmsg.NewPtrApiVersionsResponse()
	if s := q.Conn.SASL; s != nil && s.Exchanging() {
		r.ErrorCode = int16(wire.IllegalSASLState)
		q.write(r)
		q.last(s.Unexpected(q.Key))
		return
	}
	if q.Version >= 3 {
		var in kmsg.ApiVersionsRequest
		if !q.Decode(&in) {
			return
		}
		if !softwareName(in.ClientSoftwareName) || !softwareName(in.ClientSoftwareVersion) {
			r.ErrorCode = int16(wire.InvalidRequest)
			q.Reply(r)
			return
		}
		q.Conn.SoftwareName, q.Conn.SoftwareVersion = in.ClientSoftwareName, in.ClientSoftwareVersion
	}
	if q.Conn.SASL != nil {
		q.Conn.SASL.VersionsAsked()
	}
	for _, a := range All() {
		newest := a.Max
		if a.Key == int16(kmsg.ConsumerGroupHeartbeat) && !b.Config.Load().Consumers() {
			newest = 0 // what Kafka 3.9.1 lists; it refuses all the same
		}
		r.ApiKeys = append(r.ApiKeys, kmsg.ApiVersionsResponseApiKey{ApiKey: a.Key, MinVersion: a.Min, MaxVersion: newest})
	}
	r.FinalizedFeaturesEpoch = 0 // /feature is never changed once it is made
	if q.Conn.SoftwareName == wire.KinName {
		r.UnknownTags.Set(wire.KinTag, []byte{wire.KinLevel})
	}
	q.Reply(r)
}

// softwareName tells whether s matches Kafka's
// [a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?.
func softwareName(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		c := s[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || i == len(s)-1 || c != '-' && c != '.') {
			return false
		}
	}
	return true
}
