package broker

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// sessionFile is where the broker keeps the id and password of its ZooKeeper
// session, in the first log dir, readable by its owner only: whoever has them
// can take the session over.
//
//	connect=127.0.0.1:2181/chroot
//	id=0x10000abcd0001
//	password=32 hex digits
const sessionFile = ".barnabas_session"

// lastSession is the ZooKeeper session of the broker's last run.
type lastSession struct {
	Connect  string // the connect string it belongs to; "" is the embedded server
	ID       int64
	Password []byte
}

// readSession returns the session of the last run, or false. What can't be
// read counts as none: the worst that follows is a wait for its expiry.
func readSession(dir string) (lastSession, bool) {
	b, err := os.ReadFile(filepath.Join(dir, sessionFile))
	if err != nil {
		return lastSession{}, false
	}
	var s lastSession
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "connect":
			s.Connect = value
		case "id":
			_, err = fmt.Sscanf(value, "0x%x", &s.ID)
		case "password":
			s.Password, err = hex.DecodeString(value)
		}
		if err != nil {
			return lastSession{}, false
		}
	}
	return s, s.ID != 0 && len(s.Password) > 0
}

// writeSession keeps s for the next run. It is not synced: after lost power the
// file may be gone, and the broker then waits for the session to expire.
func writeSession(dir string, s lastSession) error {
	text := fmt.Sprintf("connect=%s\nid=0x%x\npassword=%s\n", s.Connect, uint64(s.ID), hex.EncodeToString(s.Password))
	temporary := filepath.Join(dir, sessionFile+".tmp")
	if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(dir, sessionFile))
}

// forgetSession removes the file after the session was closed.
func forgetSession(dir string) error {
	if _, ok := readSession(dir); !ok { // nothing that the next run would take
		return nil
	}
	if err := os.Remove(filepath.Join(dir, sessionFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
