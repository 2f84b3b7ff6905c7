package phrase

import (
	"testing"

	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestMemoryIsFormattedInOneUnit(t *testing.T) {
	bytes := raydemand.Whole
	for _, c := range []struct {
		need, has int64
		want      string
	}{
		{1_500_000_000, 8 << 30, "needs 1.4 GiB memory, has 8 GiB"},
		{512 << 20, 4 << 30, "needs 0.5 GiB memory, has 4 GiB"},
		{512 << 20, 300 << 20, "needs 512 MiB memory, has 300 MiB"},
		{8<<30 + 1, 8 << 30, "needs 8.000000001 GiB memory, has 8 GiB"},
		{2 << 40, 1 << 40, "needs 2048 GiB memory, has 1024 GiB"},
		{8 << 30, 0, "needs 8 GiB memory, has 0"},
		{100, 7, "needs 100 B memory, has 7 B"},
	} {
		if got := NeedsHas(raydemand.Memory, bytes(c.need), bytes(c.has)); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
