package manifests

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// As serve does, a plan from a file leaves out nodes whose GPUs are all bad, unless too many are.
func TestAPlanFromAFileLeavesOutNodesWithBadGPUs(t *testing.T) {
	for _, test := range []struct {
		bad, healthy int
		usable       string // on the first node, which is bad
	}{{1, 0, "0"}, {1, 1, "0"}, {5, 0, "0"}, {6, 0, "8"}, {2, 4, "8"}, {1, 5, "0"}} {
		var nodes []string
		for i := range test.bad + test.healthy {
			status := "False"
			if i < test.bad {
				status = "True"
			}
			nodes = append(nodes, fmt.Sprintf(`{"kind": "Node", "metadata": {"name": "n%d", "labels": {"nvidia.com/gpu.count": "8"}}, "status": {"allocatable": {"cpu": "8", "nvidia.com/gpu": "8"}, "conditions": [{"type": "XIDErrors", "status": %q}]}}`, i, status))
		}
		read, err := placesOf(sharing.Reader{}, snapshotfile.Document{KubeNodes: json.RawMessage("[" + strings.Join(nodes, ",") + "]")})
		if err != nil {
			t.Fatal(err)
		}
		for i, node := range read.nodes {
			want := "8"
			if i < test.bad {
				want = test.usable
			}
			if got := fmt.Sprint(node.Usable("nvidia.com/gpu")); got != want {
				t.Errorf("%d bad and %d healthy nodes: %s has %s usable, want %s", test.bad, test.healthy, node.Name, got, want)
			}
		}
	}
}
