package keeper

import "strings"

// validPath says whether ZooKeeper takes path (PathUtils.validatePath): it
// begins with / and does not end with one, no name is empty, "." or "..", and
// no character is a control, a surrogate, of the private use area below U+F900
// or of U+FFF0 to U+FFFF. Bytes that are not UTF-8 read as U+FFFD and fall
// under the last.
func validPath(path string) bool {
	if path == "/" {
		return true
	}
	if path == "" || path[0] != '/' || path[len(path)-1] == '/' {
		return false
	}
	for _, r := range path {
		switch {
		case r <= 0x1f, r >= 0x7f && r <= 0x9f, r >= 0xd800 && r <= 0xf8ff, r >= 0xfff0 && r <= 0xffff, r > 0xffff:
			// Java walks UTF-16 units: anything above U+FFFF is a pair of
			// surrogates there.
			return false
		}
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return false
		}
	}
	return true
}

// parentOf returns the path up to the last slash, "/" for a child of the root,
// and the name after it. ok is false when there is no slash at all.
func parentOf(path string) (parent, name string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	switch i {
	case -1:
		return "", "", false
	case 0:
		return "/", path[1:], true
	}
	return path[:i], path[i+1:], true
}

// The nodes that every tree has and that nobody deletes (ZooDefs, Quotas).
const (
	rootPath      = "/"
	zookeeperPath = "/zookeeper"
	quotaPath     = "/zookeeper/quota"
	configPath    = "/zookeeper/config"
)

func specialPath(path string) bool {
	return path == rootPath || path == zookeeperPath || path == quotaPath || path == configPath
}
