//go:build !linux

package server

import "net"

// easeLoopback does nothing: the default is not to be improved there.
func easeLoopback(net.Listener) {}
