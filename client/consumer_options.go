package client

import (
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"
)

type consumerConfig struct {
	clientID string
	logger   *slog.Logger
	native   []kgo.Opt
}
