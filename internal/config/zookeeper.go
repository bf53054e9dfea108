package config

import (
	"net"
	"strconv"
	"strings"
)

// Connect is a ZooKeeper connect string: servers, each host:port, and a chroot
// ("" for none, else it begins with a slash and does not end with one).
type Connect struct {
	Servers []string
	Chroot  string
}

// String returns the connect string.
func (c Connect) String() string { return strings.Join(c.Servers, ",") + c.Chroot }

const defaultZooKeeperPort = 2181

// parseConnect takes zookeeper.connect apart; reason says what is wrong with it.
func parseConnect(s string) (c Connect, reason string) {
	s = trim(s)
	if s == "" {
		return Connect{}, ""
	}
	servers := s
	if i := strings.IndexByte(s, '/'); i >= 0 {
		servers, c.Chroot = s[:i], s[i:]
	}
	if c.Chroot == "/" {
		c.Chroot = ""
	}
	if reason := badPath(c.Chroot); reason != "" {
		return Connect{}, "the chroot " + c.Chroot + " " + reason
	}
	for _, server := range splitList(servers) {
		host, port, reason := splitServer(server)
		if reason != "" {
			return Connect{}, reason
		}
		c.Servers = append(c.Servers, net.JoinHostPort(host, strconv.Itoa(port)))
	}
	if len(c.Servers) == 0 {
		return Connect{}, "there is no server in it; write host:port,host:port/chroot"
	}
	return c, ""
}

func splitServer(server string) (host string, port int, reason string) {
	host, text, err := net.SplitHostPort(server)
	if err != nil {
		// No port: ZooKeeper's own.
		return strings.Trim(server, "[]"), defaultZooKeeperPort, ""
	}
	port, err = strconv.Atoi(text)
	if err != nil || port < 1 || port > 65535 || host == "" {
		return "", 0, "the server " + server + " is not host:port with a port of 1 to 65535"
	}
	return host, port, ""
}

// badPath says why ZooKeeper would refuse a path (PathUtils.validatePath).
func badPath(path string) string {
	if path == "" {
		return ""
	}
	if strings.HasSuffix(path, "/") {
		return "must not end with a slash"
	}
	for part := range strings.SplitSeq(path[1:], "/") {
		switch part {
		case "":
			return "has two slashes in a row"
		case ".", "..":
			return "has a relative part, " + part
		}
	}
	for _, r := range path {
		if r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0 && r <= 0xffff {
			return "has a character that ZooKeeper does not allow, " + strconv.QuoteRune(r)
		}
	}
	return ""
}
