package keeper

import (
	"os"
	"testing"

	"barnabas/test/real"
)

// TestMain turns this binary into a server when a test asks for a child
// process to kill.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		serveUntilKilled(dir)
	}
	real.Main(m)
}
