package keeper

import (
	"crypto/sha1"
	"encoding/base64"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"barnabas/internal/jute"
)

// A nil ACL stands for world:anyone with every permission, which nearly every
// node has.

// fixACL returns the ACL that a create or setACL stores: without duplicates,
// "auth" replaced by the digest identities of the connection
// (PrepRequestProcessor.fixupACL).
func fixACL(acl []jute.ACL, auth []jute.ID) ([]jute.ACL, jute.Error) {
	var fixed []jute.ACL
	for i, a := range acl {
		if slices.Contains(acl[:i], a) {
			continue
		}
		switch a.ID.Scheme {
		case "world":
			if a.ID.ID != "anyone" {
				return nil, jute.ErrInvalidACL
			}
			fixed = append(fixed, a)
		case "auth":
			before := len(fixed)
			for _, id := range auth {
				if id.Scheme == "digest" { // an address alone does not authenticate
					fixed = append(fixed, jute.ACL{Perms: a.Perms, ID: id})
				}
			}
			if len(fixed) == before {
				return nil, jute.ErrInvalidACL
			}
		case "digest":
			if !validDigest(a.ID.ID) {
				return nil, jute.ErrInvalidACL
			}
			fixed = append(fixed, a)
		case "ip":
			if _, ok := parseIP(a.ID.ID); !ok {
				return nil, jute.ErrInvalidACL
			}
			fixed = append(fixed, a)
		default:
			return nil, jute.ErrInvalidACL
		}
	}
	if len(fixed) == 0 {
		return nil, jute.ErrInvalidACL
	}
	if slices.Equal(fixed, jute.WorldACL()) {
		return nil, jute.OK
	}
	return fixed, jute.OK
}

// superID is the identity of a connection that showed the super user's password
// (DigestAuthenticationProvider.superDigest): nothing is refused to it.
var superID = jute.ID{Scheme: "super"}

// allowed says whether one of the identities has one of the permissions
// (ZooKeeperServer.checkACL).
func allowed(acl []jute.ACL, perm int32, auth []jute.ID) bool {
	if len(acl) == 0 || slices.Contains(auth, superID) {
		return true
	}
	for _, a := range acl {
		if a.Perms&perm == 0 {
			continue
		}
		if a.ID.Scheme == "world" && a.ID.ID == "anyone" {
			return true
		}
		for _, id := range auth {
			if id.Scheme != a.ID.Scheme {
				continue
			}
			if id.Scheme == "digest" && id.ID == a.ID.ID || id.Scheme == "ip" && matchIP(id.ID, a.ID.ID) {
				return true
			}
		}
	}
	return false
}

// aclOf returns an ACL as it is shown to clients.
func aclOf(acl []jute.ACL) []jute.ACL {
	if acl == nil {
		return jute.WorldACL()
	}
	return acl
}

// hideDigests returns the ACL as one sees it who may read but not administer
// the node: without the hashes.
func hideDigests(acl []jute.ACL) []jute.ACL {
	acl = slices.Clone(acl)
	for i, a := range acl {
		if user, _, ok := strings.Cut(a.ID.ID, ":"); ok && a.ID.Scheme == "digest" {
			acl[i].ID.ID = user + ":x"
		}
	}
	return acl
}

// digestID returns the identity of "user:password"
// (DigestAuthenticationProvider.generateDigest).
func digestID(auth []byte) jute.ID {
	user, _, _ := strings.Cut(string(auth), ":")
	sum := sha1.Sum(auth)
	return jute.ID{Scheme: "digest", ID: user + ":" + base64.StdEncoding.EncodeToString(sum[:])}
}

// validDigest counts the parts as Java's String.split does: empty ones at the
// end are dropped.
func validDigest(id string) bool {
	id = strings.TrimRight(id, ":")
	return strings.Count(id, ":") == 1
}

// parseIP reads an IPv4 address or a prefix of one, as ZooKeeper's ip scheme
// has them: "10.0.0.0/8".
func parseIP(s string) (netip.Prefix, bool) {
	addr, length, cut := strings.Cut(s, "/")
	parts := strings.Split(addr, ".")
	if len(parts) != 4 {
		return netip.Prefix{}, false
	}
	var b [4]byte
	for i, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil || v < 0 || v > 255 {
			return netip.Prefix{}, false
		}
		b[i] = byte(v)
	}
	bits := 32
	if cut {
		var err error
		if bits, err = strconv.Atoi(length); err != nil || bits < 0 || bits > 32 {
			return netip.Prefix{}, false
		}
	}
	return netip.PrefixFrom(netip.AddrFrom4(b), bits), true
}

func matchIP(addr, expression string) bool {
	prefix, ok := parseIP(expression)
	if !ok {
		return false
	}
	a, err := netip.ParseAddr(addr)
	return err == nil && prefix.Contains(a.Unmap())
}
