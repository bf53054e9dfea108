package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"barnabas/internal/vfs"
)

// meta.properties, as Kafka writes it in ZooKeeper mode (java.util.Properties):
//
//	#
//	#Thu Oct 10 10:10:10 UTC 2024
//	version=0
//	broker.id=1
//	cluster.id=k0GXQSJzQhqPxGCRCRwuxg
//
// version 1 is KRaft's. Other keys (3.9 keeps directory.id) are left as they are.
type metaProperties map[string]string

const (
	metaVersion   = "version"
	metaBrokerID  = "broker.id"
	metaClusterID = "cluster.id"
)

// readMeta returns nil without an error when there is no file.
func readMeta(fsys vfs.FS, dir string) (metaProperties, error) {
	path := filepath.Join(dir, metaFile)
	data, err := vfs.ReadFile(fsys, path, maxSmallFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := metaProperties{}
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		at := strings.IndexAny(line, "=:")
		if at < 0 {
			return nil, fmt.Errorf("%w: %s, line %d: no \"=\" in %.60q", ErrMeta, path, i+1, line)
		}
		m[strings.TrimSpace(line[:at])] = strings.TrimSpace(line[at+1:])
	}
	switch v, ok := m[metaVersion]; {
	case !ok:
		return nil, fmt.Errorf("%w: %s has no version: it is damaged. Restore it, or remove it: it is written anew from broker.id and the cluster's id", ErrMeta, path)
	case v == "1":
		return nil, fmt.Errorf("%w: %s has version 1: the folder belongs to a cluster in KRaft mode", ErrMeta, path)
	case v != "0":
		return nil, fmt.Errorf("%w: %s has the unknown version %.20q", ErrMeta, path, v)
	}
	if id, ok := m[metaBrokerID]; ok {
		if n, err := strconv.ParseInt(id, 10, 32); err != nil || n < 0 {
			return nil, fmt.Errorf("%w: %s: broker.id is %.40q", ErrMeta, path, id)
		}
	}
	return m, nil
}

func (m metaProperties) identity() Identity {
	id := Identity{BrokerID: -1, ClusterID: m[metaClusterID]}
	if s, ok := m[metaBrokerID]; ok {
		n, _ := strconv.ParseInt(s, 10, 32) // checked by readMeta
		id.BrokerID = int32(n)
	}
	return id
}

// checkMeta compares what a directory says with what the broker is.
func checkMeta(dir string, found Identity, o *Options) error {
	path := filepath.Join(dir, metaFile)
	if found.BrokerID >= 0 && found.BrokerID != o.BrokerID {
		return fmt.Errorf("%w: %s says broker.id %d, this broker is %d. "+
			"Either broker.id was changed: set it back to %d; or log.dirs names another broker's folder. "+
			"If the folder is to change hands for good, with its records, remove %s",
			ErrMeta, path, found.BrokerID, o.BrokerID, found.BrokerID, path)
	}
	if found.ClusterID == "" || o.ClusterID == "" || found.ClusterID == o.ClusterID {
		return nil
	}
	who := "Either ZooKeeper lost its data and made a new cluster (restore it, or point zookeeper.connect at the right one), " +
		"or log.dirs names a folder of another cluster (point it at the right one)"
	if o.ClusterCreated {
		who = "ZooKeeper had no /cluster/id, so ZooKeeper is the store that was reset (or zookeeper.connect or its chroot is wrong), while the log directory has kept its data. " +
			"Restore ZooKeeper's data and start again"
	}
	return fmt.Errorf("%w: %s says cluster.id %s, ZooKeeper says %s. %s. "+
		"To bring this folder's records into the cluster that ZooKeeper has now, remove %s: topics of the same name and id go on where they were",
		ErrMeta, path, found.ClusterID, o.ClusterID, who, path)
}

// writeMeta completes meta.properties where something is missing.
func writeMeta(fsys vfs.FS, dir string, found metaProperties, o *Options, now time.Time) error {
	want := metaProperties{metaVersion: "0", metaBrokerID: strconv.Itoa(int(o.BrokerID)), metaClusterID: o.ClusterID}
	if o.ClusterID == "" {
		delete(want, metaClusterID)
	}
	if o.BrokerID < 0 {
		delete(want, metaBrokerID)
	}
	missing := found == nil
	for k := range want {
		if _, ok := found[k]; !ok {
			missing = true
		}
	}
	if !missing {
		return nil
	}
	for k, v := range found {
		want[k] = v
	}
	keys := make([]string, 0, len(want))
	for k := range want {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var b strings.Builder
	fmt.Fprintf(&b, "#\n#%s\n", now.UTC().Format("Mon Jan 02 15:04:05 MST 2006"))
	for _, k := range keys {
		fmt.Fprintf(&b, "%s=%s\n", k, want[k])
	}
	return vfs.WriteFileAtomic(fsys, filepath.Join(dir, metaFile), []byte(b.String()), 0o644, true)
}

// ReadIdentity reads meta.properties of every directory that has one. It is an
// error (ErrMeta) when two disagree or one is damaged; without any, BrokerID is
// -1 and ClusterID "". It takes no lock and changes nothing, so that a broker
// can learn its id before it opens the directories.
func ReadIdentity(fsys vfs.FS, dirs []string) (Identity, error) {
	if fsys == nil {
		fsys = vfs.OS
	}
	id := Identity{BrokerID: -1}
	var idFrom, clusterFrom string
	for _, dir := range dirs {
		m, err := readMeta(fsys, dir)
		if errors.Is(err, ErrMeta) {
			return Identity{BrokerID: -1}, err
		}
		if err != nil || m == nil {
			continue // a directory that can't be read goes offline in Open
		}
		found := m.identity()
		if found.BrokerID >= 0 && id.BrokerID >= 0 && found.BrokerID != id.BrokerID {
			return Identity{BrokerID: -1}, fmt.Errorf("%w: log directories of different brokers: %s says broker.id %d, %s says %d", ErrMeta, idFrom, id.BrokerID, dir, found.BrokerID)
		}
		if found.ClusterID != "" && id.ClusterID != "" && found.ClusterID != id.ClusterID {
			return Identity{BrokerID: -1}, fmt.Errorf("%w: log directories of different clusters: %s says cluster.id %s, %s says %s", ErrMeta, clusterFrom, id.ClusterID, dir, found.ClusterID)
		}
		if found.BrokerID >= 0 {
			id.BrokerID, idFrom = found.BrokerID, dir
		}
		if found.ClusterID != "" {
			id.ClusterID, clusterFrom = found.ClusterID, dir
		}
	}
	return id, nil
}
