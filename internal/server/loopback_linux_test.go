package server

import (
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// accepted returns the congestion control of a connection to a listener.
func accepted(t *testing.T, address string) string {
	t.Helper()
	l, err := net.Listen("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	easeLoopback(l)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	client, err := net.Dial("tcp4", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var name string
	raw.Control(func(socket uintptr) {
		name, err = unix.GetsockoptString(int(socket), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimRight(name, "\x00")
}

func TestOnlyLoopbackListenersChooseTheirCongestionControl(t *testing.T) {
	b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control")
	if err != nil {
		t.Skip("this kernel does not tell its congestion control: ", err)
	}
	if got := accepted(t, "127.0.0.1:0"); got != "reno" {
		t.Errorf("on loopback: %s", got)
	}
	if got, want := accepted(t, "0.0.0.0:0"), strings.TrimSpace(string(b)); got != want {
		t.Errorf("on all interfaces: %s, the system's is %s", got, want)
	}
}
