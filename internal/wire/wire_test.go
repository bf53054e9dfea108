package wire

import (
	"bytes"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// formatted returns a whole frame as another implementation writes it.
func formatted(r kmsg.Request, id int32) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("me")).AppendRequest(nil, r, id)
}

func TestReadHeaderOfEachKeyAndVersion(t *testing.T) {
	for key := int16(0); key <= kmsg.MaxKey; key++ {
		request := kmsg.RequestForKey(key)
		if request == nil {
			continue
		}
		for v := int16(0); v <= request.MaxVersion(); v++ {
			if key == int16(kmsg.ControlledShutdown) && v == 0 {
				continue // no client id: below
			}
			request.SetVersion(v)
			body := request.AppendTo(nil)
			r := NewReader(formatted(request, 77)[4:])
			h := ReadHeader(&r)
			want := Header{Key: key, Version: v, CorrelationID: 77, ClientID: "me", Flexible: request.IsFlexible()}
			if h != want || r.Err() != nil || !bytes.Equal(r.Rest(), body) {
				t.Errorf("key %d v%d: header %+v, error %v, %d bytes of body; want %+v and %d", key, v, h, r.Err(), len(r.Rest()), want, len(body))
			}
		}
	}
}

func TestControlledShutdownV0HasNoClientID(t *testing.T) {
	r := NewReader([]byte{0, 7, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1})
	if h := ReadHeader(&r); h != (Header{Key: 7, CorrelationID: 9}) || r.Int32() != 1 || r.Err() != nil {
		t.Errorf("header %+v, error %v", h, r.Err())
	}
}

func TestResponseHeaderHasTagsOnlyWhereKafkaHasThem(t *testing.T) {
	for _, try := range []struct {
		h    Header
		want int
	}{
		{Header{Key: 3, Version: 8}, 4},
		{Header{Key: 3, Version: 9, Flexible: true}, 5},
		{Header{Key: int16(kmsg.ApiVersions), Version: 3, Flexible: true}, 4}, // KIP-511
	} {
		if got := AppendResponseHeader(nil, try.h); len(got) != try.want {
			t.Errorf("%+v: %d bytes, want %d", try.h, len(got), try.want)
		}
	}
}

func TestACutHeaderIsMalformed(t *testing.T) {
	request := kmsg.NewPtrMetadataRequest()
	for _, v := range []int16{1, 9} {
		request.Version = v
		frame := formatted(request, 1)[4:]
		head := len(frame) - len(request.AppendTo(nil))
		for cut := range head {
			r := NewReader(frame[:cut])
			if ReadHeader(&r); !errors.Is(r.Err(), ErrMalformed) {
				t.Errorf("v%d cut at %d of %d: %v", v, cut, head, r.Err())
			}
		}
	}
}

func TestReaderTakesWhatTheWriterPut(t *testing.T) {
	for _, flexible := range []bool{false, true} {
		text := "text"
		w := Writer{}
		w.Int8(-1)
		w.Bool(true)
		w.Int16(-2)
		w.Int32(-3)
		w.Int64(-4)
		w.UUID(UUID{15: 1})
		w.Uvarint(300)
		w.String(flexible, text)
		w.NullableString(flexible, nil)
		w.NullableString(flexible, &text)
		w.StringBytes(flexible, []byte("bytes"))
		w.Length(flexible, -1)
		w.Length(flexible, 2)
		w.Int16(8)
		w.Int16(9)
		w.Tags(flexible)
		r := NewReader(w.B)
		if r.Int8() != -1 || !r.Bool() || r.Int16() != -2 || r.Int32() != -3 || r.Int64() != -4 || r.UUID() != (UUID{15: 1}) || r.Uvarint() != 300 ||
			string(r.String(flexible)) != text || r.NullableString(flexible) != nil || string(r.NullableString(flexible)) != text ||
			string(r.String(flexible)) != "bytes" || r.NullableArray(flexible, 2) != -1 || r.Array(flexible, 2) != 2 || r.Int16() != 8 || r.Int16() != 9 {
			t.Errorf("flexible %v: something came back otherwise", flexible)
		}
		r.Tags(flexible)
		if r.Err() != nil || len(r.Rest()) != 0 {
			t.Errorf("flexible %v: %v, %d bytes left", flexible, r.Err(), len(r.Rest()))
		}
	}
}

func TestClaimsBeyondTheFrameAllocateNothing(t *testing.T) {
	for name, read := range map[string]struct {
		bytes []byte
		read  func(*Reader)
	}{
		"array of 2^31-1":         {[]byte{0x7f, 0xff, 0xff, 0xff}, func(r *Reader) { r.Array(false, 1) }},
		"array of -2":             {[]byte{0xff, 0xff, 0xff, 0xfe}, func(r *Reader) { r.NullableArray(false, 1) }},
		"null array":              {[]byte{0xff, 0xff, 0xff, 0xff}, func(r *Reader) { r.Array(false, 1) }},
		"compact array of 2^32-2": {[]byte{0xff, 0xff, 0xff, 0xff, 0x0f}, func(r *Reader) { r.Array(true, 1) }},
		"string of 32767":         {[]byte{0x7f, 0xff, 'x'}, func(r *Reader) { r.String(false) }},
		"string of -2":            {[]byte{0xff, 0xfe, 'x'}, func(r *Reader) { r.NullableString(false) }},
		"null string":             {[]byte{0xff, 0xff}, func(r *Reader) { r.String(false) }},
		"bytes of 2^31-1":         {[]byte{0x7f, 0xff, 0xff, 0xff, 1}, func(r *Reader) { r.NullableBytes(false) }},
		"varint without end":      {bytes.Repeat([]byte{0xff}, 12), func(r *Reader) { r.Uvarint() }},
		"tag of 2^31 bytes":       {[]byte{1, 0, 0xff, 0xff, 0xff, 0xff, 0x07}, func(r *Reader) { r.Tags(true) }},
	} {
		var r Reader
		if n := testing.AllocsPerRun(10, func() {
			r = NewReader(read.bytes)
			if read.read(&r); !errors.Is(r.Err(), ErrMalformed) {
				t.Errorf("%s: %v", name, r.Err())
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestUUIDText(t *testing.T) {
	const text = "51wMWsARSdSOih7cHlbndQ" // as a broker of 3.9.1 wrote it
	u, err := ParseUUID(text)
	if err != nil || u.String() != text || u.IsZero() {
		t.Errorf("%s: %v, %v", text, u, err)
	}
	for _, bad := range []string{"", "51wMWsARSdSOih7cHlbnd", "51wMWsARSdSOih7cHlbndQA", "51wMWsARSdSOih7cHlbnd+"} {
		if _, err := ParseUUID(bad); !errors.Is(err, ErrBadUUID) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for range 1000 {
		if u := NewUUID(); u.String()[0] == '-' || u[6]>>4 != 4 {
			t.Fatalf("new id %v", u)
		}
	}
}

func TestCodesAreErrorsButNone(t *testing.T) {
	if None.Err() != nil || !errors.Is(NotController.Err(), NotController) {
		t.Error("None must be no error, the others their own")
	}
	if NotLeaderOrFollower.String() != "NOT_LEADER_OR_FOLLOWER" || !NotLeaderOrFollower.Retriable() || InvalidRecord.Retriable() || Code(999).String() != "UNKNOWN_CODE_999" {
		t.Error("names or retriability are off")
	}
}

func FuzzReader(f *testing.F) {
	request := kmsg.NewPtrMetadataRequest()
	request.Version = 9
	f.Add(formatted(request, 1)[4:], true)
	f.Add([]byte{0, 18, 0, 3, 0, 0, 0, 1, 0xff, 0xff, 0}, false)
	f.Fuzz(func(t *testing.T, b []byte, flexible bool) {
		r := NewReader(b)
		ReadHeader(&r)
		for n := r.NullableArray(flexible, 2); n > 0 && r.Err() == nil; n-- {
			r.NullableString(flexible)
			r.NullableBytes(flexible)
			r.Tags(flexible)
		}
		if len(r.Rest()) > len(b) {
			t.Error("more bytes than there were")
		}
	})
}
