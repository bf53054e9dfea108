package storage

import "log/slog"

// A disk that runs full takes no more records before the last bytes are gone:
// what the log directory needs besides (indexes, checkpoints, the clean mark)
// still finds room, and so no write fails halfway. Reads go on. Records are taken
// again when there is room, twice what is kept free.
const (
	leastFree = 16 << 20
	mostFree  = 256 << 20
)

// keepFree is how much of a disk stays free: a hundredth, within bounds.
func keepFree(total int64) int64 { return min(max(total/100, leastFree), mostFree) }

// checkSpace looks how full the disk is.
func (d *logDir) checkSpace() {
	free, total, err := d.fs.Free(d.path)
	if err != nil {
		return // not known: writes fail when they fail
	}
	keep := keepFree(total)
	d.sinceCheck.Store(0)
	d.tight.Store(free < 2*keep+reserveStep)
	switch was := d.full.Load(); {
	case !was && free < keep:
		d.full.Store(true)
		d.log.Error("the disk is almost full; its partitions take no records until there is room", slog.String("dir", d.path), "free", free, "needed", 2*keep)
	case was && free >= 2*keep:
		d.full.Store(false)
		d.log.Info("there is room again; records are taken", "dir", d.path, "free", free)
	}
}

// wrote counts what was appended, and looks at the disk before much more was
// than a tick of the clock would notice.
func (d *logDir) wrote(n int) {
	if d.sinceCheck.Add(int64(n)) > leastFree/4 {
		d.checkSpace()
	}
}

// FullDirs returns the log directories that take no records until there is room.
func (m *Manager) FullDirs() (paths []string) {
	for _, d := range m.dirs {
		if d.full.Load() {
			paths = append(paths, d.path)
		}
	}
	return paths
}
