package record

// Each calls f for each record of the entry, in order. The Record is the same
// one each time and aliases buffers that are used again: f copies what it
// keeps. An error of f ends the walk and is returned as it is.
//
// A compressed entry is decompressed first, up to limit bytes (0: DefaultLimit).
// The lengths of each record, the record count and, inside compressed v0 and
// v1 entries, the CRCs are checked; the CRC of the entry itself is not (see
// [Batch.Check]). What is wrong is an [Error]. Nothing is allocated for a
// record.
func (b Batch) Each(limit int, f func(*Record) error) error {
	return b.each(limit, f)
}

// Each calls f for each record of each whole entry of the set, with the entry.
// It ends without an error at a torn tail, as a consumer does, and with an
// [Error] at one that can't be an entry. See [Batch.Each].
func Each(set []byte, limit int, f func(Batch, *Record) error) error {
	s := Split(set)
	var b Batch
	call := func(r *Record) error { return f(b, r) }
	for s.Next() {
		b = s.Batch()
		if err := b.each(limit, call); err != nil {
			return err
		}
	}
	if err := s.Err(); err != ErrTorn {
		return err
	}
	return nil
}
