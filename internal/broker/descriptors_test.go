package broker

import (
	"math"
	"testing"
)

func TestConnectionsLeaveDescriptorsToTheLogs(t *testing.T) {
	for _, limit := range []int{256, 300, 1024, 4096, 65536, 1 << 20, 1 << 30} {
		for _, embedded := range []bool{false, true} {
			d := shareDescriptors(limit, embedded)
			if used := d.files + d.keeper + d.connections; used > limit-48 || used < min(limit/2, limit-65536) {
				t.Errorf("of %d descriptors %d are given away: %+v", limit, used, d)
			}
			if d.connections < 16 || embedded != (d.keeper > 0) {
				t.Errorf("limit %d: %+v", limit, d)
			}
		}
	}
	if d := shareDescriptors(20, true); d.connections < 8 || d.keeper < 1 || d.files < 64 {
		t.Errorf("with hardly any descriptors: %+v", d)
	}
	d := descriptors{connections: 100}
	for configured, want := range map[int]int{0: 100, 7: 7, 101: 100, math.MaxInt32: 100} {
		if got := d.bound(configured); got != want {
			t.Errorf("max.connections=%d: %d connections, expected %d", configured, got, want)
		}
	}
}
