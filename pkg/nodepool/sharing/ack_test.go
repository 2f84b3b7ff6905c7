package sharing

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

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
