package nodepool

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestInstancesAreCountedByNamesAndByNodes(t *testing.T) {
	shared := map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED", "nvidia.com/gpu.count": "7", "nvidia.com/gpu.replicas": "4", "nvidia.com/mig.strategy": "single"}
	tests := []struct {
		name  string
		group *WorkerGroup
		nodes []landing.Node
		want  int64
	}{
		{"names, no node", gpuGroupOf(of("nvidia.com/mig-1g.5gb", 7)), nil, 7},
		{"two profiles", gpuGroupOf(both(of("nvidia.com/mig-1g.5gb", 2), of("nvidia.com/mig-3g.20gb", 1))), nil, 3},
		{"shares of instances", gpuGroupOf(of("nvidia.com/mig-1g.5gb.shared", 7)), nil, 0},
		{"a plain name, no node", gpuGroupOf(of("nvidia.com/gpu", 7)), nil, 0},
		{"the single strategy", gpuGroupOf(of("nvidia.com/gpu", 7)), []landing.Node{gpuNode("n", singleLabels, of("nvidia.com/gpu", 7))}, 7},
		{"the single strategy beside cards", gpuGroupOf(of("nvidia.com/gpu", 4)),
			[]landing.Node{gpuNode("a", wholeLabels, of("nvidia.com/gpu", 4)), gpuNode("b", singleLabels, of("nvidia.com/gpu", 7))}, 4},
		{"the single strategy, time-sliced", gpuGroupOf(of("nvidia.com/gpu", 7)), []landing.Node{gpuNode("n", shared, of("nvidia.com/gpu", 28))}, 0},
		{"whole cards", gpuGroupOf(of("nvidia.com/gpu", 4)), []landing.Node{gpuNode("n", wholeLabels, of("nvidia.com/gpu", 4))}, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.nodes != nil {
				test.group.Reported = Reported(sharing.Reader{}, test.group, test.nodes)
			}
			if got := test.group.MIGInstances(); got != test.want {
				t.Errorf("%d instances, want %d", got, test.want)
			}
		})
	}
}

func TestSeveralInstancesArePlannedAsTheAnnotationSays(t *testing.T) {
	nodes := []landing.Node{gpuNode("n", singleLabels, of("nvidia.com/gpu", 7))}
	for mode, want := range map[MIGGPUs]struct {
		planned, reported int64
		code              string
	}{"": {7, 7, MIGInstancesSeveral}, MIGAll: {7, 7, MIGInstancesSeveral}, MIGOne: {1, 1, NumGPUsMismatch}} {
		g := gpuGroupOf(of("nvidia.com/gpu", 7), 7)
		g.MIGGPUs = mode
		g.Reported = Reported(sharing.Reader{}, g, nodes)
		n := g.NumGPUs(RayGPUs{})
		if got := g.PlannedResources()[raydemand.GPU]; got != raydemand.Whole(want.planned) || *n.Reported != raydemand.Whole(want.reported) {
			t.Errorf("%q: planned %s, reported %s; want %d and %d", mode, got, n.Reported, want.planned, want.reported)
		}
		if g.Resources[raydemand.GPU] != raydemand.Whole(7) {
			t.Errorf("%q changed what the pods report to Ray: %s", mode, g.Resources[raydemand.GPU])
		}
		all := g.NumGPUsFindings(n)
		if len(all) != 1 || all[0].Code != want.code {
			t.Fatalf("%q: findings %+v, want one of %s", mode, all, want.code)
		}
		if mode == MIGOne && !strings.HasSuffix(all[0].Why, "the plan uses 1, as the annotation says") {
			t.Errorf("the finding says of the plan: %s", all[0].Why)
		}
		if mode == MIGOne && (!strings.Contains(all[0].Fix, `"num-gpus": "1"`) || !strings.Contains(n.Sources.Reported, "7 instances count as 1 GPU")) {
			t.Errorf("fix %s; source %s", all[0].Fix, n.Sources.Reported)
		}
	}
}

// With one instance, or with num-gpus 1, there is nothing to say.
func TestOneInstanceInAPodIsAGPU(t *testing.T) {
	for _, g := range []*WorkerGroup{gpuGroupOf(of("nvidia.com/mig-1g.5gb", 1), 1), gpuGroupOf(of("nvidia.com/mig-1g.5gb", 7), 1)} {
		g.MIGGPUs = MIGOne
		g.Reported = Reported(sharing.Reader{}, g, []landing.Node{gpuNode("n", mixedLabels, of("nvidia.com/mig-1g.5gb", 7))})
		n := g.NumGPUs(RayGPUs{})
		if all := g.NumGPUsFindings(n); len(all) > 0 || g.PlannedResources()[raydemand.GPU] != raydemand.One {
			t.Errorf("findings %+v, planned %v", all, g.PlannedResources())
		}
	}
}
