// Package vfs is the seam between the broker and the file system.
//
// [OS] is the real one: raw pread, pwrite and fdatasync on descriptors that
// sendfile can use. [NewMem] makes an in-memory twin which knows what was
// synced: [Mem.CrashClone] returns the tree as it could look after the machine
// lost power. [NewFaulty] wraps either and lets a test make any call fail, or
// write short.
//
// The package refuses to buffer: what is written is in the page cache when the
// call returns, and nothing is durable until Sync (of the file) and SyncDir (of
// the folder that names it) have returned.
//
// Locks: Mem has one mutex over the whole tree; it is held while bytes are
// copied, never while anything else is waited for. OS has none.
//
// Invariants:
//  1. WriteAt writes all of its bytes or returns an error with the count that
//     was written; ReadAt fills its buffer or returns io.EOF or an error, as
//     io.ReaderAt says.
//  2. Errors are *fs.PathError (or *os.LinkError), so that errors.Is works with
//     fs.ErrNotExist and with system error numbers such as ENOSPC.
//  3. A File stays usable after its name was removed or renamed, until Close.
package vfs
