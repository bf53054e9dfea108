package tool

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"barnabas/internal/config"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// configReport is one entity's configuration.
type configReport struct {
	Kind    string        `json:"entityType"`
	Name    string        `json:"entityName"`
	Default bool          `json:"default,omitempty"`
	Configs []configEntry `json:"configs"`
}

type configEntry struct {
	Name      string   `json:"name"`
	Value     *string  `json:"value"`
	Sensitive bool     `json:"sensitive"`
	Source    string   `json:"source"`
	Synonyms  []string `json:"synonyms"`
	source    int8
}

// describeConfigs shows resources as they are asked for, as Kafka's script
// does, so that what was printed stands when a later one fails.
func (c *Call) describeConfigs(admin *kadm.Client, list []entity) error {
	switch list[0].kind {
	case "users", "clients", "ips":
		return c.describeQuotas(admin, list)
	}
	e := list[0]
	var names []entity
	switch {
	case e.given:
		names = []entity{e}
	case e.kind == "topics":
		all, err := admin.ListTopicsWithInternal(c.Context)
		if err != nil {
			return err
		}
		for _, t := range all.Names() {
			names = append(names, entity{e.kind, t, true, false})
		}
	case e.kind == "brokers":
		brokers, err := admin.ListBrokers(c.Context)
		if err != nil {
			return err
		}
		for _, id := range brokers.NodeIDs() {
			names = append(names, entity{e.kind, itoa(id), true, false})
		}
		names = append(names, entity{e.kind, "", true, true})
	}
	reports := []configReport{}
	for _, n := range names {
		if !c.JSON {
			switch {
			case n.all:
				fmt.Fprintf(c.Out, "Default configs for %s in the cluster are:\n", n.kind)
			case c.Args.Has("all"):
				fmt.Fprintf(c.Out, "All configs for %s %s are:\n", strings.TrimSuffix(n.kind, "s"), n.name)
			default:
				fmt.Fprintf(c.Out, "Dynamic configs for %s %s are:\n", strings.TrimSuffix(n.kind, "s"), n.name)
			}
		}
		entries, err := c.configEntries(admin, n, c.Args.Has("all"))
		if err != nil {
			return err
		}
		reports = append(reports, configReport{n.kind, n.name, n.all, entries})
		if !c.JSON {
			for _, entry := range entries {
				fmt.Fprintf(c.Out, "  %s=%s sensitive=%t synonyms={%s}\n", entry.Name, orNull(entry.Value), entry.Sensitive, strings.Join(entry.Synonyms, ", "))
			}
		}
	}
	if c.JSON {
		return c.printJSON(map[string]any{"configs": reports})
	}
	return nil
}

func orNull(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}

// configEntries returns the configuration of a topic or broker: what is set for
// it, or all.
func (c *Call) configEntries(admin *kadm.Client, e entity, all bool) ([]configEntry, error) {
	var configs kadm.ResourceConfigs
	var err error
	var dynamic int8
	switch {
	case e.kind == "topics":
		dynamic = 1
		configs, err = admin.DescribeTopicConfigs(c.Context, e.name)
	case e.kind == "brokers" && e.all:
		dynamic = 3
		configs, err = admin.DescribeBrokerConfigs(c.Context)
	case e.kind == "brokers":
		dynamic = 2
		id, e := atoi(e.name)
		if e != nil {
			return nil, e
		}
		configs, err = admin.DescribeBrokerConfigs(c.Context, id)
	default:
		return nil, terse("barnabas cannot show %s", e.kind)
	}
	if err != nil {
		return nil, err
	}
	entries := []configEntry{}
	for _, r := range configs {
		if r.Err != nil {
			return nil, withMessage(r.Err, r.ErrMessage)
		}
		for _, k := range r.Configs {
			if !all && int8(k.Source) != dynamic {
				continue
			}
			entry := configEntry{Name: k.Key, Value: k.Value, Sensitive: k.Sensitive, Source: sourceNames[int8(k.Source)], Synonyms: []string{}, source: int8(k.Source)}
			for _, s := range k.Synonyms {
				entry.Synonyms = append(entry.Synonyms, sourceNames[int8(s.Source)]+":"+s.Key+"="+orNull(s.Value))
			}
			entries = append(entries, entry)
		}
	}
	slices.SortFunc(entries, func(a, b configEntry) int { return strings.Compare(a.Name, b.Name) })
	return entries, nil
}

func (c *Call) alterConfigs(admin *kadm.Client, list []entity) error {
	add, remove, err := c.changes()
	if err != nil {
		return err
	}
	switch list[0].kind {
	case "users", "clients", "ips":
		return c.alterQuotas(admin, list, add, remove)
	}
	e := list[0]
	old, err := c.configEntries(admin, e, false)
	if err != nil {
		return err
	}
	if err := missing(remove, func(key string) bool {
		return slices.ContainsFunc(old, func(o configEntry) bool { return o.Name == key })
	}); err != nil {
		return err
	}
	var changes []kadm.AlterConfig
	for _, k := range slices.Sorted(maps.Keys(add)) {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: k, Value: kadm.StringPtr(add[k])})
	}
	for _, k := range remove {
		changes = append(changes, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: k})
	}
	var done kadm.AlterConfigsResponses
	if e.kind == "topics" {
		done, err = admin.AlterTopicConfigs(c.Context, changes, e.name)
	} else {
		var ids []int32
		if !e.all {
			id, err := atoi(e.name)
			if err != nil {
				return err
			}
			ids = append(ids, id)
		}
		done, err = admin.AlterBrokerConfigs(c.Context, changes, ids...)
	}
	if err != nil {
		return err
	}
	for _, r := range done {
		if r.Err != nil {
			return withMessage(r.Err, r.ErrMessage)
		}
	}
	return c.updated(e)
}

// missing is the error for keys to be deleted that are not set.
func missing(remove []string, set func(string) bool) error {
	var bad []string
	for _, k := range remove {
		if !set(k) {
			bad = append(bad, k)
		}
	}
	if bad != nil {
		return terse("Invalid config(s): %s", strings.Join(bad, ","))
	}
	return nil
}

// quotaTypes are the names of entity types in client quotas, in the order in
// which they are shown.
var quotaTypes = []struct{ kind, quota, shown, shownDefault string }{
	{"users", "user", "user-principal '%s'", "the default user-principal"},
	{"clients", "client-id", "client-id '%s'", "the default client-id"},
	{"ips", "ip", "ip '%s'", "the default ip"},
}

func (c *Call) quotas(admin *kadm.Client, list []entity) ([]kadm.DescribedClientQuota, error) {
	var filter []kadm.DescribeClientQuotaComponent
	for _, e := range list {
		for _, q := range quotaTypes {
			if q.kind != e.kind {
				continue
			}
			part := kadm.DescribeClientQuotaComponent{Type: q.quota, MatchType: kmsg.QuotasMatchTypeAny}
			switch {
			case e.all:
				part.MatchType = kmsg.QuotasMatchTypeDefault
			case e.given:
				part.MatchType, part.MatchName = kmsg.QuotasMatchTypeExact, kadm.StringPtr(e.name)
			}
			filter = append(filter, part)
		}
	}
	return admin.DescribeClientQuotas(c.Context, true, filter)
}

func (c *Call) describeQuotas(admin *kadm.Client, list []entity) error {
	found, err := c.quotas(admin, list)
	if err != nil {
		return err
	}
	reports := []map[string]any{}
	for _, q := range found {
		names := map[string]*string{}
		for _, part := range q.Entity {
			names[part.Type] = part.Name
		}
		var shown, values []string
		for _, t := range quotaTypes {
			name, ok := names[t.quota]
			switch {
			case ok && name == nil:
				shown = append(shown, t.shownDefault)
			case ok:
				shown = append(shown, fmt.Sprintf(t.shown, *name))
			}
		}
		numbers := map[string]float64{}
		for _, v := range q.Values {
			numbers[v.Key] = v.Value
		}
		for _, k := range slices.Sorted(maps.Keys(numbers)) {
			values = append(values, k+"="+javaDouble(numbers[k]))
		}
		reports = append(reports, map[string]any{"entity": names, "quotas": numbers})
		if !c.JSON {
			fmt.Fprintf(c.Out, "Quota configs for %s are %s\n", strings.Join(shown, ", "), strings.Join(values, ", "))
		}
	}
	credentials, err := c.describeCredentials(admin, list)
	if err != nil {
		return err
	}
	if c.JSON {
		return c.printJSON(map[string]any{"quotas": reports, "credentials": credentials})
	}
	return nil
}

// describeCredentials shows SCRAM credentials when users alone are asked for.
func (c *Call) describeCredentials(admin *kadm.Client, list []entity) ([]map[string]any, error) {
	reports := []map[string]any{}
	if len(list) != 1 || list[0].kind != "users" || list[0].all {
		return reports, nil
	}
	var names []string
	if list[0].given {
		names = append(names, list[0].name)
	}
	users, err := admin.DescribeUserSCRAMs(c.Context, names...)
	if err != nil {
		return nil, err
	}
	for _, u := range users.Sorted() {
		if errors.Is(u.Err, kerr.ResourceNotFound) {
			continue
		}
		if u.Err != nil {
			return nil, withMessage(u.Err, u.ErrMessage)
		}
		var shown []string
		for _, i := range u.CredInfos {
			shown = append(shown, fmt.Sprintf("%s=iterations=%d", i.Mechanism, i.Iterations))
			reports = append(reports, map[string]any{"user": u.User, "mechanism": i.Mechanism.String(), "iterations": i.Iterations})
		}
		if !c.JSON {
			fmt.Fprintf(c.Out, "SCRAM credential configs for user-principal '%s' are %s\n", u.User, strings.Join(shown, ", "))
		}
	}
	return reports, nil
}

func (c *Call) alterQuotas(admin *kadm.Client, list []entity, add map[string]string, remove []string) error {
	scrams, quotas := map[string]string{}, map[string]string{}
	var dropScrams, dropQuotas []string
	for k, v := range add {
		if strings.HasPrefix(k, "SCRAM-") {
			scrams[k] = v
		} else {
			quotas[k] = v
		}
	}
	for _, k := range remove {
		if strings.HasPrefix(k, "SCRAM-") {
			dropScrams = append(dropScrams, k)
		} else {
			dropQuotas = append(dropQuotas, k)
		}
	}
	if len(scrams)+len(dropScrams) > 0 {
		if len(list) != 1 || list[0].kind != "users" || list[0].all {
			return terse("SCRAM credentials belong to one user")
		}
		if err := c.alterCredentials(admin, list[0].name, scrams, dropScrams); err != nil {
			return err
		}
	}
	if len(quotas)+len(dropQuotas) == 0 {
		return c.updated(list[0])
	}
	var e []kadm.ClientQuotaEntityComponent
	kind := config.Clients
	for _, one := range list {
		for _, q := range quotaTypes {
			if q.kind == one.kind {
				part := kadm.ClientQuotaEntityComponent{Type: q.quota}
				if !one.all {
					part.Name = kadm.StringPtr(one.name)
				}
				e = append(e, part)
			}
		}
		if one.kind == "ips" {
			kind = config.IPs
		}
	}
	var unknown []string
	for k := range quotas {
		if !known(kind, k) {
			unknown = append(unknown, k)
		}
	}
	if unknown != nil {
		slices.Sort(unknown)
		return terse("Only quota configs can be added for '%s' using --bootstrap-server. Unexpected config names: Set(%s)", list[0].kind, strings.Join(unknown, ", "))
	}
	return c.alterQuotasOf(admin, list, kadm.AlterClientQuotaEntry{Entity: e}, quotas, dropQuotas)
}

func (c *Call) alterQuotasOf(admin *kadm.Client, list []entity, entry kadm.AlterClientQuotaEntry, quotas map[string]string, remove []string) error {
	if len(remove) > 0 {
		old, err := c.quotas(admin, list)
		if err != nil {
			return err
		}
		set := map[string]bool{}
		for _, q := range old {
			for _, v := range q.Values {
				set[v.Key] = true
			}
		}
		if err := missing(remove, func(k string) bool { return set[k] }); err != nil {
			return err
		}
	}
	for _, k := range slices.Sorted(maps.Keys(quotas)) {
		f, err := strconv.ParseFloat(quotas[k], 64)
		if err != nil {
			return terse("Cannot parse quota configuration value for %s: %s", k, quotas[k])
		}
		entry.Ops = append(entry.Ops, kadm.AlterClientQuotaOp{Key: k, Value: f})
	}
	for _, k := range remove {
		entry.Ops = append(entry.Ops, kadm.AlterClientQuotaOp{Key: k, Remove: true})
	}
	done, err := admin.AlterClientQuotas(c.Context, []kadm.AlterClientQuotaEntry{entry})
	if err != nil {
		return err
	}
	for _, r := range done {
		if r.Err != nil {
			return withMessage(r.Err, r.ErrMessage)
		}
	}
	return c.updated(list[0])
}

func (c *Call) alterCredentials(admin *kadm.Client, user string, set map[string]string, remove []string) error {
	mechanisms := map[string]kadm.ScramMechanism{"SCRAM-SHA-256": kadm.ScramSha256, "SCRAM-SHA-512": kadm.ScramSha512}
	var upsert []kadm.UpsertSCRAM
	var drop []kadm.DeleteSCRAM
	for name, value := range set {
		m, ok := mechanisms[name]
		if !ok {
			return terse("Unknown SCRAM mechanism %s", name)
		}
		password, iterations, err := parseCredential(name, value)
		if err != nil {
			return err
		}
		u := kadm.UpsertSCRAM{User: user, Mechanism: m, Iterations: iterations, Password: password}
		upsert = append(upsert, u)
	}
	for _, name := range remove {
		drop = append(drop, kadm.DeleteSCRAM{User: user, Mechanism: mechanisms[name]})
	}
	done, err := admin.AlterUserSCRAMs(c.Context, drop, upsert)
	if err != nil {
		return err
	}
	for _, r := range done {
		if r.Err != nil {
			return withMessage(r.Err, r.ErrMessage)
		}
	}
	return nil
}

// parseCredential reads "iterations=8192,password=secret".
func parseCredential(name, value string) (password string, iterations int32, err error) {
	iterations = 4096
	for part := range strings.SplitSeq(value, ",") {
		k, v, _ := strings.Cut(part, "=")
		switch strings.TrimSpace(k) {
		case "password":
			password = v
		case "iterations":
			if iterations, err = atoi(v); err != nil || iterations < 4096 {
				return "", 0, terse("iterations must be a number from 4096 on, not %s", v)
			}
		}
	}
	if password == "" {
		return "", 0, terse("Credentials need a password: %s=[iterations=8192,password=secret]", name)
	}
	return password, iterations, nil
}
