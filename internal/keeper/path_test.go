package keeper

import "testing"

func TestPathsAreTakenAsZooKeeperTakesThem(t *testing.T) {
	for path, want := range map[string]bool{
		"/": true, "/a": true, "/a/b": true, "/.a": true, "/a.": true, "/...": true, "/a/..b": true, "/ü/日本": true, "/a b": true, "/\ufeff": true,
		"": false, "a": false, "//": false, "/a/": false, "/a//b": false, "/.": false, "/..": false, "/a/.": false, "/a/./b": false,
		"/a/../b": false, "/a\x00": false, "/\x1f": false, "/\x7f": false, "/\u009f": false, "/\ue000": false, "/\uf8ff": false,
		"/\ufff0": false, "/\U0001F600": false, "/\xff": false, "/a\xc3": false,
	} {
		if got := validPath(path); got != want {
			t.Errorf("%q: %v, expected %v", path, got, want)
		}
	}
}
