package tool

import (
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
	verify        bool
	maxBytes      int64
	notInOrder    map[string][][2]int64
	mismatches    map[string][][2]int64
	order         []string
	lastOfRecords int64
}

func runDumpLog(c *Call) error {
	if err := c.Args.needs("files"); err != nil {
		return err
	}
	d := &dump{c: c, data: c.Args.Has("print-data-log"), metadata: !c.Args.Has("skip-record-metadata"), verify: c.Args.Has("verify-index-only"),
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
		fmt.Fprintln(c.Out, "Dumping "+name)
		if err := d.file(name); err != nil {
			return err
		}
	}
	for _, name := range d.order {
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
		return d.index(name, base)
	case ".timeindex":
		first := true
		return d.entries(name, 12, func(e []byte) bool {
			if binary.BigEndian.Uint32(e[8:]) == 0 && !first {
				return false // zeros that a crash left
			}
			first = false
			fmt.Fprintf(d.c.Out, "timestamp: %d offset: %d\n", int64(binary.BigEndian.Uint64(e)), base+int64(binary.BigEndian.Uint32(e[8:])))
			return true
		})
	case ".txnindex":
		return d.entries(name, 34, func(e []byte) bool {
			at := func(i int) int64 { return int64(binary.BigEndian.Uint64(e[i:])) }
			fmt.Fprintf(d.c.Out, "version: %d producerId: %d firstOffset: %d lastOffset: %d lastStableOffset: %d\n", binary.BigEndian.Uint16(e), at(2), at(10), at(18), at(26))
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
			fmt.Fprintf(d.c.Out, "offset: %d position: %d\n", offset, pos)
		}
		return true
	})
	if err == nil && d.verify {
		fmt.Fprintf(d.c.Out, "%s passed sanity check.\n", name)
	}
	return err
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
		txn := "OptionalLong.empty"
		if u64(38) >= 0 {
			txn = fmt.Sprintf("OptionalLong[%d]", u64(38))
		}
		fmt.Fprintf(d.c.Out, "producerId: %d producerEpoch: %d coordinatorEpoch: %d currentTxnFirstOffset: %s lastTimestamp: %d ",
			u64(0), int16(binary.BigEndian.Uint16(e[8:])), u32(34), txn, u64(26))
		if u64(14) >= 0 {
			first := u32(10) - u32(22)
			if first < 0 {
				first = int32(int64(u32(10)) - int64(u32(22)) + 1<<31)
			}
			fmt.Fprintf(d.c.Out, "firstSequence: %d lastSequence: %d lastOffset: %d offsetDelta: %d timestamp: %d", first, u32(10), u64(14), u32(22), u64(26))
		}
		fmt.Fprintln(d.c.Out)
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
	fmt.Fprintf(d.c.Out, "Log starting offset: %d\n", base)
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
	if pos < size && d.maxBytes == 1<<31-1 {
		fmt.Fprintf(d.c.Out, "Found %d invalid bytes at the end of %s\n", size-pos, filepath.Base(name))
	}
	return d.c.Context.Err()
}

func (d *dump) batch(name string, b record.Batch, pos int64) {
	horizon := "OptionalLong.empty"
	if ms, ok := b.DeleteHorizon(); ok {
		horizon = fmt.Sprintf("OptionalLong[%d]", ms)
	}
	if b.Magic() >= 2 {
		fmt.Fprintf(d.c.Out, "baseOffset: %d lastOffset: %d count: %d baseSequence: %d lastSequence: %d producerId: %d producerEpoch: %d partitionLeaderEpoch: %d isTransactional: %v isControl: %v deleteHorizonMs: %s",
			b.BaseOffset(), b.LastOffset(), b.Count(), b.BaseSequence(), b.LastSequence(), b.ProducerID(), b.ProducerEpoch(), b.LeaderEpoch(), b.Transactional(), b.Control(), horizon)
	} else {
		fmt.Fprintf(d.c.Out, "offset: %d", b.LastOffset())
	}
	fmt.Fprintf(d.c.Out, " position: %d %s: %d size: %d magic: %d compresscodec: %s crc: %d isvalid: %v\n",
		pos, b.TimestampType(), b.MaxTimestamp(), len(b), b.Magic(), b.Codec(), b.CRC(), b.Check() == nil)
	if !d.deep {
		return
	}
	if err := b.Each(0, func(r *record.Record) error { return d.record(name, b, r) }); err != nil {
		fmt.Fprintf(d.c.Err, "%s: the records of the batch at position %d can't be read: %v\n", name, pos, err)
	}
}

func (d *dump) record(name string, b record.Batch, r *record.Record) error {
	if d.lastOfRecords >= 0 && r.Offset != d.lastOfRecords+1 {
		d.notInOrder[name] = append(d.notInOrder[name], [2]int64{d.lastOfRecords, r.Offset})
	}
	d.lastOfRecords = r.Offset
	length := func(p []byte) int {
		if p == nil {
			return -1
		}
		return len(p)
	}
	prefix := "| "
	if d.metadata {
		fmt.Fprintf(d.c.Out, "| offset: %d %s: %d keySize: %d valueSize: %d", r.Offset, b.TimestampType(), r.Timestamp, length(r.Key), length(r.Value))
		prefix = " "
		if b.Magic() >= 2 {
			var keys []string
			for _, h := range r.Headers.All() {
				keys = append(keys, h.Key)
			}
			fmt.Fprintf(d.c.Out, " sequence: %d headerKeys: [%s]", r.Sequence, strings.Join(keys, ","))
		} else {
			crc := b.CRC()
			if b.Compressed() { // the inner message's
				if m, err := record.BuildMessageSet(b.Magic(), record.None, record.Message{Timestamp: r.Timestamp, Key: r.Key, Value: r.Value}); err == nil {
					crc = record.Batch(m).CRC()
				}
			}
			fmt.Fprintf(d.c.Out, " isValid: true crc: %d}", crc)
		}
		if b.Control() && len(r.Key) >= 4 {
			d.marker(r)
		}
	}
	var key, value *string
	var err error
	if d.data && !b.Control() {
		key, value, err = d.decode(r)
	}
	if key != nil {
		fmt.Fprintf(d.c.Out, "%skey: %s", prefix, *key)
	}
	if value != nil {
		fmt.Fprintf(d.c.Out, " payload: %s", *value)
	}
	fmt.Fprintln(d.c.Out)
	return err
}

func (d *dump) marker(r *record.Record) {
	switch kind := binary.BigEndian.Uint16(r.Key[2:]); {
	case kind > 1 || len(r.Value) < 6:
		fmt.Fprintf(d.c.Out, " controlType: UNKNOWN(%d)", kind)
	default:
		fmt.Fprintf(d.c.Out, " endTxnMarker: %s coordinatorEpoch: %d", [...]string{"ABORT", "COMMIT"}[kind], int32(binary.BigEndian.Uint32(r.Value[2:])))
	}
}
