//go:build !linux && !darwin

package api

// diskSpace is not known here.
func diskSpace(string) (total, usable int64, ok bool) { return 0, 0, false }
