package record

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// setsForJava are sets that we make, by name.
func setsForJava(t *testing.T) map[string][]byte {
	t.Helper()
	sets := map[string][]byte{}
	text := bytes.Repeat([]byte("a line of text, not so random; "), 5000)
	for codec := None; codec <= Zstd; codec++ {
		for _, level := range []int{DefaultLevel, 1, 5, 9} {
			b := NewBuilder(BatchOptions{BaseOffset: 1 << 40, LeaderEpoch: 3, Codec: codec, Level: level,
				Producer: &Producer{ID: 1 << 33, Epoch: 7, Sequence: maxSequenceNumber - 1}, Transactional: true})
			for i := range 5 {
				b.Append(1700000000000-int64(i), []byte(fmt.Sprint("key", i)), text[:i*i*9000],
					Header{Key: "a", Value: []byte("b")}, Header{Key: "null"}, Header{Key: "", Value: []byte{}})
			}
			b.Append(NoTimestamp, nil, nil)
			batch, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			sets[fmt.Sprintf("v2-%s-%d", codec, level)] = batch
		}
		for magic := int8(0); magic < 2 && codec != Zstd; magic++ {
			var m []Message
			for i := range int64(5) {
				m = append(m, Message{Offset: 7 + i, Timestamp: 1700000000000 + i, Key: []byte("k"), Value: text[:i*i*9000]})
			}
			set, err := BuildMessageSet(magic, codec, m...)
			if err != nil {
				t.Fatal(err)
			}
			sets[fmt.Sprintf("v%d-%s", magic, codec)] = set
		}
	}
	for _, name := range fixtures(t, "v*.set") {
		for magic := int8(0); magic < 2; magic++ {
			if set, err := ConvertDown([]byte(read(t, name)), ConvertOptions{Magic: magic}); err == nil {
				sets[fmt.Sprintf("v%d-of-%s", magic, filepath.Base(name[:len(name)-4]))] = set
			}
		}
	}
	return sets
}

// TestWriteSetsForJava writes sets that we make to the folder of the environment
// variable RECORD_SETS. After "testdata/java/make.sh read FOLDER" has put what
// Kafka's classes read beside them, it compares. Without the variable it checks
// that we can read them, which shows less.
func TestWriteSetsForJava(t *testing.T) {
	dir := os.Getenv("RECORD_SETS")
	if dir != "" {
		if err := os.MkdirAll(filepath.Join(dir, "old"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	compared := 0
	for name, set := range setsForJava(t) {
		got, err := dump(set)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, folder := range []string{dir, filepath.Join(dir, "old")} {
			if dir == "" || folder != dir && name[:2] != "v0" {
				continue
			}
			want, err := os.ReadFile(filepath.Join(folder, name+".java.txt"))
			switch {
			case err != nil:
				if err := os.WriteFile(filepath.Join(folder, name+".set"), set, 0o644); err != nil {
					t.Fatal(err)
				}
			case folder == dir:
				firstDifference(t, got, string(want))
				compared++
			default:
				firstDifference(t, records(got), string(want))
				compared++
			}
		}
	}
	t.Logf("%d sets compared with what Java reads", compared)
}
