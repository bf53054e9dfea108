package storage

import (
	"path/filepath"
	"time"

	"barnabas/internal/wire"
)

// SetAside moves the log of an older topic of the same name out of the way, to a
// folder that ends with -stray and is left alone: a topic that was deleted while
// this broker was away, and made again. id is that of the topic now, and created
// when it was made: a log that is younger belongs to it whatever its id is. It
// returns the folder, "" when nothing was moved.
func (m *Manager) SetAside(tp wire.TopicPartition, id wire.UUID, created time.Time) (folder string, err error) {
	m.changing.Lock()
	defer m.changing.Unlock()
	l, ok := m.Log(tp)
	if !ok || id.IsZero() {
		return "", nil
	}
	if has := l.TopicID(); has.IsZero() || has == id {
		return "", nil
	}
	info, err := l.dir().fs.Stat(filepath.Join(l.folder(), partitionFile))
	if err != nil || !info.ModTime().Before(created) {
		return "", err
	}
	folder = filepath.Join(l.dir().path, asideName(tp, strayDirSuffix))
	return folder, m.takeOut(l, folder)
}

// takeOut closes a log and renames its folder. The caller holds changing.
func (m *Manager) takeOut(l *Log, folder string) error {
	m.mu.Lock()
	delete(m.mu.logs, l.tp)
	m.mu.Unlock()
	l.dir().left[l.tp] = true
	if mv := m.moveOf(l.tp); mv != nil {
		if err := m.callOff(mv); err != nil {
			return err
		}
	}
	if err := l.close(false); err != nil {
		return err
	}
	if err := l.dir().fs.Rename(l.folder(), folder); err != nil {
		l.dir().fail(err)
		return err
	}
	m.cleaner.forget(l)
	return nil
}
