package api

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/test/raw"
)

// max.message.bytes=0 is a limit too: nothing is small enough for it.
func TestMaxMessageBytesOfZeroLetsNothingIn(t *testing.T) {
	raw.OnBoth(t, func(t *testing.T, addr string) {
		client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic("nothing"), kgo.DisableIdempotentWrite())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		zero := "0"
		if _, err := kadm.NewClient(client).CreateTopic(t.Context(), 1, 1, map[string]*string{"max.message.bytes": &zero}, "nothing"); err != nil {
			t.Fatal(err)
		}
		if err := client.ProduceSync(t.Context(), &kgo.Record{Value: []byte("v")}).FirstErr(); !errors.Is(err, kerr.MessageTooLarge) {
			t.Error(err)
		}
	})
}
