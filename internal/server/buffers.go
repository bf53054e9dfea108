package server

import (
	"math/bits"
	"sync"
)

const (
	smallestClass = 9  // 512 bytes
	largestClass  = 24 // 16 MiB; larger buffers are left to the collector
)

// buffer is memory for a frame or a piece of an answer.
type buffer struct {
	b     []byte // its whole capacity
	class int    // -1: not pooled
}

var pools [largestClass + 1]sync.Pool

// bufferSize returns how large the buffer for n bytes is.
func bufferSize(n int) int {
	if class := classOf(n); class <= largestClass {
		return 1 << class
	}
	return n
}

func classOf(n int) int { return max(smallestClass, bits.Len(uint(max(n, 1)-1))) }

// getBuffer returns a buffer of at least n bytes.
func getBuffer(n int) *buffer {
	class := classOf(n)
	if class > largestClass {
		return &buffer{make([]byte, n), -1}
	}
	if b, ok := pools[class].Get().(*buffer); ok {
		return b
	}
	return &buffer{make([]byte, 1<<class), class}
}

// putBuffer gives a buffer back; nobody may hold a part of it.
func putBuffer(b *buffer) {
	if b != nil && b.class >= 0 {
		pools[b.class].Put(b)
	}
}
