package tool

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Folders that Apache Kafka wrote are found good, and each damage is named.
func TestCheckLogNamesDamages(t *testing.T) {
	check := func(dir string) (string, error) {
		var out bytes.Buffer
		err := checkLogCommand().Execute(&Call{Context: t.Context(), Out: &out, Err: &out}, []string{"--log-dirs", dir})
		return out.String(), err
	}
	for _, folder := range []string{"kafka-2.8.2", "kafka-3.9.1"} {
		if out, err := check("../storage/testdata/" + folder); err != nil || !strings.Contains(out, ": 0 problems") {
			t.Fatal(folder, out, err)
		}
	}
	for name, do := range map[string]func(b []byte) []byte{
		"00000000000000000000.log":      func(b []byte) []byte { b[200] ^= 1; return b },
		"00000000000000000040.log":      func(b []byte) []byte { return b[:len(b)-4] },
		"00000000000000000000.index":    func(b []byte) []byte { b[7] ^= 1; return b },
		"00000000000000000096.snapshot": func(b []byte) []byte { b[3] ^= 1; return b },
	} {
		dir := filepath.Join(t.TempDir(), "mixed-0")
		if err := os.CopyFS(dir, os.DirFS("../storage/testdata/kafka-3.9.1/mixed-0")); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), do(b), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := check(filepath.Dir(dir)); err != ErrReported || !strings.Contains(out, name+": ") {
			t.Fatal(name, out, err)
		}
	}
}
