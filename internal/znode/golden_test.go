package znode

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// recode decodes the data of the node at path, checks that the path functions
// give that path, and encodes it again.
func recode(path string, data []byte) (gotPath string, out []byte, err error) {
	parts := strings.Split(path, "/")[1:]
	switch {
	case strings.HasPrefix(path, BrokerIDs+"/"):
		id, err := ParseBrokerID(parts[2])
		if err != nil {
			return "", nil, err
		}
		b, err := DecodeBroker(data)
		return BrokerPath(id), b.Encode(), err
	case strings.HasSuffix(path, "/state"):
		n, err := ParsePartition(parts[4])
		if err != nil {
			return "", nil, err
		}
		s, err := DecodePartitionState(data)
		return StatePath(parts[2], n), s.Encode(), err
	case strings.HasPrefix(path, Topics+"/"):
		t, err := DecodeTopic(data)
		return TopicPath(parts[2]), t.Encode(), err
	case path == ControllerPath:
		c, err := DecodeController(data)
		return path, c.Encode(), err
	case path == ControllerEpochPath:
		n, err := DecodeControllerEpoch(data)
		return path, EncodeControllerEpoch(n), err
	case path == ClusterIDPath:
		id, err := DecodeClusterID(data)
		return path, EncodeClusterID(id), err
	case path == FeaturePath:
		f, err := DecodeFeatures(data)
		return path, f.Encode(), err
	case path == ProducerIDBlock:
		ids, err := DecodeProducerIDs(data)
		return path, ids.Encode(), err
	case strings.HasPrefix(path, ConfigChanges+"/"):
		n, err := Sequence(parts[2], ConfigChangePrefix)
		if err != nil {
			return "", nil, err
		}
		e, err := DecodeConfigChange(data)
		return fmt.Sprintf("%s/%s%010d", ConfigChanges, ConfigChangePrefix, n), EncodeConfigChange(e), err
	case strings.HasPrefix(path, Config+"/"):
		e, err := ParseEntityPath(strings.TrimPrefix(path, Config+"/"))
		if err != nil {
			return "", nil, err
		}
		c, err := DecodeConfig(data)
		for key, value := range c {
			if strings.HasPrefix(key, "SCRAM-") {
				cred, err := ParseSCRAMCredential(value)
				if err != nil {
					return "", nil, err
				}
				c[key] = cred.String()
			}
		}
		return e.Path(), EncodeConfig(c), err
	}
	return "", nil, fmt.Errorf("no decoder for %s", path)
}

// The files of testdata are dumps of trees that Apache Kafka made: path, kind,
// ACL, and JSON with sorted keys. What we decode and encode again is equal.
func TestNodesOfRealClustersAreReadAndWrittenEqual(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			fields := strings.SplitN(lines.Text(), " ", 4)
			path, data := fields[0], fields[3]
			gotPath, out, err := recode(path, []byte(data))
			if err != nil {
				t.Errorf("%s: %s: %v", name, path, err)
				continue
			}
			if gotPath != path {
				t.Errorf("%s: path %s, want %s", name, gotPath, path)
			}
			equalJSON(t, path, out, []byte(data))
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func equalJSON(t *testing.T, what string, got, want []byte) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal(got, &g); err != nil {
		t.Errorf("%s: %s: %v", what, got, err)
		return
	}
	if err := json.Unmarshal(want, &w); err != nil {
		t.Fatalf("%s: %s: %v", what, want, err)
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}
