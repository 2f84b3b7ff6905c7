package model

import (
	"testing"

	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestMemoryIsFormattedInOneUnit(t *testing.T) {
	bytes := raydemand.Whole
	for _, c := range []struct {
		need, has         int64
		needText, hasText string
	}{
		{1_500_000_000, 8 << 30, "1.4 GiB", "8 GiB"},
		{512 << 20, 4 << 30, "0.5 GiB", "4 GiB"},
		{512 << 20, 300 << 20, "512 MiB", "300 MiB"},
		{8<<30 + 1, 8 << 30, "8.000000001 GiB", "8 GiB"},
		{2 << 40, 1 << 40, "2048 GiB", "1024 GiB"},
		{8 << 30, 0, "8 GiB", "0"},
		{100, 7, "100 B", "7 B"},
	} {
		if need, has := Pair(raydemand.Memory, bytes(c.need), bytes(c.has)); need != c.needText || has != c.hasText {
			t.Errorf("%s and %s, want %s and %s", need, has, c.needText, c.hasText)
		}
	}
}
