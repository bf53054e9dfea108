package zookeeper

import (
	"io"
	"net"
	"sync"
	"testing"
)

// proxy forwards TCP connections to a server, until it is told to cut them.
type proxy struct {
	l      net.Listener
	target string
	wg     sync.WaitGroup

	mu struct {
		sync.Mutex
		conns  map[net.Conn]struct{} // both ends of all that are open
		refuse bool
	}
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, target: target}
	p.mu.conns = map[net.Conn]struct{}{}
	p.wg.Add(1)
	go p.accept()
	t.Cleanup(func() {
		l.Close()
		p.refuse(true)
		p.wg.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.l.Addr().String() }

func (p *proxy) accept() {
	defer p.wg.Done()
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil || !p.keep(client, server) {
			client.Close()
			if err == nil {
				server.Close()
			}
			continue
		}
		p.wg.Add(2)
		go p.forward(client, server)
		go p.forward(server, client)
	}
}

func (p *proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.refuse {
		return false
	}
	for _, c := range conns {
		p.mu.conns[c] = struct{}{}
	}
	return true
}

func (p *proxy) forward(from, to net.Conn) {
	defer p.wg.Done()
	io.Copy(to, from)
	from.Close()
	to.Close()
	p.mu.Lock()
	delete(p.mu.conns, from)
	p.mu.Unlock()
}

// cut closes all connections; new ones are made.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.mu.conns {
		c.Close()
	}
}

// refuse cuts, and takes no new connections until refuse(false).
func (p *proxy) refuse(on bool) {
	p.mu.Lock()
	p.mu.refuse = on
	p.mu.Unlock()
	if on {
		p.cut()
	}
}
