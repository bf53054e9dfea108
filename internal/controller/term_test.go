package controller

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"

	"barnabas/internal/controller/core"
	"barnabas/internal/jute"
	"barnabas/internal/znode"
	"barnabas/internal/zookeeper"
)

// refuse is a ZooKeeper that answers everything with an error.
func refuse(nc net.Conn, answer jute.Error) {
	frame := func() []byte {
		var prefix [4]byte
		if _, err := io.ReadFull(nc, prefix[:]); err != nil {
			return nil
		}
		b := make([]byte, binary.BigEndian.Uint32(prefix[:]))
		if _, err := io.ReadFull(nc, b); err != nil {
			return nil
		}
		return b
	}
	send := func(r jute.Record) {
		b := jute.Marshal(r)
		_, _ = nc.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	}
	defer nc.Close()
	frame()
	send(&jute.ConnectResponse{Timeout: 30000, SessionID: 7, Password: make([]byte, jute.PasswordSize)})
	for b := frame(); b != nil; b = frame() {
		var h jute.RequestHeader
		if jute.Unmarshal(b[:8], &h) != nil {
			return
		}
		send(&jute.ReplyHeader{Xid: h.Xid, Err: answer})
	}
}

// A broker whose registration can't be read just now is not dead.
func TestAReadThatIsRefusedIsNotAMissingNode(t *testing.T) {
	for _, answer := range []jute.Error{jute.ErrNoNode, jute.ErrNoAuth, jute.ErrThrottledOp, jute.ErrSystemError} {
		c, err := zookeeper.New(zookeeper.Options{Connect: "refuses:1", Dial: func(context.Context, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go refuse(ours, answer)
			return theirs, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		results, err := readAll(t.Context(), c, []core.Read{{Kind: core.ReadData, Path: znode.BrokerPath(1), Watch: true}})
		c.Close()
		if own := answer == jute.ErrNoNode || answer == jute.ErrNoAuth; own && (err != nil || results[0].Err != answer) || !own && !errors.Is(err, answer) {
			t.Errorf("%v: %+v, %v", answer, results, err)
		}
	}
}
