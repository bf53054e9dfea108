package storage

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"barnabas/internal/wire"
)

// The names of Kafka's files.
const (
	lockFile            = ".lock"
	cleanFile           = ".kafka_cleanshutdown"
	bootFile            = ".barnabas_boot_id"
	metaFile            = "meta.properties"
	highWatermarkFile   = "replication-offset-checkpoint"
	recoveryPointFile   = "recovery-point-offset-checkpoint"
	cleanerFile         = "cleaner-offset-checkpoint"
	logStartFile        = "log-start-offset-checkpoint"
	epochFile           = "leader-epoch-checkpoint"
	partitionFile       = "partition.metadata"
	logSuffix           = ".log"
	indexSuffix         = ".index"
	timeIndexSuffix     = ".timeindex"
	txnIndexSuffix      = ".txnindex"
	snapshotSuffix      = ".snapshot"
	deletedSuffix       = ".deleted"
	cleanedSuffix       = ".cleaned"
	swapSuffix          = ".swap"
	tmpSuffix           = ".tmp"
	cutSuffix           = ".cut" // ours: what recovery took off a log; Kafka ignores it
	deleteDirSuffix     = "-delete"
	futureDirSuffix     = "-future"
	strayDirSuffix      = "-stray"
	metadataTopic       = "__cluster_metadata"
	maxNameLen          = 255
	offsetDigits        = 20
	maxSmallFile        = 64 << 20 // no file that is read whole is larger
	maxPartitionNumbers = 1<<31 - 1
)

// offsetName is the name of a file for a base offset: 20 digits and a suffix.
func offsetName(offset int64, suffix string) string {
	return fmt.Sprintf("%020d%s", offset, suffix)
}

// parseOffsetName undoes offsetName.
func parseOffsetName(name, suffix string) (int64, bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	if !ok || len(digits) != offsetDigits {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	return int64(n), err == nil
}

// parseFolder reads a partition folder's name, topic-P.
func parseFolder(name string) (wire.TopicPartition, bool) {
	i := strings.LastIndexByte(name, '-')
	if i <= 0 || i == len(name)-1 {
		return wire.TopicPartition{}, false
	}
	p, err := strconv.ParseUint(name[i+1:], 10, 31)
	if err != nil || name[:i] == metadataTopic || strconv.FormatUint(p, 10) != name[i+1:] {
		return wire.TopicPartition{}, false
	}
	return wire.TopicPartition{Topic: name[:i], Partition: int32(p)}, true
}

// futureFolderName is the name for a copy in another log directory
// (UnifiedLog.logFutureDirName); unlike that of a deleted one it is not cut.
func futureFolderName(tp wire.TopicPartition) string {
	return tp.String() + "." + uniqueName() + futureDirSuffix
}

// MaxMovable is the longest name of a partition's folder that a copy's fits, with
// its suffix, into a file name.
const MaxMovable = maxNameLen - len(".") - 32 - len(futureDirSuffix)

// parseFutureFolder undoes futureFolderName.
func parseFutureFolder(name string) (wire.TopicPartition, bool) {
	name, ok := strings.CutSuffix(name, futureDirSuffix)
	dot := strings.LastIndexByte(name, '.')
	if !ok || dot < 0 || len(name)-dot-1 != 32 {
		return wire.TopicPartition{}, false
	}
	return parseFolder(name[:dot])
}

// isDeleteFolder tells whether a folder waits for its removal:
// topic-P.<32 hex digits>-delete.
func isDeleteFolder(name string) bool {
	name, ok := strings.CutSuffix(name, deleteDirSuffix)
	dot := strings.LastIndexByte(name, '.')
	if !ok || dot < 0 || len(name)-dot-1 != 32 {
		return false
	}
	_, err := hex.DecodeString(name[dot+1:])
	return err == nil && strings.Contains(name[:dot], "-")
}

// deleteFolderName is the name for a folder on its way out; the topic is cut so
// that the whole fits a file name (Kafka's UnifiedLog.logDeleteDirName).
func deleteFolderName(tp wire.TopicPartition) string { return asideName(tp, deleteDirSuffix) }

func asideName(tp wire.TopicPartition, suffix string) string {
	suffix = "-" + strconv.Itoa(int(tp.Partition)) + "." + uniqueName() + suffix
	topic := tp.Topic
	if len(topic) > maxNameLen-len(suffix) {
		topic = topic[:maxNameLen-len(suffix)]
	}
	return topic + suffix
}

func uniqueName() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}
