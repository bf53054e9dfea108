package tool

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"barnabas/test/real"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The time without partitions is that of every rebalance, and of the start.
func TestJoinsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &joins{since: time.Now()}
		after := func(d time.Duration, happens func(), want time.Duration) {
			t.Helper()
			<-time.After(d)
			happens()
			if got := j.total(); got != want {
				t.Errorf("%v, want %v", got, want)
			}
		}
		assigned, revoked := func() { j.assigned(t.Context(), nil, nil) }, func() { j.revoked(t.Context(), nil, nil) }
		after(3*time.Second, assigned, 3*time.Second)
		after(10*time.Second, revoked, 3*time.Second)
		after(time.Second, revoked, 3*time.Second) // what is lost after that
		after(time.Second, assigned, 5*time.Second)
		after(time.Second, assigned, 5*time.Second) // more, of a cooperative group
		var both sync.WaitGroup
		both.Go(revoked)
		both.Go(func() { j.total() })
		both.Wait()
	})
}

// A line takes off what its own window lost to rebalances.
func TestPerfLinesAreOfTheirWindow(t *testing.T) {
	var out bytes.Buffer
	c := &Call{Out: &out, Args: &Args{}}
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	total := consumed{300, 3 << 20, 3 * time.Second}
	for _, err := range []error{
		c.printPerf("", start.Add(5*time.Second), start.Add(10*time.Second), consumed{100, 1 << 20, 0}, total),
		c.printPerf("", start.Add(5*time.Second), start.Add(10*time.Second), consumed{100, 1 << 20, time.Second}, total),
		c.printPerf("start, ", start, start.Add(10*time.Second), total, total),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const want = "2026-01-02 03:04:15:000, 0, 3.0000, 0.2000, 300, 20.0000, 0, 5000, 0.2000, 20.0000\n" +
		"2026-01-02 03:04:15:000, 0, 3.0000, 0.2000, 300, 20.0000, 1000, 4000, 0.2500, 25.0000\n" +
		"start, 2026-01-02 03:04:15:000, 3.0000, 0.3000, 300, 30.0000, 3000, 7000, 0.4286, 42.8571\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// refusedCertificate is how a client's read ends when the server takes none of
// its certificates.
func refusedCertificate(t *testing.T) error {
	t.Helper()
	pem := real.PEM(t)
	pair, err := tls.LoadX509KeyPair(pem.Server, pem.Server)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var served sync.WaitGroup
	defer served.Wait()
	served.Go(func() {
		nc, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer nc.Close()
		if err := nc.(*tls.Conn).Handshake(); err == nil {
			t.Error("the server took a client without a certificate")
		}
		_, _ = io.Copy(io.Discard, nc.(*tls.Conn).NetConn()) // or the close could reset the connection before the alert is read
	})
	nc, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err = nc.Read(make([]byte, 1)); err == nil {
		t.Fatal("the server answered a client without a certificate")
	}
	return err
}

// What a member gets over by joining its group again, and a broker that is away,
// is no reason to end.
func TestWhatAConsumerGetsOverIsNoEnd(t *testing.T) {
	for err, want := range map[error]bool{
		&kgo.ErrGroupSession{Err: kerr.UnknownMemberID}: true, kerr.IllegalGeneration: true, kerr.NotLeaderForPartition: true,
		kerr.InconsistentGroupProtocol: false, &kgo.ErrGroupSession{Err: kerr.GroupAuthorizationFailed}: false,
		&kgo.ErrGroupSession{Err: fmt.Errorf("unable to dial: %w", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})}: true,
		&kgo.ErrGroupSession{Err: io.ErrUnexpectedEOF}:                                                                   true, &kgo.ErrFirstReadEOF{}: true, context.DeadlineExceeded: true, &kgo.ErrDataLoss{}: true,
		refusedCertificate(t): false, &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}: false, errors.New("a broken batch"): false,
	} {
		if got := passing(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}
