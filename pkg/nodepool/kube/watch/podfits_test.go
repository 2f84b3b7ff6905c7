package watch

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/kube/rayobject"
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// A pool that its autoscaler has taken down to nothing shows by its declaration what a pod would get.
func TestWhatIsReportedCountsPoolsWithoutANode(t *testing.T) {
	cluster, err := rayobject.DecodeManifest(nodegpu.Reader{}, []byte(`
metadata: {namespace: ml, name: llm, uid: u-1}
spec:
  workerGroupSpecs:
  - groupName: gpu
    rayStartParams: {num-gpus: "1"}
    template: {spec: {containers: [{name: ray-worker, resources: {limits: {cpu: 4, memory: 8Gi, nvidia.com/mig-1g.10gb: 1}}}]}}
`))
	if err != nil {
		t.Fatal(err)
	}
	pool := podfit.Node{Name: "slices", Ready: true, Declared: true, Allocatable: podfit.Quantities{
		"cpu": raydemand.Whole(16), "memory": raydemand.Whole(64 << 30), "nvidia.com/mig-1g.10gb": raydemand.Whole(7)}}
	known := newFitCache()
	got := known.of(&cluster, viewOf(nil, pool)).gpus[0]
	if got.Value == nil || *got.Value != raydemand.One || !strings.Contains(got.Source, "1 declared pool") {
		t.Errorf("reported %v from %q, want 1 from the pool", got.Value, got.Source)
	}
}
