package zookeeper

import (
	"strings"
	"unicode/utf8"

	"barnabas/internal/jute"
)

// ValidatePath tells whether a server would take path as a node's
// (org.apache.zookeeper.common.PathUtils): it begins with '/', does not end
// with one, has no empty, "." or ".." part and no control, private or
// surrogate character. The error is jute.ErrBadArguments.
func ValidatePath(path string) error {
	if path == "/" {
		return nil
	}
	if path == "" || path[0] != '/' || !utf8.ValidString(path) {
		return jute.ErrBadArguments
	}
	for part := range strings.SplitSeq(path[1:], "/") {
		if part == "" || part == "." || part == ".." {
			return jute.ErrBadArguments
		}
		for _, r := range part {
			if r < 0x20 || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0 && r <= 0xffff {
				return jute.ErrBadArguments
			}
		}
	}
	return nil
}

// serverPath checks path and puts the chroot before it. A sequential node's
// path is a prefix, which may end with '/'.
func (c *Client) serverPath(path string, sequential bool) (string, error) {
	checked := path
	if sequential {
		checked += "0"
	}
	if err := ValidatePath(checked); err != nil {
		return "", err
	}
	return AddChroot(c.chroot, path), nil
}

// AddChroot puts a chroot, "" or one without '/' at its end, before a path.
func AddChroot(chroot, path string) string {
	if path == "/" && chroot != "" {
		return chroot
	}
	return chroot + path
}

func (c *Client) clientPath(path string) string { return CutChroot(c.chroot, path) }

// CutChroot takes a chroot off. A path outside of it, which no server should
// send, comes back whole.
func CutChroot(chroot, path string) string {
	rest, ok := strings.CutPrefix(path, chroot)
	switch {
	case !ok:
		return path
	case rest == "":
		return "/"
	case rest[0] != '/':
		return path
	}
	return rest
}

// parent returns the path above path; "/" for "/".
func parent(path string) string {
	i := strings.LastIndexByte(path, '/')
	if i <= 0 {
		return "/"
	}
	return path[:i]
}

// withParents returns the paths and all nodes above them, each once and after
// its parent, else in the given order; without "/".
func withParents(paths []string) []string {
	var all []string
	seen := map[string]bool{"/": true, "": true}
	for _, path := range paths {
		for i := 1; i <= len(path); i++ {
			if i < len(path) && path[i] != '/' {
				continue
			}
			if p := path[:i]; !seen[p] {
				seen[p] = true
				all = append(all, p)
			}
		}
	}
	return all
}
