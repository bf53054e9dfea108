package znode

import (
	"strconv"
	"strings"
)

const (
	// ACLs is the root of the ACLs of literal resource names.
	ACLs = "/kafka-acl"
	// ExtendedACLs is the root of the ACLs of other patterns (KIP-290).
	ExtendedACLs = "/kafka-acl-extended"
	// ACLChanges is the parent of the notes on literal resources.
	ACLChanges = "/kafka-acl-changes"
	// ExtendedACLChanges is the parent of the notes on other patterns.
	ExtendedACLChanges = "/kafka-acl-extended-changes"
	// ACLChangePrefix begins the name of each note, in both.
	ACLChangePrefix = "acl_changes_"
)

// ResourceTypes are the folders below ACLs and ExtendedACLs/prefixed. User is
// known from 3.3 on; 2.8 logs it and goes on.
func ResourceTypes() []string {
	return []string{"Topic", "Group", "Cluster", "TransactionalId", "DelegationToken", "User"}
}

// PatternType says how a resource name matches.
type PatternType string

// The pattern types that are stored.
const (
	Literal  PatternType = "LITERAL" // "*" is a literal name for all
	Prefixed PatternType = "PREFIXED"
)

// ACLResource names what an ACL protects. Type is in the form of the path:
// "Topic", "TransactionalId".
type ACLResource struct {
	Type    string
	Name    string
	Pattern PatternType
}

// ACLBootPaths returns the persistent nodes that an authorizer makes at start.
func ACLBootPaths() []string {
	var paths []string
	for _, root := range [...]string{ACLs, ExtendedACLs + "/prefixed"} {
		paths = append(paths, root)
		for _, t := range ResourceTypes() {
			paths = append(paths, root+"/"+t)
		}
	}
	return append(paths, ACLChanges, ExtendedACLChanges)
}

// ACLTypePath is the parent of all resources of a type. The folder of a
// pattern is lower case.
func ACLTypePath(resourceType string, pattern PatternType) string {
	if pattern == Literal {
		return ACLs + "/" + resourceType
	}
	return ExtendedACLs + "/" + strings.ToLower(string(pattern)) + "/" + resourceType
}

// Path is the node that holds the resource's ACLs.
func (r ACLResource) Path() string { return ACLTypePath(r.Type, r.Pattern) + "/" + r.Name }

// ACLEntry is one rule.
type ACLEntry struct {
	Principal      string // "User:alice"
	PermissionType string // "Allow" or "Deny"
	Operation      string // "Read", "DescribeConfigs"
	Host           string // "*" for all
}

// EncodeACLs writes the data of an ACL node, version 1. A resource without
// rules has no node.
func EncodeACLs(entries []ACLEntry) []byte {
	dst := []byte(`{"version":1,"acls":[`)
	for i, e := range entries {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(append(dst, `{"principal":`...), e.Principal)
		dst = appendString(append(dst, `,"permissionType":`...), e.PermissionType)
		dst = appendString(append(dst, `,"operation":`...), e.Operation)
		dst = appendString(append(dst, `,"host":`...), e.Host)
		dst = append(dst, '}')
	}
	return append(dst, "]}"...)
}

// DecodeACLs reads version 1. Empty data means no rules.
func DecodeACLs(data []byte) ([]ACLEntry, error) {
	if len(data) == 0 {
		return nil, nil
	}
	const kind = "ACLs"
	p := parse(kind, data)
	var entries []ACLEntry
	var version int32
	var hasVersion bool
	for key := range p.fields() {
		switch string(key) {
		case "version":
			version, hasVersion = p.int32(), true
		case "acls":
			entries = nil
			for range p.elements() {
				entries = append(entries, p.aclEntry())
			}
		default:
			p.skip()
		}
	}
	p.require(hasVersion, "version")
	if p.err == nil && version != 1 {
		return nil, badVersion(kind, version)
	}
	if p.err != nil {
		return nil, p.err
	}
	return entries, nil
}

func (p *parser) aclEntry() (e ACLEntry) {
	for key := range p.fields() {
		switch string(key) {
		case "principal":
			e.Principal = p.string()
		case "permissionType":
			e.PermissionType = p.string()
		case "operation":
			e.Operation = p.string()
		case "host":
			e.Host = p.string()
		default:
			p.skip()
		}
	}
	p.require(e.Principal != "", "principal")
	p.require(e.PermissionType != "", "permissionType")
	p.require(e.Operation != "", "operation")
	p.require(e.Host != "", "host")
	return e
}

// ACLChangesPath is the parent of the notes on resources of a pattern.
func ACLChangesPath(pattern PatternType) string {
	if pattern == Literal {
		return ACLChanges
	}
	return ExtendedACLChanges
}

// EncodeACLChange writes a note: for literal resources the text TYPE:name,
// else JSON, version 1.
func EncodeACLChange(r ACLResource) []byte {
	t := resourceEnum(r.Type)
	if r.Pattern == Literal {
		return []byte(t + ":" + r.Name)
	}
	dst := appendString([]byte(`{"version":1,"resourceType":`), t)
	dst = appendString(append(dst, `,"name":`...), r.Name)
	dst = appendString(append(dst, `,"patternType":`...), string(r.Pattern))
	return append(dst, '}')
}

// DecodeACLChange reads a note of ACLChanges.
func DecodeACLChange(data []byte) (ACLResource, error) {
	const kind = "ACL change"
	if len(data) > MaxData {
		return ACLResource{}, parse(kind, data).err
	}
	t, name, ok := strings.Cut(string(data), ":")
	if t = resourcePath(t); !ok || t == "" {
		return ACLResource{}, &DecodeError{Kind: kind, Cause: ErrFormat, Detail: "not TYPE:name"}
	}
	return ACLResource{Type: t, Name: name, Pattern: Literal}, nil
}

// DecodeExtendedACLChange reads a note of ExtendedACLChanges.
func DecodeExtendedACLChange(data []byte) (ACLResource, error) {
	const kind = "ACL change"
	p := parse(kind, data)
	var r ACLResource
	var version int32
	var hasVersion, name bool
	for key := range p.fields() {
		switch string(key) {
		case "version":
			version, hasVersion = p.int32(), true
		case "resourceType":
			if r.Type = resourcePath(p.string()); r.Type == "" {
				p.fail("unknown resource type")
			}
		case "name":
			r.Name, name = p.string(), true
		case "patternType":
			switch r.Pattern = PatternType(p.string()); r.Pattern {
			case Literal, Prefixed:
			default:
				p.fail("unknown pattern type")
			}
		default:
			p.skip()
		}
	}
	p.require(hasVersion, "version")
	if p.err == nil && version != 1 {
		return ACLResource{}, badVersion(kind, version)
	}
	p.require(r.Type != "", "resourceType")
	p.require(name, "name")
	p.require(r.Pattern != "", "patternType")
	if p.err != nil {
		return ACLResource{}, p.err
	}
	return r, nil
}

// resourceEnum turns the form of the path into the enum's: TransactionalId
// into TRANSACTIONAL_ID.
func resourceEnum(t string) string {
	var dst []byte
	for i := range len(t) {
		if c := t[i]; i > 0 && c >= 'A' && c <= 'Z' {
			dst = append(dst, '_')
		}
		dst = append(dst, t[i])
	}
	return strings.ToUpper(string(dst))
}

// resourcePath takes the enum's form or the path's, in any case, and returns
// the path's; "" when there is no such type.
func resourcePath(t string) string {
	for _, known := range ResourceTypes() {
		if strings.EqualFold(t, known) || strings.EqualFold(t, resourceEnum(known)) {
			return known
		}
	}
	return ""
}

// ParseACLPath reads the path of a resource's node; else ErrPath.
func ParseACLPath(path string) (ACLResource, error) {
	parts := strings.SplitN(path, "/", 5)
	switch {
	case len(parts) >= 4 && "/"+parts[1] == ACLs:
		return ACLResource{parts[2], strings.Join(parts[3:], "/"), Literal}, nil
	case len(parts) == 5 && "/"+parts[1] == ExtendedACLs:
		return ACLResource{parts[3], parts[4], PatternType(strings.ToUpper(parts[2]))}, nil
	}
	return ACLResource{}, ErrPath
}

// SCRAMCredential is the value of a SCRAM-SHA-256 or SCRAM-SHA-512 key in
// /config/users/U; the texts are base64.
type SCRAMCredential struct {
	Salt, StoredKey, ServerKey string
	Iterations                 int
}

// String writes the credential as Kafka's ScramCredentialUtils does.
func (c SCRAMCredential) String() string {
	return "salt=" + c.Salt + ",stored_key=" + c.StoredKey + ",server_key=" + c.ServerKey +
		",iterations=" + strconv.Itoa(c.Iterations)
}

// ParseSCRAMCredential reads what String writes; the error is a DecodeError
// that never holds the credential's text.
func ParseSCRAMCredential(text string) (SCRAMCredential, error) {
	bad := func(detail string) (SCRAMCredential, error) {
		return SCRAMCredential{}, &DecodeError{Kind: "SCRAM credential", Cause: ErrFormat, Detail: detail}
	}
	var c SCRAMCredential
	fields := strings.Split(text, ",")
	if len(fields) != 4 {
		return bad("expected four fields")
	}
	for _, field := range fields {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "salt":
			c.Salt = value
		case "stored_key":
			c.StoredKey = value
		case "server_key":
			c.ServerKey = value
		case "iterations":
			n, err := strconv.ParseInt(value, 10, 32)
			if err != nil {
				return bad("iterations is no number")
			}
			c.Iterations = int(n)
		default:
			return bad("unknown field")
		}
	}
	if c.Salt == "" || c.StoredKey == "" || c.ServerKey == "" {
		return bad("a field is missing")
	}
	return c, nil
}
