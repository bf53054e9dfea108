package storage

import "golang.org/x/sys/unix"

// openFilesLimit is half of what the process may have open.
func openFilesLimit() int {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return 512
	}
	return int(min(max(uint64(r.Cur)/2, 64), 65536))
}
