// Package lint holds no code, only a test that reads the whole tree: which
// package may import which, that each has a comment, how long files and
// functions may be, and that decision code has no clock and no I/O. Each
// failure says how to mend it.
package lint
