//go:build !linux

package server

import "net"

// lowMark does nothing: where there is SO_RCVLOWAT at all, pollers disregard it.
type lowMark struct{}

func (*lowMark) init(net.Conn) {}
func (*lowMark) set(int)       {}
func (*lowMark) high() bool    { return false }
