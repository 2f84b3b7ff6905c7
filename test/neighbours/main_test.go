package neighbours

import (
	"os"
	"testing"

	"heliostat.dev/heliostat/test/rig"
)

func TestMain(m *testing.M) {
	rig.Quiet()
	os.Exit(m.Run())
}
