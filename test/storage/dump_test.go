package storage

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"barnabas/test/real"
)

// dump-log prints what kafka-dump-log prints, for every file of every folder
// that Apache Kafka wrote for the unit tests.
func TestDumpLogPrintsWhatKafkasToolPrints(t *testing.T) {
	var files []string
	for _, kind := range []string{"log", "index", "timeindex", "txnindex", "snapshot"} {
		more, err := filepath.Glob("../../internal/storage/testdata/kafka-*/*-0/*." + kind)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	if len(files) < 20 {
		t.Fatal("only", len(files), "files")
	}
	for _, flags := range [][]string{nil, {"--deep-iteration"}, {"--print-data-log"}, {"--print-data-log", "--skip-record-metadata"}} {
		args := append(flags, "--files", strings.Join(files, ","))
		want := strings.Split(real.Run(t, time.Minute, real.Java(t, "3.9.1", "kafka.tools.DumpLogSegments", args...)), "\n")
		got := strings.Split(real.Run(t, time.Minute, exec.Command(real.Binary(t), append([]string{"dump-log"}, args...)...)), "\n")
		file := ""
		for i := range max(len(want), len(got)) {
			var a, b string
			if i < len(want) {
				a = strings.TrimRight(want[i], " ")
			}
			if i < len(got) {
				b = strings.TrimRight(got[i], " ")
			}
			if strings.HasPrefix(a, "Dumping") {
				file = a
			}
			if a != b {
				t.Fatalf("%v: line %d: %s\nKafka %s\nours  %s", flags, i+1, file, a, b)
			}
		}
	}
}
