package api

import (
	"context"
	"errors"
	"math"
	"net"
	"strconv"

	"barnabas/internal/config"
	"barnabas/internal/jute"
	"barnabas/internal/wire"
	"barnabas/internal/znode"
)

// The kinds of parts that a quota entity has (ClientQuotaEntity).
const (
	userPart   = "user"
	clientPart = "client-id"
	ipPart     = "ip"
)

// quotaEntity is who a quota is for. A name that is nil is the default.
type quotaEntity struct {
	parts map[string]*string
}

// node returns the config entity of the quota.
func (e quotaEntity) node() znode.ConfigEntity {
	name := func(part string) znode.EntityName {
		if n := e.parts[part]; n != nil {
			return znode.EntityName{Name: *n}
		}
		return znode.EntityName{Default: true}
	}
	_, user := e.parts[userPart]
	_, client := e.parts[clientPart]
	switch {
	case user && client:
		return znode.UserClientConfig(name(userPart), name(clientPart))
	case user:
		return znode.UserConfig(name(userPart))
	case client:
		return znode.ClientConfig(name(clientPart))
	default:
		return znode.IPConfig(name(ipPart))
	}
}

// kind is which keys the entity may have.
func (e quotaEntity) kind() config.EntityKind {
	if _, ip := e.parts[ipPart]; ip {
		return config.IPs
	}
	return config.Clients // users with and without client have the same quotas
}

// check refuses entities that Kafka refuses.
func (e quotaEntity) check() error {
	if len(e.parts) == 0 {
		return refuse(wire.InvalidRequest, "Invalid empty client quota entity")
	}
	for part, name := range e.parts {
		switch {
		case part != userPart && part != clientPart && part != ipPart:
			return refuse(wire.InvalidRequest, "Unhandled client quota entity type: "+part)
		case name != nil && *name == "":
			return refuse(wire.InvalidRequest, "Empty "+part+" not supported")
		}
	}
	ip, isIP := e.parts[ipPart]
	if isIP && len(e.parts) > 1 {
		return refuse(wire.InvalidRequest, "Invalid quota entity combination, IP entity should not be used with user/client ID entity.")
	}
	if isIP && ip != nil && net.ParseIP(*ip) == nil {
		if addresses, err := net.LookupHost(*ip); err != nil || len(addresses) == 0 {
			return refuse(wire.InvalidRequest, znode.EncodeName(*ip)+" is not a valid IP or resolvable host.")
		}
	}
	return nil
}

// quotaText writes a value as the key's type wants it; ok is false when the
// value does not fit.
func quotaText(t config.Type, value float64) (s string, ok bool) {
	const slack = 1e-6 // ZkAdminManager rounds what is this near to a whole number
	whole := math.Round(value)
	switch t {
	case config.TypeDouble:
		return javaDouble(value), true
	case config.TypeLong:
		// -1 to 1 are too near to each other in Java's test of what a cast keeps
		return strconv.FormatInt(int64(whole), 10), math.Abs(whole-value) <= slack && whole >= 0 && whole < 1<<63
	case config.TypeInt:
		return strconv.FormatInt(int64(whole), 10), math.Abs(whole-value) <= slack && whole >= 0 && whole <= math.MaxInt32
	}
	return "", false
}

// javaDouble writes a number as Double.toString does: always with a fraction,
// and with E from 10^7 on and below 10^-3.
func javaDouble(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	case v == 0:
		return "0.0"
	}
	if a := math.Abs(v); a >= 1e-3 && a < 1e7 {
		s := strconv.FormatFloat(v, 'f', -1, 64)
		if whole := math.Trunc(v) == v; whole {
			s += ".0"
		}
		return s
	}
	exponent := int(math.Floor(math.Log10(math.Abs(v))))
	s := strconv.FormatFloat(v, 'e', -1, 64)
	mantissa, e := s, strconv.Itoa(exponent)
	for i := range s {
		if s[i] == 'e' {
			n, _ := strconv.Atoi(s[i+1:])
			mantissa, e = s[:i], strconv.Itoa(n)
		}
	}
	if len(mantissa) < 3 || mantissa[1] != '.' && mantissa[2] != '.' {
		mantissa += ".0"
	}
	return mantissa + "E" + e
}

// quotaEntry is an entity with the quotas it has.
type quotaEntry struct {
	entity quotaEntity
	quotas map[string]float64
}

// readQuotas returns every entity with quotas under /config of the kinds that
// are wanted.
func (b *Broker) readQuotas(ctx context.Context, users, clients, ips bool) ([]quotaEntry, error) {
	var all []quotaEntry
	add := func(e quotaEntity) error {
		config, err := b.entityConfig(ctx, e.node())
		if err != nil {
			return err
		}
		quotas := map[string]float64{}
		for key, value := range config {
			if _, isQuota := quotaType(e.kind(), key); !isQuota {
				continue // a SCRAM credential
			}
			if v, err := strconv.ParseFloat(value, 64); err == nil {
				quotas[key] = v
			}
		}
		if len(quotas) > 0 {
			all = append(all, quotaEntry{e, quotas})
		}
		return nil
	}
	each := func(wanted bool, t znode.EntityType, path string, f func(name *string) error) error {
		if !wanted {
			return nil
		}
		children, err := b.ZooKeeper.Children(ctx, path)
		if err != nil && !errors.Is(err, jute.ErrNoNode) {
			return err
		}
		for _, child := range children {
			name, err := znode.ParseEntityName(t, child)
			if err != nil {
				continue
			}
			n := &name.Name
			if name.Default {
				n = nil
			}
			if err := f(n); err != nil {
				return err
			}
		}
		return nil
	}
	entity := func(parts map[string]*string) quotaEntity { return quotaEntity{parts} }
	return all, errors.Join(
		each(users, znode.UserEntity, znode.ConfigPath(znode.UserEntity), func(user *string) error {
			if err := add(entity(map[string]*string{userPart: user})); err != nil {
				return err
			}
			path := znode.UserClientsPath(entity(map[string]*string{userPart: user}).node().EntityName)
			return each(true, znode.ClientEntity, path, func(client *string) error {
				return add(entity(map[string]*string{userPart: user, clientPart: client}))
			})
		}),
		each(clients, znode.ClientEntity, znode.ConfigPath(znode.ClientEntity), func(client *string) error {
			return add(entity(map[string]*string{clientPart: client}))
		}),
		each(ips, znode.IPEntity, znode.ConfigPath(znode.IPEntity), func(ip *string) error {
			return add(entity(map[string]*string{ipPart: ip}))
		}),
	)
}

func quotaType(kind config.EntityKind, key string) (config.Type, bool) {
	for _, d := range config.EntityDefinitions(kind) {
		if d.Name == key {
			return d.Type, true
		}
	}
	return 0, false
}
