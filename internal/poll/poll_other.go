//go:build !linux

package poll

import (
	"errors"
	"net"
)

// Poller calls functions when descriptors can be read; not on this system.
type Poller struct{}

// New starts a Poller. The error is errors.ErrUnsupported where there is none.
func New() (*Poller, error) { return nil, errors.ErrUnsupported }

// Add has f called on the poller's goroutine.
func (*Poller) Add(int, func()) error { return errors.ErrUnsupported }

// Remove ends the watching of a descriptor.
func (*Poller) Remove(int) {}

// Post has f called on the poller's goroutine.
func (*Poller) Post(func()) bool { return false }

// Close ends the goroutine.
func (*Poller) Close() {}

// Take takes a connection out of Go's poller.
func Take(*net.TCPConn) (int, error) { return -1, errors.ErrUnsupported }

// Give makes a connection of a descriptor.
func Give(int) (*net.TCPConn, error) { return nil, errors.ErrUnsupported }

// Read reads what a socket has.
func Read(int, []byte) (int, error) { return 0, errors.ErrUnsupported }

// Write writes as much of b as the socket takes.
func Write(int, []byte) (int, error) { return 0, errors.ErrUnsupported }

// Hangup ends a connection's both directions.
func Hangup(int) {}

// Close closes a descriptor.
func Close(int) {}
