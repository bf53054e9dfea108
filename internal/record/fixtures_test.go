package record

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"barnabas/internal/wire"
)

// dump writes a set as testdata/java/Dump.java does.
func dump(set []byte) (string, error) {
	var out strings.Builder
	s := Split(set)
	for s.Next() {
		b := s.Batch()
		if err := b.Check(); err != nil {
			return out.String(), err
		}
		fmt.Fprintf(&out, "E %d %s %d %s %d", b.Magic(), b.Codec(), b.LastOffset(), b.TimestampType(), b.MaxTimestamp())
		if b.Magic() == 2 {
			fmt.Fprintf(&out, " %d %d %d %d %d %d %t %t %d", b.BaseOffset(), b.LeaderEpoch(), b.ProducerID(),
				b.ProducerEpoch(), b.BaseSequence(), b.LastSequence(), b.Transactional(), b.Control(), b.Count())
		}
		out.WriteByte('\n')
		if err := b.Each(0, func(r *Record) error { dumpRecord(&out, r); return nil }); err != nil {
			return out.String(), err
		}
	}
	return out.String(), s.Err()
}

func dumpRecord(out *strings.Builder, r *Record) {
	fmt.Fprintf(out, "R %d %d %d %s %s", r.Offset, r.Timestamp, r.Sequence, dumpBytes(r.Key), dumpBytes(r.Value))
	for h := r.Headers; ; {
		k, v, ok := h.Next()
		if !ok {
			break
		}
		fmt.Fprintf(out, " %s=%s", k, dumpBytes(v))
	}
	out.WriteByte('\n')
}

func dumpBytes(p []byte) string {
	switch {
	case p == nil:
		return "null"
	case len(p) > 40:
		return fmt.Sprintf("#%d:%x", len(p), crc32.ChecksumIEEE(p))
	}
	return "'" + hex.EncodeToString(p) + "'"
}

// records returns the record lines of a dump.
func records(dump string) string {
	var out strings.Builder
	for line := range strings.Lines(dump) {
		if strings.HasPrefix(line, "R ") {
			out.WriteString(line)
		}
	}
	return out.String()
}

func fixtures(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata/sets", pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("no fixtures %s: %v", pattern, err)
	}
	return names
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func firstDifference(t *testing.T, got, want string) {
	t.Helper()
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		var a, b string
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			t.Errorf("line %d:\n got %.300s\nwant %.300s", i+1, a, b)
			return
		}
	}
}

func TestSetsOfKafkaReadAsKafkaReadsThem(t *testing.T) {
	for _, name := range fixtures(t, "v*.set") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			got, err := dump([]byte(read(t, name)))
			if err != nil {
				t.Fatal(err)
			}
			firstDifference(t, got, read(t, strings.TrimSuffix(name, ".set")+".txt"))
		})
	}
}

func TestSetsOfKafka08ReadAsKafka08ReadsThem(t *testing.T) {
	for _, name := range fixtures(t, "old-*.set") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			got, err := dump([]byte(read(t, name)))
			if err != nil {
				t.Fatal(err)
			}
			firstDifference(t, records(got), read(t, strings.TrimSuffix(name, ".set")+".txt"))
		})
	}
}

func TestConvertDownMakesWhatKafkaMakes(t *testing.T) {
	for _, name := range fixtures(t, "v*.down*.txt") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			parts := strings.Split(strings.TrimSuffix(filepath.Base(name), ".txt"), ".down")
			to, first, _ := strings.Cut(parts[1], "-")
			magic, _ := strconv.Atoi(to)
			firstOffset, _ := strconv.ParseInt(first, 10, 64)
			set := read(t, filepath.Join("testdata/sets", parts[0]+".set"))
			out, err := ConvertDown([]byte(set), ConvertOptions{Magic: int8(magic), FirstOffset: firstOffset})
			want := read(t, name)
			if code, ok := strings.CutPrefix(want, "ERROR "); ok {
				if got := fmt.Sprintf("%d\n", CodeOf(err)); got != code {
					t.Fatalf("error %v, want code %s", err, code)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := dump(out)
			if err != nil {
				t.Fatal(err)
			}
			firstDifference(t, got, want)
		})
	}
}

// A validateCase is one line of testdata/validate/cases.txt.
type validateCase struct {
	mutation   string
	options    ValidateOptions
	input      []byte
	code       wire.Code
	records    int
	maxTime    int64
	text       string
	sourceLine int
}

const validateNow = 1700000000000

func validateCases(t *testing.T) []validateCase {
	t.Helper()
	f, err := os.Open("testdata/validate/cases.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []validateCase
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		w := strings.Split(lines.Text(), " ")
		number := func(i int) int64 {
			v, err := strconv.ParseInt(w[i], 10, 64)
			if err != nil {
				t.Fatalf("line %d: %v", n, err)
			}
			return v
		}
		c := validateCase{mutation: w[0], code: wire.Code(number(9)), records: int(number(10)),
			maxTime: number(11), text: w[12], sourceLine: n}
		c.options = ValidateOptions{Version: int16(number(1)), Compacted: w[2] == "true", Now: validateNow,
			BeforeMaxMs: number(4), AfterMaxMs: number(5), MaxBatchBytes: int(number(7))}
		if w[3] == "LogAppendTime" {
			c.options.TimestampType = LogAppendTime
		}
		c.options.Codec, _ = ParseCodec(w[6])
		if c.input, err = hex.DecodeString(w[8][1:]); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// deliberate tells where we answer otherwise than Kafka 3.9.1, and why.
func (c *validateCase) deliberate(got wire.Code) bool {
	switch c.code {
	case wire.UnknownServerError:
		// Kafka's leader failed with an exception that it does not expect: an
		// unknown codec, a stream that does not decompress, a length that
		// overflows. We name what is wrong. (Recompressing a transactional batch
		// without a producer id fails so too, while storing it as it is does not.)
		return got == wire.InvalidRecord || got == wire.CorruptMessage ||
			c.mutation == "transactional" && got == wire.None || got == wire.MessageTooLarge
	case wire.MessageTooLarge:
		// What Kafka's compressor made was above the limit by a few bytes.
		return got == wire.None
	case wire.None:
		// What ours made was.
		return got == wire.MessageTooLarge
	}
	switch c.mutation {
	case "smalllength":
		// Too short for its header: we look no further into it.
		return got == wire.CorruptMessage
	case "mixed":
		// A record of the first entry is bad as well; we look at headers first.
		return got == wire.InvalidRecord
	}
	return false
}

func TestValidateDecidesAsKafkaDoes(t *testing.T) {
	for _, c := range validateCases(t) {
		t.Run(fmt.Sprintf("%s-%d", c.mutation, c.sourceLine), func(t *testing.T) {
			v, err := Validate(c.input, c.options)
			code := CodeOf(err)
			if code != c.code {
				if !c.deliberate(code) {
					t.Fatalf("code %d (%v), want %d (%s)", code, err, c.code, c.text)
				}
				return
			}
			if indexes, ok := strings.CutPrefix(c.text, "records:"); ok && c.options.Version >= 8 {
				var e *Error
				if !errors.As(err, &e) {
					t.Fatal(err)
				}
				var got []string
				for _, r := range e.Records {
					got = append(got, strconv.Itoa(int(r.Index)))
				}
				if strings.Join(got, ",") != indexes {
					t.Fatalf("rejected records %v, want %s", got, indexes)
				}
			}
			if err != nil {
				return
			}
			if int(v.Records) != c.records || v.MaxTimestamp != c.maxTime {
				t.Errorf("%d records, maximum timestamp %d, want %d, %d", v.Records, v.MaxTimestamp, c.records, c.maxTime)
			}
			AssignOffsets(v.Set, 1000, 7)
			got, err := dump(v.Set)
			if err != nil {
				t.Fatal(err)
			}
			firstDifference(t, got, strings.NewReplacer("|", "\n", "_", " ").Replace(c.text))
		})
	}
}

// The bytes that docs/formats/log.md draws are real ones.
func TestExamplesOfTheFormatPage(t *testing.T) {
	page := read(t, "../../docs/formats/log.md")
	var got strings.Builder
	for i, part := range strings.Split(page, "```hex\n") {
		if i == 0 {
			continue
		}
		example, _, _ := strings.Cut(part, "```")
		set, err := hex.DecodeString(strings.Join(strings.Fields(example), ""))
		if err != nil {
			t.Fatal(err)
		}
		text, err := dump(set)
		if err != nil {
			t.Fatalf("%v in %s", err, example)
		}
		got.WriteString(text)
	}
	firstDifference(t, got.String(), `E 2 none 8 CreateTime 1700000000005 7 2 -1 -1 -1 -1 false false 2
R 7 1700000000000 -1 '6b' '68656c6c6f' h='78'
R 8 1700000000005 -1 null null
E 1 none 7 CreateTime 1700000000000
R 7 1700000000000 -1 '6b' '68656c6c6f'
E 0 none 7 NoTimestampType -1
R 7 -1 -1 '6b' '68656c6c6f'
`)
}
