//go:build linux || darwin

package api

import "golang.org/x/sys/unix"

// diskSpace returns the bytes of the file system that holds path, and how many
// of them this process may still use.
func diskSpace(path string) (total, usable int64, ok bool) {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil {
		return 0, 0, false
	}
	size := int64(s.Bsize)
	return int64(s.Blocks) * size, int64(s.Bavail) * size, true
}
