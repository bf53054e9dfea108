package tool

import (
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strings"

	"barnabas/internal/config"
	"barnabas/internal/jute"
	scram "barnabas/internal/security"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
)

const zookeeperDeprecated = `Warning: --zookeeper is deprecated and will be removed in a future version of Kafka.
Use --bootstrap-server instead to specify a broker to connect to.`

// configsOld is kafka-configs as it was up to 2.8: it reads and writes the
// nodes in ZooKeeper. It is still the way to store SCRAM credentials and
// passwords before the brokers that need them can start.
func (c *Call) configsOld(ctx context.Context, zk *zookeeper.Client, list []entity) error {
	if !c.JSON {
		fmt.Fprintln(c.Out, zookeeperDeprecated)
	}
	if c.Args.Has("describe") {
		return c.describeConfigsOld(ctx, zk, list)
	}
	add, remove, err := c.changes()
	if err != nil {
		return err
	}
	e := oldEntity(list)
	props, err := readConfig(ctx, zk, e)
	if err != nil {
		return err
	}
	if e.Type == znode.TopicEntity {
		if _, exists, err := zk.Exists(ctx, znode.TopicPath(e.Name)); err != nil || !exists {
			return errors.Join(err, says("Topic %q does not exist.", e.Name))
		}
	}
	switch e.Type {
	case znode.UserEntity:
		err = encodeCredentials(add)
	case znode.BrokerEntity:
		err = prepareBroker(ctx, zk, e, add)
	}
	if err != nil {
		return err
	}
	if err := missing(remove, func(key string) bool { _, ok := props[key]; return ok }); err != nil {
		return err
	}
	maps.Copy(props, add)
	for _, key := range remove {
		delete(props, key)
	}
	if err := writeConfig(ctx, zk, e, props); err != nil {
		var bad config.Errors
		if errors.As(err, &bad) {
			return terse("%s", text(err))
		}
		return err
	}
	if c.JSON {
		return c.printJSON(map[string]any{"updated": e.EntityPath()})
	}
	fmt.Fprintf(c.Out, "Completed updating config for entity: %s.\n", oldName(e))
	return nil
}

// oldEntity is the node that a command line names. Users and clients together
// are a client of a user.
func oldEntity(list []entity) znode.ConfigEntity {
	name := func(e entity) znode.EntityName { return znode.EntityName{Name: e.name, Default: e.all} }
	e := znode.ConfigEntity{Type: znode.EntityType(list[0].kind), EntityName: name(list[0])}
	if len(list) == 2 {
		user, client := list[0], list[1]
		if user.kind != "users" {
			user, client = client, user
		}
		e = znode.UserClientConfig(name(user), name(client))
	}
	return e
}

// oldName writes an entity as ConfigCommand.ConfigEntity.toString does.
func oldName(e znode.ConfigEntity) string {
	one := func(kind string, n znode.EntityName) string {
		if n.Default {
			return "default " + kind
		}
		return kind + " '" + n.Name + "'"
	}
	kinds := map[znode.EntityType]string{znode.UserEntity: "user-principal", znode.ClientEntity: "client-id", znode.TopicEntity: "topic"}
	kind := kinds[e.Type]
	if kind == "" {
		kind = string(e.Type)
	}
	s := one(kind, e.EntityName)
	if e.HasClient {
		s += ", " + one("client-id", e.Client)
	}
	return s
}

func (c *Call) describeConfigsOld(ctx context.Context, zk *zookeeper.Client, list []entity) error {
	entities, err := oldEntities(ctx, zk, list)
	if err != nil {
		return err
	}
	reports := []map[string]any{}
	everyUser := len(list) == 1 && list[0].kind == "users" && !list[0].given
	for _, e := range entities {
		props, err := readConfig(ctx, zk, e)
		if err != nil {
			return err
		}
		if everyUser && len(props) == 0 {
			continue // only its clients have something
		}
		reports = append(reports, map[string]any{"entity": e.EntityPath(), "configs": props})
		if c.JSON {
			continue
		}
		keys := sortedKeys(props)
		hashOrder(keys, len(keys))
		for i, key := range keys {
			keys[i] = key + "=" + props[key]
		}
		fmt.Fprintf(c.Out, "Configs for %s are %s\n", oldName(e), strings.Join(keys, ","))
	}
	if c.JSON {
		return c.printJSON(map[string]any{"configs": reports})
	}
	return nil
}

// oldEntities are those that a command line names; a type without a name is all
// of it.
func oldEntities(ctx context.Context, zk *zookeeper.Client, list []entity) (found []znode.ConfigEntity, err error) {
	e := oldEntity(list)
	users := []znode.EntityName{e.EntityName}
	root := list[0]
	if e.HasClient && root.kind != "users" {
		root = list[1]
	}
	if !root.given {
		if users, err = namesIn(ctx, zk, znode.ConfigPath(e.Type), e.Type); err != nil {
			return nil, err
		}
	}
	for _, user := range users {
		one := e
		one.EntityName = user
		if !e.HasClient {
			found = append(found, one)
			continue
		}
		clients := []znode.EntityName{e.Client}
		if slices.ContainsFunc(list, func(e entity) bool { return e.kind == "clients" && !e.given }) {
			if clients, err = namesIn(ctx, zk, znode.UserClientsPath(user), znode.ClientEntity); err != nil {
				return nil, err
			}
		}
		for _, client := range clients {
			one.Client = client
			found = append(found, one)
		}
	}
	return found, nil
}

func namesIn(ctx context.Context, zk *zookeeper.Client, path string, kind znode.EntityType) (names []znode.EntityName, err error) {
	children, _, err := zk.Children(ctx, path)
	if errors.Is(err, jute.ErrNoNode) {
		return nil, nil
	}
	slices.Sort(children)
	for _, child := range children {
		if n, err := znode.ParseEntityName(kind, child); err == nil {
			names = append(names, n)
		}
	}
	return names, err
}

// encodeCredentials puts the credentials in the place of passwords:
// "iterations=8192,password=secret" becomes what brokers check against.
func encodeCredentials(add map[string]string) error {
	for _, m := range scram.SCRAMs {
		value, ok := add[m.Name]
		if !ok {
			continue
		}
		password, iterations, err := parseCredential(m.Name, value)
		if err != nil {
			return err
		}
		h := map[string]func() hash.Hash{"SCRAM-SHA-256": sha256.New, "SCRAM-SHA-512": sha512.New}[m.Name]
		salt := []byte(rand.Text())
		salted, err := pbkdf2.Key(h, password, salt, int(iterations), h().Size())
		if err != nil {
			return err
		}
		credential := m.Credential(salt, salted, iterations)
		add[m.Name] = credential.String()
	}
	return nil
}

// prepareBroker refuses what a running broker would not notice, and encodes
// passwords with the password.encoder.* properties among those to be added,
// which are not stored.
func prepareBroker(ctx context.Context, zk *zookeeper.Client, e znode.ConfigEntity, add map[string]string) error {
	brokers, err := brokersIn(ctx, zk)
	if err != nil || len(add) == 0 {
		return err
	}
	encoder := map[string]string{}
	var passwords, others []string
	for _, key := range sortedKeys(add) {
		switch {
		case strings.HasPrefix(key, "password.encoder."):
			encoder[key] = add[key]
			delete(add, key)
		case config.IsPassword(key):
			passwords = append(passwords, key)
		}
	}
	others = sortedKeys(add)
	when := "for default cluster if any broker"
	running := e.Default && len(brokers) > 0
	for _, b := range brokers {
		if !e.Default && itoa(b.ID) == e.Name {
			running, when = true, "when broker "+e.Name
		}
	}
	if running {
		return terse("requirement failed: --bootstrap-server option must be specified to update broker configs Set(%s). %s is running. Broker configuration updates using ZooKeeper are supported for bootstrapping before brokers are started to enable encrypted password configs to be stored in ZooKeeper.", strings.Join(others, ", "), when)
	}
	broker, err := config.NewBroker(encoder)
	if err != nil {
		return err
	}
	encoded, err := broker.EncodePasswords(add)
	if errors.Is(err, config.ErrNoSecret) {
		return terse("requirement failed: password.encoder.secret must be specified to update Set(%s). Other password encoder configs like cipher algorithm and iterations may also be specified to override the default encoding parameters. Password encoder configs will not be persisted in ZooKeeper.", strings.Join(passwords, ", "))
	}
	if err != nil {
		return err
	}
	maps.Copy(add, encoded)
	return nil
}
