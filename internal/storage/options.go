package storage

import (
	"log/slog"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/vfs"
)

// Options say how a [Manager] works. Dirs and Config must be given.
type Options struct {
	// Dirs are the log directories (log.dirs); missing ones are made.
	Dirs []string
	// FS is the file system; nil means the host's.
	FS vfs.FS
	// Config holds the broker's properties.
	Config *config.Broker
	// BrokerID and ClusterID must agree with every meta.properties found, and are
	// written where there is none. See [ReadIdentity] for what is found.
	BrokerID  int32
	ClusterID string
	// ClusterCreated says that ClusterID was made by this start, since ZooKeeper
	// had none; it only makes the error of a mismatch more precise.
	ClusterCreated bool
	// Topic resolves a topic's configuration; it is asked when a log is loaded.
	// nil means the broker's defaults. See [Log.SetConfig] for later changes.
	Topic func(topic string) *config.Topic
	// OnDirFailure is called once for each directory that goes offline, from a
	// goroutine of the manager, with no lock held.
	OnDirFailure func(dir string, cause error)
	// BootID is the machine's boot id; "" means the host's.
	BootID string
	// MaxOpenFiles bounds the files kept open for later use; 0 means 512.
	MaxOpenFiles int
	// Manual leaves out the background work (sync, checkpoints, retention);
	// tests call [Manager.Tick] instead.
	Manual bool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Logger is where lines go; nil means slog.Default().
	Logger *slog.Logger
}

// Identity is what meta.properties says of a log directory.
type Identity struct {
	BrokerID  int32  // -1: not said
	ClusterID string // "": not said
}

// DirInfo describes a log directory.
type DirInfo struct {
	Path string
	Err  error // why it is offline, nil while online
}

// TimestampOffset is the answer of a search by time.
type TimestampOffset struct {
	Timestamp   int64 // milliseconds
	Offset      int64
	LeaderEpoch int32 // of the batch, -1 for old message formats
}

// EpochEnd is the answer of [Log.EndOffsetForEpoch]; both are -1 when undefined.
type EpochEnd struct {
	Epoch     int32
	EndOffset int64
}

// AbortedTxn is an aborted transaction as Fetch tells of it.
type AbortedTxn struct {
	ProducerID  int64
	FirstOffset int64
}
