package znode

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

const (
	// Config is the parent of the entity types.
	Config = "/config"
	// ConfigChanges is the parent of the change notifications.
	ConfigChanges = "/config/changes"
	// ConfigChangePrefix begins the name of each notification.
	ConfigChangePrefix = "config_change_"
)

// EntityType is a folder below /config.
type EntityType string

// The entity types of ZooKeeper mode (kafka.server.ConfigType).
const (
	TopicEntity  EntityType = "topics"
	ClientEntity EntityType = "clients"
	UserEntity   EntityType = "users"
	BrokerEntity EntityType = "brokers"
	IPEntity     EntityType = "ips"
)

// defaultName is what stands for the default entity in a path. A real name can
// never equal it: '<' is encoded.
const defaultName = "<default>"

// EntityName is the name of one entity as its user knows it, or the default of
// its type.
type EntityName struct {
	Name    string
	Default bool // then Name is ""
}

// ConfigEntity is what a config node belongs to. It is comparable.
//
// The kinds are topics/T, brokers/N, brokers/<default>, clients/C, users/U,
// users/U/clients/C and ips/IP, with <default> for each U, C and IP.
type ConfigEntity struct {
	Type EntityType
	EntityName
	// Client is set for users/U/clients/C, with HasClient.
	Client    EntityName
	HasClient bool
}

// TopicConfig is the entity of a topic.
func TopicConfig(topic string) ConfigEntity {
	return ConfigEntity{Type: TopicEntity, EntityName: EntityName{Name: topic}}
}

// BrokerConfig is the entity of one broker.
func BrokerConfig(id int32) ConfigEntity {
	return ConfigEntity{Type: BrokerEntity, EntityName: EntityName{Name: strconv.Itoa(int(id))}}
}

// BrokerDefaultConfig is the entity of all brokers.
func BrokerDefaultConfig() ConfigEntity {
	return ConfigEntity{Type: BrokerEntity, EntityName: EntityName{Default: true}}
}

// ClientConfig is the entity of a client id.
func ClientConfig(client EntityName) ConfigEntity {
	return ConfigEntity{Type: ClientEntity, EntityName: client}
}

// UserConfig is the entity of a user; it holds quotas and SCRAM credentials.
func UserConfig(user EntityName) ConfigEntity {
	return ConfigEntity{Type: UserEntity, EntityName: user}
}

// UserClientConfig is the entity of a client id of a user.
func UserClientConfig(user, client EntityName) ConfigEntity {
	return ConfigEntity{Type: UserEntity, EntityName: user, Client: client, HasClient: true}
}

// IPConfig is the entity of an address.
func IPConfig(ip EntityName) ConfigEntity {
	return ConfigEntity{Type: IPEntity, EntityName: ip}
}

// ConfigPath is the parent of all entities of a type.
func ConfigPath(t EntityType) string { return Config + "/" + string(t) }

// UserClientsPath is the parent of the client ids of a user.
func UserClientsPath(user EntityName) string {
	return ConfigPath(UserEntity) + "/" + user.encode() + "/" + string(ClientEntity)
}

// Path is the node that holds the entity's config.
func (e ConfigEntity) Path() string { return Config + "/" + e.EntityPath() }

// EntityPath is the form that change notifications name: "users/alice/clients/c1".
func (e ConfigEntity) EntityPath() string {
	name := e.Name
	switch {
	case e.Default:
		name = defaultName
	case e.encoded():
		name = EncodeName(name)
	}
	path := string(e.Type) + "/" + name
	if e.HasClient {
		path += "/" + string(ClientEntity) + "/" + e.Client.encode()
	}
	return path
}

// encoded tells whether names of this type are encoded in paths. Names of
// topics and brokers have no character that would need it.
func (e ConfigEntity) encoded() bool {
	return e.Type == ClientEntity || e.Type == UserEntity || e.Type == IPEntity
}

func (n EntityName) encode() string {
	if n.Default {
		return defaultName
	}
	return EncodeName(n.Name)
}

// ParseEntityName reads a child of a config folder of type t; else ErrPath.
func ParseEntityName(t EntityType, name string) (EntityName, error) {
	if name == "" {
		return EntityName{}, ErrPath
	}
	if name == defaultName && t != TopicEntity {
		return EntityName{Default: true}, nil
	}
	if !(ConfigEntity{Type: t}).encoded() {
		return EntityName{Name: name}, nil
	}
	plain, err := DecodeName(name)
	if err != nil {
		return EntityName{}, err
	}
	return EntityName{Name: plain}, nil
}

// ParseEntityPath reads what EntityPath writes; else ErrPath.
func ParseEntityPath(path string) (ConfigEntity, error) {
	parts := strings.Split(path, "/")
	if len(parts) != 2 && len(parts) != 4 {
		return ConfigEntity{}, ErrPath
	}
	e := ConfigEntity{Type: EntityType(parts[0])}
	switch e.Type {
	case TopicEntity, BrokerEntity, ClientEntity, UserEntity, IPEntity:
	default:
		return ConfigEntity{}, ErrPath
	}
	var err error
	if e.EntityName, err = ParseEntityName(e.Type, parts[1]); err != nil {
		return ConfigEntity{}, err
	}
	if len(parts) == 4 {
		if e.Type != UserEntity || EntityType(parts[2]) != ClientEntity {
			return ConfigEntity{}, ErrPath
		}
		e.HasClient = true
		if e.Client, err = ParseEntityName(ClientEntity, parts[3]); err != nil {
			return ConfigEntity{}, err
		}
	}
	return e, nil
}

// EncodeName writes a name as Kafka's Sanitizer does: UTF-8, each byte but
// letters, digits and ".-_" as %XX.
func EncodeName(name string) string {
	const hex = "0123456789ABCDEF"
	var dst []byte
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '-', c == '_':
			dst = append(dst, c)
		default:
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(dst)
}

// DecodeName reads what EncodeName and java.net.URLEncoder write ('+' is a
// space); a malformed escape is ErrPath.
func DecodeName(name string) (string, error) {
	if !strings.ContainsAny(name, "%+") {
		return name, nil
	}
	dst := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		switch c := name[i]; c {
		case '+':
			dst = append(dst, ' ')
		case '%':
			if i+3 > len(name) {
				return "", ErrPath
			}
			n, err := strconv.ParseUint(name[i+1:i+3], 16, 8)
			if err != nil {
				return "", ErrPath
			}
			dst = append(dst, byte(n))
			i += 2
		default:
			dst = append(dst, c)
		}
	}
	return strings.ToValidUTF8(string(dst), "\uFFFD"), nil
}

// EncodeConfig writes the data of a config node, version 1. All values are
// strings.
func EncodeConfig(config map[string]string) []byte {
	dst := []byte(`{"version":1,"config":{`)
	for i, key := range slices.Sorted(maps.Keys(config)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, key), ':')
		dst = appendString(dst, config[key])
	}
	return append(dst, "}}"...)
}

// DecodeConfig reads the data of a config node. Null data (a folder such as
// /config/users/U when only users/U/clients/C is set) and a node without
// "config" are an empty config. The map is never nil on success. Kafka also
// takes data that is not JSON for an empty config; here it is ErrFormat, so
// that the caller can say so.
func DecodeConfig(data []byte) (map[string]string, error) {
	config := map[string]string{}
	if len(data) == 0 {
		return config, nil
	}
	p := parse("config", data)
	for key := range p.fields() {
		if string(key) == "config" {
			config = p.stringMap()
		} else {
			p.skip()
		}
	}
	if p.err != nil {
		return nil, p.err
	}
	return config, nil
}

// EncodeConfigChange writes a change notification, version 2. It only tells
// which entity to read again.
func EncodeConfigChange(e ConfigEntity) []byte {
	dst := appendString([]byte(`{"version":2,"entity_path":`), e.EntityPath())
	return append(dst, '}')
}

// DecodeConfigChange reads versions 1 (entity_type and entity_name, of 0.9)
// and 2 (entity_path). Kafka skips notifications which cannot be read.
func DecodeConfigChange(data []byte) (ConfigEntity, error) {
	const kind = "config change"
	p := parse(kind, data)
	var version int32
	var path, entityType, entityName string
	var hasVersion bool
	for key := range p.fields() {
		switch string(key) {
		case "version":
			version, hasVersion = p.int32(), true
		case "entity_path":
			path = p.string()
		case "entity_type":
			entityType = p.string()
		case "entity_name":
			entityName = p.string()
		default:
			p.skip()
		}
	}
	p.require(hasVersion, "version")
	if p.err != nil {
		return ConfigEntity{}, p.err
	}
	switch version {
	case 1:
		p.key = []byte("entity_type")
		if t := EntityType(entityType); t != TopicEntity && t != ClientEntity {
			p.fail("neither topics nor clients")
		}
		path = entityType + "/" + entityName
	case 2:
		p.key = []byte("entity_path")
	default:
		return ConfigEntity{}, badVersion(kind, version)
	}
	e, err := ParseEntityPath(path)
	if err != nil {
		p.fail(strconv.Quote(path) + " is no entity")
	}
	if p.err != nil {
		return ConfigEntity{}, p.err
	}
	return e, nil
}
