package tools

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"barnabas/test/real"
)

// What dump-log says of indexes alone is what Kafka's script says.
func TestDumpLogChecksIndexesAsKafkasScript(t *testing.T) {
	var files []string
	for _, kind := range []string{"index", "timeindex"} {
		more, err := filepath.Glob("../../internal/storage/testdata/kafka-3.9.1/*-0/*." + kind)
		if err != nil || len(more) == 0 {
			t.Fatal(err, "no files of kind ", kind)
		}
		files = append(files, more...)
	}
	for _, flag := range []string{"--verify-index-only", "--index-sanity-check"} {
		args := []string{flag, "--max-message-size", "1000000", "--files", strings.Join(files, ",")}
		theirs := real.Run(t, time.Minute, real.Java(t, "3.9.1", "kafka.tools.DumpLogSegments", args...))
		if ours := real.Run(t, time.Minute, exec.Command(real.Binary(t), append([]string{"dump-log"}, args...)...)); ours != theirs {
			t.Errorf("%s\nKafka's script writes\n%sours\n%s", flag, theirs, ours)
		}
	}
}
