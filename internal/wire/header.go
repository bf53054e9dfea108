package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// Header is the start of each request.
type Header struct {
	Key           int16
	Version       int16
	CorrelationID int32
	ClientID      string // "" also for null
	Flexible      bool   // request header v2: tagged fields follow the client id
}

// FirstFlexible returns the first flexible version of a request (KIP-482), or
// false if it has none or the key is unknown.
func FirstFlexible(key int16) (int16, bool) {
	if key < 0 || int(key) >= len(firstFlexible) || firstFlexible[key] < 0 {
		return 0, false
	}
	return firstFlexible[key], true
}

var firstFlexible = func() (first [128]int16) {
	for key := range first {
		first[key] = -1
		request := kmsg.RequestForKey(int16(key))
		if request == nil {
			continue
		}
		for v := int16(0); v <= request.MaxVersion(); v++ {
			if request.SetVersion(v); request.IsFlexible() {
				first[key] = v
				break
			}
		}
	}
	return first
}()

// ReadHeader reads a request's header and leaves r at the body. ControlledShutdown
// v0 has no client id (request header v0).
func ReadHeader(r *Reader) Header {
	h := Header{Key: r.Int16(), Version: r.Int16(), CorrelationID: r.Int32()}
	if h.Key == int16(kmsg.ControlledShutdown) && h.Version == 0 {
		return h
	}
	h.ClientID = string(r.NullableString(false))
	first, ok := FirstFlexible(h.Key)
	if h.Flexible = ok && h.Version >= first; h.Flexible {
		r.Tags(true)
	}
	return h
}

// AppendResponseHeader appends the correlation id and, for flexible versions,
// empty tagged fields. The answer to ApiVersions has header v0 at every
// version (KIP-511), so that any client can read it.
func AppendResponseHeader(b []byte, h Header) []byte {
	w := Writer{B: b}
	w.Int32(h.CorrelationID)
	w.Tags(h.Flexible && h.Key != int16(kmsg.ApiVersions))
	return w.B
}
