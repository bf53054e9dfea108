package client

import (
	"math"
	"testing"
)

// The expected values are what java.lang and java.util answer (JDK 17).
func TestHashCodesAreThoseOfJava(t *testing.T) {
	for _, c := range []struct {
		value any
		want  int32
	}{
		{"", 0}, {"hello", 99162322}, {"Zürich", -1482116162}, {"日本語", 25921943}, {"😀", 1772899},
		{[]byte{}, 1}, {[]byte{0x80, 0x7f, 0}, -89280}, {[]byte("hello"), 127791473},
		{int32(-7), -7}, {int64(-1), 0}, {int64(1) << 32, 1}, {7, 7}, {true, 1231}, {false, 1237},
		{float32(1), 1065353216}, {1.5, 1073217536}, {math.NaN(), 2146959360},
	} {
		got, err := JavaHash(c.value)
		if err != nil || got != c.want {
			t.Errorf("JavaHash(%#v) = %d, %v; want %d", c.value, got, err, c.want)
		}
	}
	if _, err := JavaHash(struct{}{}); err == nil {
		t.Error("a type without hash code has one")
	}
	if absolute(math.MinInt32) != 0 || absolute(-5) != 5 {
		t.Error("absolute differs from kafka.utils.Utils.abs")
	}
}

// The expected values are those of Kafka's own test of murmur2.
func TestMurmur2IsThatOfTheJavaProducer(t *testing.T) {
	for key, want := range map[string]int32{
		"21": -973932308, "foobar": -790332482, "abc": 479470107,
		"a-little-bit-long-string": -985981536, "a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
	} {
		if got := Murmur2Hash([]byte(key)); got != want {
			t.Errorf("murmur2 of %q = %d, want %d", key, got, want)
		}
	}
}
