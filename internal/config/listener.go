package config

// Protocol is the security protocol of a listener. The numbers are Kafka's
// (SecurityProtocol.id), which UpdateMetadata and LeaderAndIsr carry.
type Protocol int16

// The security protocols.
const (
	Plaintext     Protocol = 0
	SSL           Protocol = 1
	SASLPlaintext Protocol = 2
	SASLSSL       Protocol = 3
)

// String returns Kafka's name: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
func (p Protocol) String() string { panic("todo") }

// Listener is one end point: of listeners, where the broker binds, or of
// advertised.listeners, what it hands to clients.
type Listener struct {
	Name     string // upper case, such as PLAINTEXT or INTERNAL
	Protocol Protocol
	Host     string // "" in listeners means every interface; never in brackets
	Port     int    // 0 in listeners means that the system chooses
}

// Address returns host:port for net.Listen or net.Dial, IPv6 in brackets.
func (l Listener) Address() string { panic("todo") }

// String returns NAME://host:port, as in the endpoints of /brokers/ids/N.
func (l Listener) String() string { panic("todo") }

// Listeners returns listeners in the order written.
func (b *Broker) Listeners() []Listener { panic("todo") }

// AdvertisedListeners returns advertised.listeners, or listeners when it is
// unset, with ports of 0 and empty hosts still unresolved; see [Broker.Advertise].
func (b *Broker) AdvertisedListeners() []Listener { panic("todo") }

// Advertise returns what to hand to clients once the sockets are bound: ports
// of 0 are taken from bound (by listener name), an empty host becomes hostname.
func (b *Broker) Advertise(bound map[string]int, hostname string) []Listener { panic("todo") }

// InterBrokerListener returns the name of the listener that brokers use among
// themselves.
func (b *Broker) InterBrokerListener() string { panic("todo") }

// ControlPlaneListener returns the name of the listener for the controller's
// requests, or "" when they share the inter-broker listener.
func (b *Broker) ControlPlaneListener() string { panic("todo") }
