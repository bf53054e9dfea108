package storage

import (
	"time"
)

// Tick does the background work that is due at now, in the calling goroutine;
// for tests with Options.Manual.
func (m *Manager) Tick(now time.Time) {
	m.tick(now)
	for _, d := range m.dirs {
		d.work(m.o.OnDirFailure)
	}
	for _, l := range m.Logs() {
		if mv := m.moveOf(l.tp); mv != nil {
			m.runMove(mv)
		}
	}
}

func (m *Manager) tick(now time.Time) {
	b := m.o.Config
	due := func(at *time.Time, every time.Duration) bool {
		if now.Before(*at) {
			return false
		}
		*at = now.Add(every)
		return true
	}
	for _, d := range m.dirs {
		if d.online() {
			d.checkSpace()
			d.removeDue(now)
			m.nudge(d, now)
		}
	}
	each := func(save func(*logDir, bool) error) {
		for _, d := range m.dirs {
			if d.online() {
				_ = save(d, true) // a failure has taken the directory offline
			}
		}
	}
	if due(&m.due.highWatermarks, b.Duration("replica.high.watermark.checkpoint.interval.ms")) {
		each((*logDir).saveHighWatermarks)
	}
	if due(&m.due.recoveryPoints, b.Duration("log.flush.offset.checkpoint.interval.ms")) {
		each((*logDir).saveRecoveryPoints)
	}
	if due(&m.due.starts, b.Duration("log.flush.start.offset.checkpoint.interval.ms")) {
		each((*logDir).saveStarts)
	}
	if due(&m.due.retention, b.Duration("log.retention.check.interval.ms")) {
		m.retain(now)
	}
	if due(&m.due.producers, b.Duration("producer.id.expiration.check.interval.ms")) {
		m.expireProducers(now.Add(-b.Duration("producer.id.expiration.ms")))
	}
}

// nudge writes what should not wait long (epochs) and sends logs to be synced
// that have waited long enough.
func (m *Manager) nudge(d *logDir, now time.Time) {
	if !d.touched.Swap(false) {
		return
	}
	for _, l := range d.logs() {
		if l.dir() != d || l.state.Load() != loaded {
			continue
		}
		if err := l.saveEpochsSoon(); err != nil {
			d.fail(err)
			return
		}
		since := l.unsyncedAt.Load()
		if since == 0 {
			continue
		}
		wait := min(syncAfter.Milliseconds(), l.config.Load().FlushMs)
		if now.UnixMilli()-since >= wait {
			d.enqueue(l)
		} else {
			d.touched.Store(true)
		}
	}
}

func (l *Log) saveEpochsSoon() error {
	if data, _ := l.epochs.unsaved(false, l.tail.end.Load()); data == nil {
		return nil
	}
	l.maintenance.Lock()
	defer l.maintenance.Unlock()
	if l.state.Load() != loaded {
		return nil
	}
	return l.saveEpochs(false)
}

// retain runs retention over all logs.
func (m *Manager) retain(now time.Time) {
	for _, l := range m.Logs() {
		if !l.dir().online() {
			continue
		}
		if err := l.retain(now.UnixMilli()); err != nil {
			m.o.Logger.Error("retention failed", "partition", l.tp.String(), "error", err)
		}
	}
}

// expireProducers forgets producers that were idle since before.
func (m *Manager) expireProducers(before time.Time) {
	for _, l := range m.Logs() {
		if l.state.Load() != loaded {
			continue
		}
		l.mu.Lock()
		l.mu.producers.expire(before.UnixMilli())
		l.mu.Unlock()
	}
}
