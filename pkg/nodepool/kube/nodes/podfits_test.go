package nodes

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// A pool that its autoscaler has taken down to nothing shows by its declaration what a pod would get.
func TestWhatIsReportedCountsPoolsWithoutANode(t *testing.T) {
	cluster, _, err := decode.DecodeManifest(sharing.Reader{}, []byte(`
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
	pool := landing.Node{Name: "slices", Ready: true, Declared: true, Allocatable: landing.Quantities{
		"cpu": raydemand.Whole(16), "memory": raydemand.Whole(64 << 30), "nvidia.com/mig-1g.10gb": raydemand.Whole(7)}}
	known := newFitCache()
	got := known.of(&cluster, viewOf(nil, pool)).gpus[0]
	if got.Value == nil || *got.Value != raydemand.One || !strings.Contains(got.Source, "1 declared pool") {
		t.Errorf("reported %v from %q, want 1 from the pool", got.Value, got.Source)
	}
}

// What new pods announce follows from nodes and from what a NodePool would add, and is kept with the rest of the view.
func TestGroupsLearnWhatTheirPodsWillAnnounce(t *testing.T) {
	cluster, _, err := decode.DecodeManifest(sharing.Reader{}, []byte(`
metadata: {namespace: ml, name: llm, uid: u-1}
spec:
  rayVersion: 2.60.0
  workerGroupSpecs:
  - groupName: gpu
    template: {spec: {containers: [{name: ray-worker, env: [{name: RAY_NODE_MARKET_TYPE, value: spot}], resources: {limits: {cpu: 4, memory: 8Gi, nvidia.com/gpu: 1}}}]}}
`))
	if err != nil {
		t.Fatal(err)
	}
	template := &landing.NodeTemplate{Labels: map[string]string{"clique": "d1"},
		Requirements: []landing.Requirement{{Key: "karpenter.k8s.aws/instance-gpu-name", Operator: "In", Values: []string{"h100"}}}}
	known := newFitCache()
	known.reader.TopologyLabels = []sharing.TopologyLabel{{Node: "clique", Ray: "ray.io/gpu-domain"}}
	announced := func(nodes ...landing.Node) (all []string) {
		view := viewOf(nodes)
		view.stock = landing.NodesOf(nodes, landing.Pools{Rooms: []landing.Room{{Pool: "k", Source: landing.FromKarpenter, Mixed: true, Template: template}}})
		for _, a := range known.of(&cluster, view).announces[0] {
			all = append(all, fmt.Sprintf("%s%v%t", a.Name, a.Values, a.Certain))
		}
		return all
	}
	want := []string{"accelerator_type:[H100]true", "ray.io/accelerator-type[H100]true", "ray.io/gpu-domain[d1]true", "ray.io/market-type[spot]true"}
	if got := announced(); !slices.Equal(got, want) {
		t.Errorf("by the NodePool alone %q, want %q", got, want)
	}
	other := landing.Node{Name: "n", Pool: "k", Ready: true, Labels: map[string]string{"clique": "d2", "nvidia.com/gpu.product": "Tesla-T4"},
		Allocatable: landing.Quantities{"cpu": raydemand.Whole(16), "memory": raydemand.Whole(64 << 30), "nvidia.com/gpu": raydemand.One, "pods": raydemand.Whole(110)}}
	want = []string{"accelerator_type:[H100 T4]false", "ray.io/accelerator-type[H100 T4]false", "ray.io/gpu-domain[d1 d2]false", "ray.io/market-type[spot]true"}
	if got := announced(other); !slices.Equal(got, want) {
		t.Errorf("with a node of another kind %q, want %q", got, want)
	}
}
