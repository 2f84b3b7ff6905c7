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
	// Scenarios of one dev cluster spend most of their time waiting, so all of them run in parallel on any number of
	// cores.
	if err := flag.Set("test.parallel", "16"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
