package interop

import (
	"testing"

	"barnabas/test/real"
)

func TestMain(m *testing.M) { real.Main(m) }
