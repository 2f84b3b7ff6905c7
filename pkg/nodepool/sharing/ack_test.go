package sharing

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

func TestCoresOnACKAreMultiplesOfFive(t *testing.T) {
	for cores := int64(-5); cores <= 110; cores++ {
		want := cores == 0 || cores > 0 && cores <= 100 && cores%5 == 0
		if err := CheckACK(1, cores); (err == nil) != want {
			t.Errorf("%d percent: %v", cores, err)
		}
	}
	if CheckACK(0, 20) == nil {
		t.Error("cores without memory are accepted")
	}
}

func TestACKModesSayWhatIsKeptApart(t *testing.T) {
	for value, want := range map[string]gpuinfo.Isolation{"cgpu": gpuinfo.Limit, "core_mem": gpuinfo.Limit, "mps": gpuinfo.Limit, "share": gpuinfo.NoIsolation, "default": gpuinfo.Hardware, "topology": gpuinfo.Hardware} {
		if mode, err := parseACKMode(value); err != nil || mode.isolation() != want {
			t.Errorf("%s: %v, %v; want %s", value, mode.isolation(), err, want)
		}
	}
	if _, err := parseACKMode("exclusive"); err == nil || !strings.Contains(err.Error(), "exclusive") {
		t.Errorf("exclusive: %v", err)
	}
}
