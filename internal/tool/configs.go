package tool

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"barnabas/internal/config"
	"barnabas/internal/zookeeper"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// configsCommand is kafka-configs (kafka.admin.ConfigCommand).
func configsCommand() *Command {
	flag := func(name, text string) Option { return Option{Name: name, Text: text} }
	value := func(name, text string) Option {
		return Option{Name: name, Arg: "String", Text: text, Property: name == "add-config" || name == "delete-config"}
	}
	return &Command{
		Name: "configs", Script: "kafka-configs", Short: "Show and change the configuration of topics, brokers, clients, users and addresses",
		Purpose: "This tool helps to manipulate and describe entity config for a topic, client, user, broker, ip or client-metrics",
		Example: []string{
			"barnabas configs --bootstrap-server localhost:9092 --alter --topic orders --add-config retention.ms=3600000",
			"barnabas configs --bootstrap-server localhost:9092 --describe --topic orders",
		},
		Options: []Option{
			value("add-config", "Key Value pairs of configs to add. Square brackets can be used to group values which contain commas: 'k1=v1,k2=[v1,v2,v2],k3=v3'. The following is a list of valid configurations: For entity-type 'topics':\n"+topicKeys()),
			value("add-config-file", "Path to a properties file with configs to add. See add-config for a list of valid configurations."),
			flag("all", "List all configs for the given topic, broker, or broker-logger entity (includes static configuration when the entity type is brokers)"),
			flag("alter", "Alter the configuration for the entity."),
			{Name: "bootstrap-controller", Arg: "String: controller to connect to", Text: "The Kafka controllers to connect to."},
			{Name: "bootstrap-server", Arg: "String: server to connect to", Text: "The Kafka servers to connect to."},
			value("broker", "The broker's ID."),
			flag("broker-defaults", "The config defaults for all brokers."),
			value("broker-logger", "The broker's ID for its logger config."),
			value("client", "The client's ID."),
			flag("client-defaults", "The config defaults for all clients."),
			value("client-metrics", "The client metrics config resource name."),
			commandConfig,
			value("delete-config", "config keys to remove 'k1,k2'"),
			flag("describe", "List configs for the given entity."),
			flag("entity-default", "Default entity name for clients/users/brokers/ips (applies to corresponding entity type in command line)"),
			value("entity-name", "Name of entity (topic name/client id/user principal name/broker id/ip/client metrics)"),
			{Name: "entity-type", Arg: "String", Text: "Type of entity (topics/clients/users/brokers/broker-loggers/ips/client-metrics)", Values: entityTypes},
			flag("force", "Suppress console prompts"),
			value("ip", "The IP address."),
			flag("ip-defaults", "The config defaults for all IPs."),
			{Name: "topic", Arg: "String", Topic: true, Text: "The topic's name."},
			value("user", "The user's principal name."),
			flag("user-defaults", "The config defaults for all users."),
			{Name: "zk-tls-config-file", Arg: "String: ZooKeeper TLS configuration", Text: "Identifies the file where ZooKeeper client TLS connectivity properties are defined."},
			{Name: "zookeeper", Arg: "String: urls", Text: "DEPRECATED. The connection string for the zookeeper connection in the form host:port. Required when configuring SCRAM credentials for users or dynamic broker configs when the relevant broker(s) are down. (Otherwise in Kafka's script up to 2.8.)"},
		},
		Run: runConfigs,
	}
}

var entityTypes = []string{"topics", "clients", "users", "brokers", "ips", "broker-loggers", "client-metrics"}

// entityFlags are the options that name an entity and its type at once, in
// Kafka's order; entityDefaults those that name the default of a type.
var (
	entityFlags = [][2]string{{"topic", "topics"}, {"client", "clients"}, {"user", "users"}, {"broker", "brokers"}, {"broker-logger", "broker-loggers"},
		{"ip", "ips"}, {"client-metrics", "client-metrics"}}
	entityDefaults = [][2]string{{"client-defaults", "clients"}, {"user-defaults", "users"}, {"broker-defaults", "brokers"}, {"ip-defaults", "ips"}}
)

// entity is what a config belongs to; a nil name is the default of its type, and
// given is false when the type alone is meant.
type entity struct {
	kind  string
	name  string
	given bool // a name, or the default
	all   bool // the default
}

func entitiesOf(c *Call) (list []entity) {
	a := c.Args
	kinds := slices.Clone(a.All("entity-type"))
	var names []entity
	// names and defaults belong to the types in the order of the command line
	at := 0
	for _, arg := range c.raw {
		switch {
		case arg == "--entity-name" || strings.HasPrefix(arg, "--entity-name="):
			if at < len(a.All("entity-name")) {
				names = append(names, entity{name: a.All("entity-name")[at], given: true})
				at++
			}
		case arg == "--entity-default":
			names = append(names, entity{given: true, all: true})
		}
	}
	for i, kind := range kinds {
		e := entity{kind: kind}
		if i < len(names) {
			e = names[i]
			e.kind = kind
		}
		list = append(list, e)
	}
	for _, f := range entityFlags {
		if a.Has(f[0]) {
			list = append(list, entity{f[1], a.Text(f[0]), true, false})
		}
	}
	for _, f := range entityDefaults {
		if a.Has(f[0]) {
			list = append(list, entity{f[1], "", true, true})
		}
	}
	return list
}

// checkConfigs is ConfigCommandOptions.checkArgs.
func checkConfigs(a *Args, list []entity) error {
	if a.count("alter", "describe") != 1 {
		return usage("Command must include exactly one action: --describe, --alter")
	}
	for _, rule := range [][]string{{"alter", "describe"}, {"describe", "alter", "add-config", "delete-config"}} {
		if err := a.not(rule[0], rule[1:]...); err != nil {
			return err
		}
	}
	var kinds []string
	for _, e := range list {
		if slices.Contains(kinds, e.kind) {
			return terse("Duplicate entity type(s) specified: %s", e.kind)
		}
		kinds = append(kinds, e.kind)
	}
	if a.count("bootstrap-server", "bootstrap-controller") > 0 && a.Has("zookeeper") {
		return terse("Only one of --bootstrap-server or --zookeeper must be specified")
	}
	for _, k := range kinds {
		if err := checkKind(a, k); err != nil {
			return err
		}
	}
	switch {
	case len(kinds) == 0:
		return terse("At least one entity type must be specified")
	case len(kinds) > 1 && !(len(kinds) == 2 && slices.Contains(kinds, "users") && slices.Contains(kinds, "clients")):
		return terse("Only 'users' and 'clients' entity types may be specified together")
	}
	specific := false
	for _, f := range append(slices.Clone(entityFlags), entityDefaults...) {
		specific = specific || a.Has(f[0])
	}
	if specific && a.count("entity-name", "entity-type", "entity-default") > 0 {
		return terse("--entity-{type,name,default} should not be used in conjunction with specific entity flags")
	}
	switch a.count("bootstrap-server", "bootstrap-controller", "zookeeper") {
	case 0:
		return terse("One of the required --bootstrap-server, --boostrap-controller, or --zookeeper arguments must be specified")
	case 1:
	default:
		return terse("Only one of --bootstrap-server, --boostrap-controller, and --zookeeper can be specified")
	}
	if a.Has("bootstrap-controller") {
		return terse("--bootstrap-controller is for KRaft; use --bootstrap-server")
	}
	for _, e := range list {
		if err := checkEntity(e); err != nil {
			return err
		}
	}
	return checkAction(a, list, kinds)
}

// checkKind refuses types that a command line can't have. With --zookeeper they
// are those of 2.8.
func checkKind(a *Args, kind string) error {
	old := []string{"topics", "clients", "users", "brokers", "ips"}
	allowed := entityTypes
	switch {
	case a.Has("zookeeper"):
		if slices.Contains(old, kind) {
			return nil
		}
		return terse("Invalid entity type %s, the entity type must be one of %s with the --zookeeper argument", kind, strings.Join(old, ","))
	case a.count("bootstrap-server", "bootstrap-controller") == 0:
		allowed = []string{"users", "brokers"}
		if !slices.Contains(allowed, kind) {
			return terse("Invalid entity type %s, the entity type must be one of %s with a --zookeeper argument", kind, strings.Join(allowed, ", "))
		}
	case !slices.Contains(allowed, kind):
		return terse("Invalid entity type %s, the entity type must be one of %s with a --bootstrap-server or --bootstrap-controller argument", kind, strings.Join(allowed, ", "))
	}
	return nil
}

func checkEntity(e entity) error {
	if e.all && !slices.Contains([]string{"clients", "users", "brokers", "ips"}, e.kind) {
		return terse("--entity-default must not be specified with --entity-type %s", e.kind)
	}
	if !e.given || e.all {
		return nil
	}
	switch e.kind {
	case "brokers", "broker-loggers":
		if _, err := atoi(e.name); err != nil {
			return terse("The entity name for %s must be a valid integer broker id, but it is: %s", e.kind, e.name)
		}
	case "ips":
		if net.ParseIP(e.name) == nil {
			if _, err := net.LookupHost(e.name); err != nil {
				return terse("The entity name for ips must be a valid IP or resolvable host, but it is: %s", e.name)
			}
		}
	}
	return nil
}

func checkAction(a *Args, list []entity, kinds []string) error {
	named, defaulted := false, false
	for _, e := range list {
		named = named || e.given && !e.all
		defaulted = defaulted || e.all
	}
	if a.Has("describe") {
		if slices.Contains(kinds, "broker-loggers") && !named {
			return terse("an entity name must be specified with --describe of %s", strings.Join(kinds, ","))
		}
		return nil
	}
	switch kinds[0] {
	case "users", "clients", "brokers", "ips":
		if !named && !defaulted {
			return terse("an entity-name or default entity must be specified with --alter of users, clients, brokers or ips")
		}
	default:
		if !named {
			return terse("an entity name must be specified with --alter of %s", strings.Join(kinds, ","))
		}
	}
	if a.Has("add-config") && a.Has("add-config-file") {
		return terse("Only one of --add-config or --add-config-file must be specified")
	}
	if a.count("add-config", "add-config-file", "delete-config") == 0 {
		return terse("At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter")
	}
	return nil
}

func runConfigs(c *Call) error {
	list := entitiesOf(c)
	if err := checkConfigs(c.Args, list); err != nil {
		return err
	}
	err := c.withAdminOrOld(list, func(admin *kadm.Client, _ *kgo.Client) error {
		if c.Args.Has("describe") {
			return c.describeConfigs(admin, list)
		}
		return c.alterConfigs(admin, list)
	})
	switch err.(type) {
	case nil, *UsageError:
		return err
	}
	if err == ErrReported || c.JSON {
		return err
	}
	fmt.Fprintf(c.Err, "Error while executing config command with args '%s'\n%s\n", strings.Join(c.raw, " "), text(err))
	c.hint(err)
	return ErrReported
}

func (c *Call) withAdminOrOld(list []entity, f func(*kadm.Client, *kgo.Client) error) error {
	if c.Args.Has("zookeeper") {
		return c.withZooKeeper(func(ctx context.Context, zk *zookeeper.Client) error { return c.configsOld(ctx, zk, list) })
	}
	return c.withAdmin(f)
}

// changes reads --add-config, --add-config-file and --delete-config.
func (c *Call) changes() (add map[string]string, remove []string, err error) {
	add = map[string]string{}
	if file := c.Args.Text("add-config-file"); file != "" {
		if add, err = properties(file); err != nil {
			return nil, nil, err
		}
	}
	if c.Args.Has("add-config") {
		if add, err = parseConfigs(c.Args.Text("add-config")); err != nil {
			return nil, nil, err
		}
	}
	if s := c.Args.Text("delete-config"); s != "" {
		for key := range strings.SplitSeq(s, ",") {
			remove = append(remove, strings.TrimSpace(key))
		}
	}
	return add, remove, nil
}

// parseConfigs reads k1=v1,k2=[v1,v2],k3=v3.
func parseConfigs(s string) (map[string]string, error) {
	props := map[string]string{}
	var parts []string
	depth, start := 0, 0
	for i := 0; i <= len(s); i++ {
		if i == len(s) || s[i] == ',' && depth == 0 {
			parts = append(parts, s[start:i])
			start = i + 1
			continue
		}
		switch s[i] {
		case '[':
			depth++
		case ']':
			depth--
		}
	}
	for _, part := range parts {
		if strings.TrimSpace(part) == "" {
			continue
		}
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, terse("requirement failed: Invalid entity config: all configs to be added must be in the format \"key=val\".")
		}
		props[strings.TrimSpace(key)] = strings.TrimSpace(strings.NewReplacer("[", "", "]", "").Replace(value))
	}
	return props, nil
}

// javaDouble writes a number as Java's Double.toString for the numbers that
// quotas have.
func javaDouble(f float64) string {
	abs := f
	if abs < 0 {
		abs = -abs
	}
	if abs != 0 && (abs < 1e-3 || abs >= 1e7) {
		s := strconv.FormatFloat(f, 'E', -1, 64)
		mantissa, exponent, _ := strings.Cut(s, "E")
		if !strings.Contains(mantissa, ".") {
			mantissa += ".0"
		}
		n, err := strconv.Atoi(exponent)
		if err != nil {
			return s
		}
		return mantissa + "E" + strconv.Itoa(n)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func (c *Call) updated(e entity) error {
	if c.JSON {
		return c.printJSON(map[string]any{"updated": e.kind, "name": e.name, "default": e.all})
	}
	if e.all {
		fmt.Fprintf(c.Out, "Completed updating default config for %s in the cluster.\n", e.kind)
	} else {
		fmt.Fprintf(c.Out, "Completed updating config for %s %s.\n", strings.TrimSuffix(e.kind, "s"), e.name)
	}
	return nil
}

// sourceNames are ConfigEntry.ConfigSource by number.
var sourceNames = map[int8]string{
	1: "DYNAMIC_TOPIC_CONFIG", 2: "DYNAMIC_BROKER_CONFIG", 3: "DYNAMIC_DEFAULT_BROKER_CONFIG", 4: "STATIC_BROKER_CONFIG", 5: "DEFAULT_CONFIG",
	6: "DYNAMIC_BROKER_LOGGER_CONFIG", 7: "DYNAMIC_CLIENT_METRICS_CONFIG",
}

// known tells whether a quota or credential key may be set for a kind.
func known(kind config.EntityKind, key string) bool {
	return slices.ContainsFunc(config.EntityDefinitions(kind), func(d *config.Definition) bool { return d.Name == key })
}
