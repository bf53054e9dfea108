package storage

import (
	"errors"
	"time"

	"barnabas/internal/config"
	"barnabas/internal/vfs"
	"barnabas/internal/wire"
)

// Manager owns the log directories of a broker.
type Manager struct{}

// ReadIdentity reads meta.properties of every directory that has one. It is an
// error (ErrMeta) when two disagree or one is damaged; without any, BrokerID is
// -1 and ClusterID "". It takes no lock and changes nothing, so that a broker
// can learn its id before it opens the directories.
func ReadIdentity(fsys vfs.FS, dirs []string) (Identity, error) {
	return Identity{}, errors.ErrUnsupported
}

// Open locks the directories, checks whose they are, and finds the logs in
// them. After a clean stop the logs are loaded when first used; else they are
// recovered now, in parallel. Directories that fail go offline; it is an error
// when all do, when one is locked by another process (vfs.ErrLocked) or belongs
// to another broker or cluster (ErrMeta). Close must be called.
func Open(o Options) (*Manager, error) { return nil, errors.ErrUnsupported }

// Log returns the log of a partition, or false.
func (m *Manager) Log(tp wire.TopicPartition) (*Log, bool) { return nil, false }

// Logs returns all logs, in no order.
func (m *Manager) Logs() []*Log { return nil }

// Create makes the log of a partition in the online directory that has the
// fewest, with the topic's id (zero: none) and configuration (nil: the broker's
// defaults). When it exists it is returned, if the topic id fits
// (ErrInconsistentTopicID).
func (m *Manager) Create(tp wire.TopicPartition, id wire.UUID, c *config.Topic) (*Log, error) {
	return nil, errors.ErrUnsupported
}

// Delete closes a partition's log at once and moves its folder out of the way
// (-delete); the files go after file.delete.delay.ms. ErrNotFound when there is
// none.
func (m *Manager) Delete(tp wire.TopicPartition) error { return errors.ErrUnsupported }

// Dirs describes the log directories in the order of Options.Dirs.
func (m *Manager) Dirs() []DirInfo { return nil }

// Tick does the background work that is due at now, in the calling goroutine;
// for tests with Options.Manual.
func (m *Manager) Tick(now time.Time) {}

// Checkpoint writes the checkpoint files now.
func (m *Manager) Checkpoint() error { return errors.ErrUnsupported }

// Close syncs all logs, writes the checkpoints and the clean mark, and gives
// the locks back. No log may be used after. A directory in which anything
// failed gets no clean mark.
func (m *Manager) Close() error { return errors.ErrUnsupported }
