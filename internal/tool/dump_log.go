package tool

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"barnabas/internal/record"
)

// dumpLogCommand is kafka-dump-log (kafka.tools.DumpLogSegments), without what is
// for KRaft and tiered storage.
func dumpLogCommand() *Command {
	return &Command{
		Name: "dump-log", Script: "kafka-dump-log", Short: "Print the content of segments and their indexes",
		Purpose: "This tool helps to parse a log file and dump its contents to the console, useful for debugging a seemingly corrupt log segment.",
		Example: []string{"barnabas dump-log --print-data-log --files barnabas-data/topic-0/00000000000000000000.log"},
		Options: []Option{
			{Name: "deep-iteration", Text: "if set, uses deep instead of shallow iteration. Automatically set if print-data-log is enabled."},
			{Name: "files", Arg: "String: file1, file2, ...", Required: true, Text: "REQUIRED: The comma separated list of data and index log files to be dumped."},
			{Name: "index-sanity-check", Text: "if set, just checks the index sanity without printing its content. This is the same check that is executed on broker startup to determine if an index needs rebuilding or not."},
			{Name: "max-message-size", Arg: "Integer: size", Default: "5242880", Text: "Size of largest message. It is taken and has no effect: messages of any size are read."},
			{Name: "max-bytes", Arg: "Integer: size", Default: "2147483647", Text: "Limit the amount of total batches read in bytes avoiding reading the whole .log file(s)."},
			{Name: "offsets-decoder", Text: "if set, log data will be parsed as offset data from the __consumer_offsets topic."},
			{Name: "print-data-log", Text: "if set, printing the messages content when dumping data logs."},
			{Name: "skip-record-metadata", Text: "whether to skip printing metadata for each record."},
			{Name: "transaction-log-decoder", Text: "if set, log data will be parsed as transaction metadata from the __transaction_state topic."},
			{Name: "verify-index-only", Text: "if set, just verify the index log without printing its content."},
		},
		Run: runDumpLog,
	}
}

// dump is one run; what is found wrong is told at the end, on the error stream.
type dump struct {
	c             *Call
	deep, data    bool
	decode        decoder
	metadata      bool
	verify        bool // read indexes, but do not print them
	sanity        bool // look only at an index's size and ends
	maxBytes      int64
	notInOrder    map[string][][2]int64
	mismatches    map[string][][2]int64
	order         []string
	lastOfRecords int64
	name          string   // of the file
	records       []fields // of a batch, for its document
}

func runDumpLog(c *Call) error {
	if err := c.Args.needs("files"); err != nil {
		return err
	}
	d := &dump{c: c, data: c.Args.Has("print-data-log"), metadata: !c.Args.Has("skip-record-metadata"), verify: c.Args.Has("verify-index-only"), sanity: c.Args.Has("index-sanity-check"),
		maxBytes: 1<<31 - 1, notInOrder: map[string][][2]int64{}, mismatches: map[string][][2]int64{}}
	d.decode = decodePlain
	switch offsets, txns := c.Args.Has("offsets-decoder"), c.Args.Has("transaction-log-decoder"); {
	case offsets:
		d.decode, d.data = decodeOffsets, true
	case txns:
		d.decode, d.data = decodeTransactions, true
	}
	d.deep = d.data || c.Args.Has("deep-iteration")
	if v := c.Args.Text("max-bytes"); v != "" {
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil {
			return usage("Cannot parse argument '%s' of option max-bytes", v)
		}
		d.maxBytes = n
	}
	for _, name := range strings.Split(c.Args.Text("files"), ",") {
		name = strings.TrimSpace(name)
		d.name = name
		d.say("Dumping " + name)
		if err := d.file(name); err != nil {
			return err
		}
	}
	return d.report()
}

// report tells of what does not fit together.
func (d *dump) report() error {
	c := d.c
	for _, name := range d.order {
		if c.JSON {
			if len(d.mismatches[name])+len(d.notInOrder[name]) == 0 {
				continue
			}
			document := map[string]any{"file": name, "mismatches": append([][2]int64{}, d.mismatches[name]...), "nonConsecutiveOffsets": append([][2]int64{}, d.notInOrder[name]...)}
			if err := c.printJSON(document); err != nil {
				return err
			}
			continue
		}
		if pairs := d.mismatches[name]; len(pairs) > 0 {
			fmt.Fprintf(c.Err, "Mismatches in :%s\n", name)
			for _, p := range pairs {
				fmt.Fprintf(c.Err, "  Index offset: %d, log offset: %d\n", p[0], p[1])
			}
		}
		if pairs := d.notInOrder[name]; len(pairs) > 0 {
			fmt.Fprintf(c.Err, "Non-consecutive offsets in %s\n", name)
			for _, p := range pairs {
				fmt.Fprintf(c.Err, "  %d is followed by %d\n", p[0], p[1])
			}
		}
	}
	return nil
}

func (d *dump) file(name string) error {
	d.order = append(d.order, name)
	base, err := strconv.ParseInt(strings.SplitN(filepath.Base(name), ".", 2)[0], 10, 64)
	if err != nil {
		return fmt.Errorf("%s: a segment's file begins with its base offset", name)
	}
	switch filepath.Ext(strings.TrimSuffix(strings.TrimSuffix(name, ".cleaned"), ".swap")) {
	case ".log":
		return d.log(name, base)
	case ".index":
		if d.sanity {
			return d.sane(name, 8)
		}
		return d.index(name, base)
	case ".timeindex":
		if d.sanity {
			return d.sane(name, 12)
		}
		first := true
		return d.entries(name, 12, func(e []byte) bool {
			if binary.BigEndian.Uint32(e[8:]) == 0 && !first {
				return false // zeros that a crash left
			}
			first = false
			if d.verify {
				return true
			}
			d.line("", fields{{"timestamp", int64(binary.BigEndian.Uint64(e))}, {"offset", base + int64(binary.BigEndian.Uint32(e[8:]))}})
			return true
		})
	case ".txnindex":
		return d.entries(name, 34, func(e []byte) bool {
			at := func(i int) int64 { return int64(binary.BigEndian.Uint64(e[i:])) }
			d.line("", fields{{"version", binary.BigEndian.Uint16(e)}, {"producerId", at(2)}, {"firstOffset", at(10)}, {"lastOffset", at(18)}, {"lastStableOffset", at(26)}})
			return true
		})
	case ".snapshot":
		return d.snapshot(name)
	}
	fmt.Fprintf(d.c.Err, "Ignoring unknown file %s\n", name)
	return nil
}

// entries calls f for the entries of an index file until it returns false.
func (d *dump) entries(name string, width int, f func([]byte) bool) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	for ; len(data) >= width && f(data[:width]); data = data[width:] {
	}
	return nil
}

func (d *dump) index(name string, base int64) error {
	log, err := os.Open(strings.TrimSuffix(name, ".index") + ".log")
	if err != nil {
		return err
	}
	defer log.Close()
	first := true
	err = d.entries(name, 8, func(e []byte) bool {
		offset, pos := base+int64(binary.BigEndian.Uint32(e)), int64(binary.BigEndian.Uint32(e[4:]))
		if offset == base && !first {
			return false // zeros that a crash left
		}
		first = false
		head := make([]byte, record.BatchHeaderSize)
		n, _ := log.ReadAt(head, pos)
		if size, err := record.EntrySize(head[:n]); err != nil || size == 0 {
			d.mismatches[name] = append(d.mismatches[name], [2]int64{offset, -1})
		} else if last := record.Batch(head).LastOffset(); last != offset {
			d.mismatches[name] = append(d.mismatches[name], [2]int64{offset, last})
		}
		if !d.verify {
			d.line("", fields{{"offset", offset}, {"position", pos}})
		}
		return true
	})
	return err
}

// sane makes the check of an index that a broker makes when it starts: of its
// size, and that the last timestamp is not before the first.
func (d *dump) sane(name string, width int) error {
	data, err := os.ReadFile(name)
	switch n := len(data); {
	case err != nil:
		return err
	case n%width != 0:
		return says("Index file %s is corrupt, found %d bytes which is neither positive nor a multiple of %d.", name, n, width)
	case n > 0 && width == 12 && bytes.Compare(data[n-width:n-4], data[:width-4]) < 0:
		return says("Corrupt time index found, time index file (%s) has non-zero size but its last timestamp is less than its first", name)
	}
	if d.c.JSON {
		d.line("", fields{{"sane", true}})
	}
	d.say(name + " passed sanity check.")
	return nil
}

func (d *dump) snapshot(name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if len(data) < 10 || (len(data)-10)%46 != 0 {
		return fmt.Errorf("%s is no producer snapshot", name)
	}
	for e := data[10:]; len(e) > 0; e = e[46:] {
		u64 := func(i int) int64 { return int64(binary.BigEndian.Uint64(e[i:])) }
		u32 := func(i int) int32 { return int32(binary.BigEndian.Uint32(e[i:])) }
		f := fields{{"producerId", u64(0)}, {"producerEpoch", int16(binary.BigEndian.Uint16(e[8:]))}, {"coordinatorEpoch", u32(34)},
			{"currentTxnFirstOffset", optional{u64(38), u64(38) >= 0}}, {"lastTimestamp", u64(26)}}
		if u64(14) < 0 {
			d.line("", f, " ")
			continue
		}
		first := u32(10) - u32(22)
		if first < 0 {
			first = int32(int64(u32(10)) - int64(u32(22)) + 1<<31)
		}
		d.line("", append(f, fields{{"firstSequence", first}, {"lastSequence", u32(10)}, {"lastOffset", u64(14)}, {"offsetDelta", u32(22)}, {"timestamp", u64(26)}}...))
	}
	return nil
}

func (d *dump) log(name string, base int64) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !d.c.JSON {
		fmt.Fprintf(d.c.Out, "Log starting offset: %d\n", base)
	}
	d.lastOfRecords = -1
	size := min(info.Size(), d.maxBytes)
	pos := int64(0)
	head := make([]byte, record.BatchHeaderSize)
	for pos < size && d.c.Context.Err() == nil {
		n, err := f.ReadAt(head, pos)
		if err != nil && err != io.EOF {
			return err
		}
		entry, err := record.EntrySize(head[:n])
		if err != nil || entry == 0 || pos+int64(entry) > size {
			break
		}
		b := make(record.Batch, entry)
		if _, err := f.ReadAt(b, pos); err != nil {
			return err
		}
		d.batch(name, b, pos)
		pos += int64(entry)
	}
	switch whole := d.maxBytes == 1<<31-1; {
	case pos == size || !whole:
	case d.c.JSON:
		d.line("", fields{{"invalidBytes", size - pos}})
	default:
		fmt.Fprintf(d.c.Out, "Found %d invalid bytes at the end of %s\n", size-pos, filepath.Base(name))
	}
	return d.c.Context.Err()
}

func (d *dump) batch(name string, b record.Batch, pos int64) {
	var f fields
	if b.Magic() >= 2 {
		horizon, ok := b.DeleteHorizon()
		f = fields{{"baseOffset", b.BaseOffset()}, {"lastOffset", b.LastOffset()}, {"count", b.Count()}, {"baseSequence", b.BaseSequence()}, {"lastSequence", b.LastSequence()},
			{"producerId", b.ProducerID()}, {"producerEpoch", b.ProducerEpoch()}, {"partitionLeaderEpoch", b.LeaderEpoch()}, {"isTransactional", b.Transactional()},
			{"isControl", b.Control()}, {"deleteHorizonMs", optional{horizon, ok}}}
	} else {
		f = fields{{"offset", b.LastOffset()}}
	}
	f = append(f, fields{{"position", pos}, {b.TimestampType().String(), b.MaxTimestamp()}, {"size", len(b)}, {"magic", b.Magic()}, {"compresscodec", b.Codec().String()},
		{"crc", b.CRC()}, {"isvalid", b.Check() == nil}}...)
	d.records = nil
	if !d.c.JSON {
		d.line("", f)
	}
	if d.deep {
		if err := b.Each(0, func(r *record.Record) error { return d.record(name, b, r) }); err != nil {
			fmt.Fprintf(d.c.Err, "%s: the records of the batch at position %d can't be read: %v\n", name, pos, err)
		}
	}
	if d.c.JSON {
		if d.deep {
			f = append(f, field{"records", append([]fields{}, d.records...)})
		}
		d.line("", f)
	}
}

func (d *dump) record(name string, b record.Batch, r *record.Record) error {
	if d.lastOfRecords >= 0 && r.Offset != d.lastOfRecords+1 {
		d.notInOrder[name] = append(d.notInOrder[name], [2]int64{d.lastOfRecords, r.Offset})
	}
	d.lastOfRecords = r.Offset
	var f fields
	if d.metadata {
		f = d.recordFields(b, r)
	}
	var key, value *string
	var err error
	if d.data && !b.Control() {
		key, value, err = d.decode(r)
	}
	prefix := "| "
	if key != nil {
		f = append(f, field{"key", *key})
	} else if !d.metadata {
		prefix = " "
	}
	if value != nil {
		f = append(f, field{"payload", *value})
	}
	switch {
	case d.c.JSON:
		d.records = append(d.records, f)
	case len(f) == 0:
		fmt.Fprintln(d.c.Out)
	default:
		d.line(prefix, f)
	}
	return err
}

func (d *dump) recordFields(b record.Batch, r *record.Record) fields {
	length := func(p []byte) int {
		if p == nil {
			return -1
		}
		return len(p)
	}
	f := fields{{"offset", r.Offset}, {b.TimestampType().String(), r.Timestamp}, {"keySize", length(r.Key)}, {"valueSize", length(r.Value)}}
	if b.Magic() >= 2 {
		keys := names{}
		for _, h := range r.Headers.All() {
			keys = append(keys, h.Key)
		}
		f = append(f, fields{{"sequence", r.Sequence}, {"headerKeys", keys}}...)
	} else {
		crc := b.CRC()
		if b.Compressed() { // the inner message's
			if m, err := record.BuildMessageSet(b.Magic(), record.None, record.Message{Timestamp: r.Timestamp, Key: r.Key, Value: r.Value}); err == nil {
				crc = record.Batch(m).CRC()
			}
		}
		f = append(f, fields{{"isValid", true}, {"crc", braced(crc)}}...)
	}
	if b.Control() && len(r.Key) >= 4 {
		f = append(f, marker(r)...)
	}
	return f
}

func marker(r *record.Record) fields {
	kind := binary.BigEndian.Uint16(r.Key[2:])
	if kind > 1 || len(r.Value) < 6 {
		return fields{{"controlType", fmt.Sprintf("UNKNOWN(%d)", kind)}}
	}
	return fields{{"endTxnMarker", [...]string{"ABORT", "COMMIT"}[kind]}, {"coordinatorEpoch", int32(binary.BigEndian.Uint32(r.Value[2:]))}}
}
