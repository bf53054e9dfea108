package tool

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"barnabas/client"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// patience is how long a command waits for a broker before it gives up.
const patience = 15 * time.Second

// properties reads a properties file of clients; "" is an empty one.
func properties(file string) (map[string]string, error) {
	if file == "" {
		return map[string]string{}, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return client.ReadProperties(f)
}

// pairs lays name=value arguments over properties. bad names the first that
// has no =.
func pairs(props map[string]string, list []string) (bad string) {
	for _, p := range list {
		name, value, ok := strings.Cut(p, "=")
		if !ok && bad == "" {
			bad = p
		}
		props[name] = value
	}
	return bad
}

// clientOptions are those of kgo for a list of brokers and Java's properties.
func clientOptions(servers string, props map[string]string) ([]kgo.Opt, error) {
	seeds := strings.Split(servers, ",")
	for i := range seeds {
		seeds[i] = strings.TrimSpace(seeds[i])
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(seeds...), kgo.ClientID("adminclient-" + strconv.Itoa(rand.IntN(100000))), kgo.DisableClientMetrics(),
		kgo.RetryTimeout(patience), kgo.DialTimeout(5 * time.Second), kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.RetryBackoffFn(func(n int) time.Duration { return min(time.Duration(n)*50*time.Millisecond, time.Second) }), kgo.RequestRetries(8),
	}
	if id := props["client.id"]; id != "" {
		opts = append(opts, kgo.ClientID(id))
	}
	secure, err := security(props)
	if err != nil {
		return nil, err
	}
	return append(opts, secure...), nil
}

// kafka connects to the brokers of --bootstrap-server with --command-config.
func (c *Call) kafka() (*kgo.Client, error) {
	props, err := properties(c.Args.Text("command-config"))
	if err != nil {
		return nil, err
	}
	return c.kafkaAt(c.Args.Text("bootstrap-server"), props)
}

func (c *Call) kafkaAt(servers string, props map[string]string, more ...kgo.Opt) (*kgo.Client, error) {
	opts, err := clientOptions(servers, props)
	if err != nil {
		return nil, err
	}
	k, err := kgo.NewClient(append(opts, more...)...)
	if err != nil {
		return nil, fmt.Errorf("--bootstrap-server %s: %w", servers, err)
	}
	return k, nil
}

// withAdmin runs f with a client for requests to the cluster.
func (c *Call) withAdmin(f func(*kadm.Client, *kgo.Client) error) error {
	k, err := c.kafka()
	if err != nil {
		return err
	}
	defer k.Close()
	return f(kadm.NewClient(k), k)
}

// shardErrors tells whether err is of some brokers only.
func shardErrors(err error) bool {
	var shards *kadm.ShardErrors
	return errors.As(err, &shards) && !shards.AllFailed
}
