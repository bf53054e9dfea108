package api

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"hash"
	"slices"

	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/znode"
)

// scramMechanism is a SCRAM mechanism by its number in the protocol
// (ScramMechanism.type).
type scramMechanism struct {
	number     int8
	name       string // the key under /config/users
	iterations int32  // the fewest that are allowed
	hash       func() hash.Hash
}

var scramMechanisms = []scramMechanism{
	{1, "SCRAM-SHA-256", 4096, sha256.New},
	{2, "SCRAM-SHA-512", 4096, sha512.New},
}

// maxScramIterations is the most that a broker takes (ZkAdminManager).
const maxScramIterations = 16384

func scramByNumber(n int8) *scramMechanism {
	for i := range scramMechanisms {
		if scramMechanisms[i].number == n {
			return &scramMechanisms[i]
		}
	}
	return nil
}

// credential makes the stored form of a salted password (RFC 5802): the keys
// from which neither the password nor the salted one can be found.
func (m *scramMechanism) credential(salt, saltedPassword []byte, iterations int32) znode.SCRAMCredential {
	mac := func(text string) []byte {
		h := hmac.New(m.hash, saltedPassword)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	stored := m.hash()
	stored.Write(mac("Client Key"))
	base64 := base64.StdEncoding.EncodeToString
	return znode.SCRAMCredential{
		Salt: base64(salt), StoredKey: base64(stored.Sum(nil)), ServerKey: base64(mac("Server Key")), Iterations: int(iterations),
	}
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
