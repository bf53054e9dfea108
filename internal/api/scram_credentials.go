package api

import (
	"context"
	"errors"
	"slices"

	"barnabas/internal/jute"
	"barnabas/internal/security"
	"barnabas/internal/wire"
	"barnabas/internal/znode"
)

func scramByNumber(n int8) *security.SCRAM {
	for _, m := range security.SCRAMs {
		if m.Number == n {
			return m
		}
	}
	return nil
}

// userConfig is the config of a user, where the credentials are.
func (b *Broker) userConfig(ctx context.Context, user string) (map[string]string, error) {
	return b.entityConfig(ctx, znode.UserConfig(znode.EntityName{Name: user}))
}

// scramUsers returns the users that have nodes, in order. The default user has
// no credentials.
func (b *Broker) scramUsers(ctx context.Context) ([]string, error) {
	children, err := b.ZooKeeper.Children(ctx, znode.ConfigPath(znode.UserEntity))
	if err != nil && !errors.Is(err, jute.ErrNoNode) {
		return nil, err
	}
	var users []string
	for _, child := range children {
		if name, err := znode.ParseEntityName(znode.UserEntity, child); err == nil && !name.Default {
			users = append(users, name.Name)
		}
	}
	slices.Sort(users)
	return users, nil
}

var errEmptyUser = refuse(wire.UnacceptableCredential, "Username must not be empty")
