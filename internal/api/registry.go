package api

// API is one entry of the registry: all that the rest of the broker needs to
// know of one API key.
type API struct {
	Key      int16
	Name     string // as Kafka's ApiKeys spells it
	Min, Max int16  // versions that the handler serves and ApiVersions lists
	// MaxFrame bounds the request's size in bytes; 0 is socket.request.max.bytes.
	MaxFrame int
	// Expansion is how many bytes decoding may allocate for each byte of the
	// frame. The server takes it from the memory budget before it decodes.
	Expansion int
	// Reuse tells that the handler keeps nothing of Body once the request has
	// ended, so that the frame's memory serves the next request. kmsg aliases
	// byte fields of a body: leave it false where any is kept.
	Reuse bool
	// Brief tells that clients send little else for long, and that the handler
	// waits for nothing: a connection that sends nothing else needs no goroutine.
	Brief bool
	// Versions says in a few words what each version added, from Min on.
	Versions []string
	Handle   func(*Broker, *Request)
}

// registry holds the APIs by key; each file of this package that serves an API
// adds its own entry.
var registry [128]*API

func register(a API) struct{} {
	if registry[a.Key] != nil {
		panic("api: two files serve key " + a.Name)
	}
	registry[a.Key] = &a
	return struct{}{}
}

// Lookup returns the API with this key, or nil.
func Lookup(key int16) *API {
	if key < 0 || int(key) >= len(registry) {
		return nil
	}
	return registry[key]
}

// All returns every API in order of key.
func All() []*API {
	var all []*API
	for _, a := range registry {
		if a != nil {
			all = append(all, a)
		}
	}
	return all
}
