package record

// varint reads a zig-zag varint of at most 5 bytes at p[at:] and returns it with
// the position after it, or -1 as the position if it is cut short or too long.
func varint(p []byte, at int) (int32, int) {
	if uint(at) < uint(len(p)) {
		if c := p[at]; c < 0x80 {
			return int32(c>>1) ^ -int32(c&1), at + 1
		}
	}
	return varintSlow(p, at)
}

//go:noinline
func varintSlow(p []byte, at int) (int32, int) {
	var u uint32
	for shift := uint(0); shift <= 28; shift += 7 {
		if uint(at) >= uint(len(p)) {
			return 0, -1
		}
		c := p[at]
		at++
		u |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return int32(u>>1) ^ -int32(u&1), at
		}
	}
	return 0, -1
}

// varlong is varint for up to 10 bytes.
func varlong(p []byte, at int) (int64, int) {
	if uint(at) < uint(len(p)) {
		if c := p[at]; c < 0x80 {
			return int64(c>>1) ^ -int64(c&1), at + 1
		}
	}
	return varlongSlow(p, at)
}

//go:noinline
func varlongSlow(p []byte, at int) (int64, int) {
	var u uint64
	for shift := uint(0); shift <= 63; shift += 7 {
		if uint(at) >= uint(len(p)) {
			return 0, -1
		}
		c := p[at]
		at++
		u |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return int64(u>>1) ^ -int64(u&1), at
		}
	}
	return 0, -1
}

func appendVarint(p []byte, v int32) []byte {
	u := uint32(v<<1) ^ uint32(v>>31)
	for u >= 0x80 {
		p = append(p, byte(u)|0x80)
		u >>= 7
	}
	return append(p, byte(u))
}

func appendVarlong(p []byte, v int64) []byte {
	u := uint64(v<<1) ^ uint64(v>>63)
	for u >= 0x80 {
		p = append(p, byte(u)|0x80)
		u >>= 7
	}
	return append(p, byte(u))
}

func varintSize(v int32) int {
	n := 1
	for u := uint32(v<<1) ^ uint32(v>>31); u >= 0x80; u >>= 7 {
		n++
	}
	return n
}

func varlongSize(v int64) int {
	n := 1
	for u := uint64(v<<1) ^ uint64(v>>63); u >= 0x80; u >>= 7 {
		n++
	}
	return n
}
