package neighbours

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"heliostat.dev/heliostat/test/rig"
)

func TestMain(m *testing.M) {
	rig.Quiet()
	// Scenarios of one dev cluster wait for others most of the time, so all run side by side, however few cores there
	// are.
	if err := flag.Set("test.parallel", "16"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
