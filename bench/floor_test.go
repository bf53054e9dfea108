package bench

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"barnabas/test/real"

	"golang.org/x/sys/unix"
)

// senderOf names the file that this program is to send instead of running
// tests, and senderAt the address.
const senderOf, senderAt = "BARNABAS_BENCH_SENDER_OF", "BARNABAS_BENCH_SENDER_AT"

// sendFile sends a file to whoever connects, as many bytes at a time as each 8
// bytes that come say, in the way in which Go sends files: no broker whose
// records go from the file to the socket costs less.
func sendFile(path, addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		return err
	}
	_ = raw.Control(func(socket uintptr) { // as a broker does on the loopback interface
		err = unix.SetsockoptString(int(socket), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno")
	})
	for err == nil {
		err = sendFileOnce(l, path)
	}
	return err
}

func sendFileOnce(l net.Listener, path string) error {
	c, err := l.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		var n [8]byte
		if _, err := io.ReadFull(c, n[:]); err != nil {
			return nil // it has all
		}
		if _, err := io.CopyN(c, f, int64(binary.BigEndian.Uint64(n[:]))); err != nil {
			return err
		}
	}
}

// bareSender is a running sendFile.
type bareSender struct {
	addr string
	pid  int
	size int // of the file
}

// startSender has the first segment of a partition sent by another process.
func startSender(t *testing.T, partition string) bareSender {
	path := filepath.Join(partition, "00000000000000000000.log")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	addr := "127.0.0.1:" + real.FreePort(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), senderOf+"="+path, senderAt+"="+addr)
	p := real.Start(t, "sender", cmd)
	real.Until(t, time.Minute, "the sender", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return bareSender{addr, p.PID(), int(info.Size())}
}

// receive takes the whole file in pieces of the size of a fetch.
func (s bareSender) receive(t *testing.T) {
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for left := s.size; left > 0; {
		piece := make([]byte, min(left, fetchPiece))
		if _, err := c.Write(binary.BigEndian.AppendUint64(nil, uint64(len(piece)))); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, piece); err != nil {
			t.Fatal(err)
		}
		left -= len(piece)
	}
}
