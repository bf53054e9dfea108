package server

import (
	"net"

	"golang.org/x/sys/unix"
)

// easeLoopback takes the congestion control from a listener that only this
// machine can reach, as far as one can: reno, which is always there and keeps
// out of the way where nothing is lost. A system whose default is bbr paces
// each 64 KiB by a timer, on the loopback interface too, which costs more than
// sending them. Connections inherit it; one of another machine is not touched.
func easeLoopback(l net.Listener) {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return
	}
	if a, ok := tcp.Addr().(*net.TCPAddr); !ok || !a.IP.IsLoopback() {
		return
	}
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(func(socket uintptr) {
			_ = unix.SetsockoptString(int(socket), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno") // without it, it is as it was
		})
	}
}
