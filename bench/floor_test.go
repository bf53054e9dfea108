package bench

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"barnabas/internal/poll"
	"barnabas/internal/vfs"
	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sys/unix"
)

// What a broker's work costs without a broker: each floor is a process of its
// own, which is this program, with floorOf and floorAt in its environment.

// floorOf names the floor that this program is to be instead of running tests,
// and floorAt its address. floorFile is a file that it reads or writes.
const (
	floorOf   = "BARNABAS_BENCH_FLOOR"
	floorAt   = "BARNABAS_BENCH_FLOOR_AT"
	floorFile = "BARNABAS_BENCH_FLOOR_FILE"
)

var floors = map[string]func(net.Listener) error{"send": sendFile, "receive": receiveFile, "answer": answerMembers}

// runFloor is the whole program, if floorOf says so.
func runFloor() {
	floor := floors[os.Getenv(floorOf)]
	if floor == nil {
		return
	}
	l, err := net.Listen("tcp", os.Getenv(floorAt))
	if err == nil {
		err = floor(l)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// bare is a running floor.
type bare struct {
	addr string
	pid  int
}

func startFloor(t *testing.T, name, file string) bare {
	addr := "127.0.0.1:" + real.FreePort(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), floorOf+"="+name, floorAt+"="+addr, floorFile+"="+file)
	p := real.Start(t, name, cmd)
	real.Until(t, time.Minute, "the floor", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return bare{addr, p.PID()}
}

func (b bare) dial(t *testing.T) net.Conn {
	c, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sendFile sends floorFile to whoever connects, as many bytes at a time as each 8
// bytes that come say, in the way in which Go sends files: no broker whose
// records go from the file to the socket costs less.
func sendFile(l net.Listener) error {
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		return err
	}
	_ = raw.Control(func(socket uintptr) { // as a broker does on the loopback interface
		err = unix.SetsockoptString(int(socket), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno")
	})
	for err == nil {
		err = sendFileOnce(l)
	}
	return err
}

func sendFileOnce(l net.Listener) error {
	c, err := l.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	f, err := os.Open(os.Getenv(floorFile))
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

// take has the whole of a file sent, in pieces of the size of a fetch.
func (b bare) take(t *testing.T, size int) {
	c := b.dial(t)
	defer c.Close()
	for left := size; left > 0; {
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

// batchPiece is what receiveFile takes, writes and answers at a time.
const batchPiece = 1 << 20

// receiveFile writes what comes to floorFile, and answers each piece with 8
// bytes: no broker that copies records from the socket to the file costs less.
func receiveFile(l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		f, err := vfs.OS.OpenFile(os.Getenv(floorFile), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		piece := make([]byte, batchPiece)
		const ahead = 4 * batchPiece // as a broker has its room on the disk before the records
		for at := int64(0); ; at += int64(len(piece)) {
			if at%ahead == 0 {
				if err := f.Reserve(at, ahead); err != nil {
					return err
				}
			}
			if _, err := io.ReadFull(c, piece); err != nil {
				break // that was all
			}
			if _, err := f.WriteAt(piece, at); err != nil {
				return err
			}
			if _, err := c.Write(piece[:8]); err != nil {
				return err
			}
		}
		f.Close()
		c.Close()
	}
}

// give sends so many bytes, a piece at a time; one is on its way while another
// is written, as the records of a producer are.
func (b bare) give(t *testing.T, size int) {
	c := b.dial(t)
	defer c.Close()
	piece, answer := make([]byte, batchPiece), make([]byte, 8)
	pieces := size / len(piece)
	for i := range pieces + 1 {
		if i < pieces {
			if _, err := c.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
		if i > 0 {
			if _, err := io.ReadFull(c, answer); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// answerMembers gives each Heartbeat and OffsetCommit of a group's members an
// answer that says nothing went wrong, and does nothing else: one thread waits for
// all connections and makes three system calls for each request.
func answerMembers(l net.Listener) error {
	epoll, err := unix.EpollCreate1(0)
	if err != nil {
		return err
	}
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			fd, err := poll.Take(nc.(*net.TCPConn))
			if err == nil {
				err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}()
	events, request, answer := make([]unix.EpollEvent, 128), make([]byte, 4096), make([]byte, 0, 256)
	for {
		n, err := unix.EpollWait(epoll, events, -1)
		if err != nil && err != unix.EINTR {
			return err
		}
		for _, e := range events[:max(n, 0)] {
			fd := int(e.Fd)
			if _, err := poll.Read(fd, request); err != nil {
				poll.Close(fd)
			} else if _, err := poll.Write(fd, appendAnswer(answer[:0], request)); err != nil {
				return err
			}
		}
	}
}

// bodies of the answers to Heartbeat v3 and to OffsetCommit v6 of one partition.
var heartbeatBody, commitBody = make([]byte, 4+2), (&kmsg.OffsetCommitResponse{Version: 6,
	Topics: []kmsg.OffsetCommitResponseTopic{{Topic: "topic", Partitions: make([]kmsg.OffsetCommitResponseTopicPartition, 1)}}}).AppendTo(nil)

// appendAnswer appends the answer to a request.
func appendAnswer(answer, request []byte) []byte {
	body := heartbeatBody
	if binary.BigEndian.Uint16(request[4:]) == uint16(kmsg.OffsetCommit) {
		body = commitBody
	}
	answer = binary.BigEndian.AppendUint32(answer, uint32(4+len(body)))
	return append(append(answer, request[8:12]...), body...)
}
