package poll

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// batch is how many connections are asked about at once.
const batch = 128

// Poller calls functions when descriptors can be read. Add, Post and Close may
// be called from any goroutine.
type Poller struct {
	epoll *os.File
	raw   syscall.RawConn
	fd    int // of epoll
	event int // an eventfd in the set: something was posted
	done  chan struct{}

	// Of the poller's goroutine.
	ready  [batch]unix.EpollEvent
	n      int
	once   func(fd uintptr) bool
	called [batch]func()

	mu struct {
		sync.Mutex
		call   []func() // by descriptor
		posted []func()
		closed bool
	}
}

// New starts a Poller. The error is errors.ErrUnsupported where there is none.
func New() (*Poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // or Go would not poll it
		return nil, errors.Join(err, unix.Close(fd))
	}
	p := &Poller{epoll: os.NewFile(uintptr(fd), "epoll"), fd: fd, done: make(chan struct{})}
	p.once = p.poll
	if p.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, errors.Join(fmt.Errorf("eventfd: %w", err), p.epoll.Close())
	}
	p.raw, err = p.epoll.SyscallConn()
	if err == nil {
		err = p.watch(p.event)
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(p.event), p.epoll.Close())
	}
	go p.run()
	return p, nil
}

func (p *Poller) watch(fd int) error {
	e := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
	return unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &e)
}

// Add has f called on the poller's goroutine for as long as the descriptor has
// bytes, an end or an error to be read. f must not wait for anything.
func (p *Poller) Add(fd int, f func()) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		return ErrClosed
	}
	for len(p.mu.call) <= fd {
		p.mu.call = append(p.mu.call, nil)
	}
	p.mu.call[fd] = f
	if err := p.watch(fd); err != nil {
		p.mu.call[fd] = nil
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// Remove ends the watching of a descriptor. It is called on the poller's
// goroutine: by the function that Add was given, or by one of Post.
func (p *Poller) Remove(fd int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.call[fd] = nil
	_ = unix.EpollCtl(p.fd, unix.EPOLL_CTL_DEL, fd, nil) // it was there, or the descriptor is bad, which its owner sees
}

// Post has f called on the poller's goroutine. It says false when the poller
// was closed and f will not be called.
func (p *Poller) Post(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		return false
	}
	if p.mu.posted = append(p.mu.posted, f); len(p.mu.posted) == 1 { // or it is awake already
		p.wake()
	}
	return true
}

func (p *Poller) wake() {
	one := [8]byte{1}
	_, _ = unix.Write(p.event, one[:]) // full: then it wakes anyway
}

// Close ends the goroutine after what was posted. What is still watched is left
// to its owner.
func (p *Poller) Close() {
	p.mu.Lock()
	first := !p.mu.closed
	p.mu.closed = true
	if first {
		p.wake()
	}
	p.mu.Unlock()
	<-p.done
	if first {
		_ = p.epoll.Close()
		_ = unix.Close(p.event)
	}
}

func (p *Poller) run() {
	defer close(p.done)
	for {
		if err := p.raw.Read(p.once); err != nil {
			panic("poll: the epoll descriptor does not wait: " + err.Error())
		}
		p.mu.Lock()
		n, posted, closed := 0, p.mu.posted, p.mu.closed
		for i := range p.ready[:p.n] {
			fd := int(p.ready[i].Fd)
			if fd == p.event {
				var count [8]byte
				_, _ = unix.Read(fd, count[:])
			} else if f := p.mu.call[fd]; f != nil {
				p.called[n] = f
				n++
			}
		}
		p.mu.posted = nil
		p.mu.Unlock()
		for i := range n {
			p.called[i]()
			p.called[i] = nil
		}
		for _, f := range posted {
			f()
		}
		if closed {
			return
		}
	}
}

// poll asks which descriptors are ready. None of the system calls below waits,
// so that they need not be announced to the scheduler.
func (p *Poller) poll(uintptr) bool {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(unsafe.Pointer(&p.ready)), batch, 0, 0, 0)
	if errno != 0 {
		n = 0
	}
	p.n = int(n)
	return n > 0
}

// Take takes a connection out of Go's poller. It is closed as far as Go knows,
// and the caller owns the descriptor. After an error it is as it was.
func Take(nc *net.TCPConn) (fd int, err error) {
	raw, err := nc.SyscallConn()
	if err != nil {
		return -1, err
	}
	var errno error
	err = raw.Control(func(s uintptr) { fd, errno = unix.FcntlInt(s, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(err, errno); err != nil {
		return -1, err
	}
	_ = nc.Close()
	return fd, nil
}

// Give makes a connection of a descriptor, which is closed if it can't.
func Give(fd int) (*net.TCPConn, error) {
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	nc, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return nc.(*net.TCPConn), nil
}

// Read reads what a socket has, at most len(b) bytes. The errors are io.EOF,
// ErrAgain, and the system's.
func Read(fd int, b []byte) (int, error) {
	n, err := transfer(unix.SYS_RECVFROM, fd, b, unix.MSG_DONTWAIT)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// Write writes as much of b as the socket takes, which may be less. The errors
// are ErrAgain, when it takes nothing, and the system's.
func Write(fd int, b []byte) (int, error) {
	return transfer(unix.SYS_SENDTO, fd, b, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

func transfer(call uintptr, fd int, b []byte, flags uintptr) (int, error) {
	for {
		n, _, errno := unix.RawSyscall6(call, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), flags, 0, 0)
		switch {
		case errno == 0:
			return int(n), nil
		case errno == unix.EAGAIN:
			return 0, ErrAgain
		case errno != unix.EINTR:
			return 0, errno
		}
	}
}

// Hangup ends a connection's both directions, so that it can be read to its
// end. The descriptor stays open.
func Hangup(fd int) { _ = unix.Shutdown(fd, unix.SHUT_RDWR) }

// Close closes a descriptor.
func Close(fd int) { _ = unix.Close(fd) }
