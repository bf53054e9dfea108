package server

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// lowMark is a socket's SO_RCVLOWAT: how many bytes must have come before a
// goroutine that waits to read is woken. The kernel caps it at half of what the
// receive buffer may grow to, and wakes earlier when the buffer is full.
type lowMark struct {
	raw  syscall.RawConn // nil: not a TCP connection, there is none
	now  int
	call func(socket uintptr)
}

func (l *lowMark) init(nc net.Conn) {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return
	}
	if raw, err := tcp.SyscallConn(); err == nil {
		l.raw, l.now = raw, 1
		l.call = func(socket uintptr) { _ = unix.SetsockoptInt(int(socket), unix.SOL_SOCKET, unix.SO_RCVLOWAT, l.now) }
	}
}

// set asks for n bytes at a time.
func (l *lowMark) set(n int) {
	if l.raw != nil && n != l.now {
		l.now = n
		_ = l.raw.Control(l.call) // an error ends the read that follows
	}
}

// high tells whether bytes may have come that nobody was woken for.
func (l *lowMark) high() bool { return l.now > 1 }
