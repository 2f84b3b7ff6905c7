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
		node := NodeObject{Labels: map[string]string{labelACKMode: value}, Allocatable: map[string]int64{gpuinfo.AliyunMemory: 22}}
		if read := (Reader{}).Read(node); read.Isolation != want || len(read.Problems) > 0 {
			t.Errorf("%s: %v, %v; want %s", value, read.Isolation, read.Problems, want)
		}
		node.Labels[labelACKMode] = "exclusive"
		if read := (Reader{}).Read(node); read.Isolation != gpuinfo.UnknownIsolation || len(read.Problems) != 1 || !strings.Contains(read.Problems[0].Message, "exclusive") {
			t.Errorf("exclusive: %v, %v", read.Isolation, read.Problems)
		}
	}
}
