package nodepool

import (
	"maps"
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// limits are of the Ray container, and the pod asks for the same.
func gpuGroupOf(limits landing.Quantities, announced ...int64) *WorkerGroup {
	g := &WorkerGroup{
		Name: "gpu", Index: 1, Resources: raydemand.Bundle{raydemand.CPU: raydemand.One},
		Pod:  landing.PodShape{Requests: landing.Quantities{"cpu": raydemand.One}},
		GPUs: GPUSpec{Limits: limits, Field: "rayStartParams.num-gpus"},
	}
	maps.Copy(g.Pod.Requests, limits)
	for _, n := range announced {
		amount := raydemand.Whole(n)
		g.Resources[raydemand.GPU], g.GPUs.Derived, g.GPUs.DerivedBy = amount, &amount, "a test"
	}
	return g
}

// spreadOver sets the number of cards over which ACK spreads memory.
func spreadOver(g *WorkerGroup, cards int64) *WorkerGroup {
	g.Pod.CardsAsked = cards
	return g
}

func gpuNode(name string, labels map[string]string, allocatable landing.Quantities) landing.Node {
	node := landing.Node{Name: name, Ready: true, Labels: labels, Allocatable: landing.Quantities{"cpu": raydemand.Whole(16)}}
	maps.Copy(node.Allocatable, allocatable)
	return node
}

func of(name string, n int64) landing.Quantities { return landing.Quantities{name: raydemand.Whole(n)} }

func both(a, b landing.Quantities) landing.Quantities {
	sum := maps.Clone(a)
	maps.Copy(sum, b)
	return sum
}

// What gpu-feature-discovery writes for each way to declare GPUs; the text behind source is how the node is
// understood.
var (
	wholeLabels  = map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.count": "4", "nvidia.com/gpu.replicas": "1", "nvidia.com/gpu.sharing-strategy": "none"}
	singleLabels = map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "nvidia.com/gpu.count": "7", "nvidia.com/gpu.replicas": "1",
		"nvidia.com/gpu.sharing-strategy": "none", "nvidia.com/mig.strategy": "single", "nvidia.com/gpu.memory": "4864"}
	mixedLabels = map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.count": "1", "nvidia.com/gpu.replicas": "0",
		"nvidia.com/mig.strategy": "mixed", "nvidia.com/mig-1g.5gb.count": "4", "nvidia.com/mig-3g.20gb.count": "1"}
	slicedLabels = map[string]string{"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.count": "1", "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
	mpsLabels    = map[string]string{"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.count": "1", "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "mps"}
	ackLabels    = map[string]string{"ack.node.gpu.schedule": "core_mem", "aliyun.accelerator/nvidia_name": "Tesla-T4", "aliyun.accelerator/nvidia_count": "2"}
)

func TestThePluginDecidesHowManyGPUsAPodGets(t *testing.T) {
	draNode := gpuNode("n", nil, of("example.com/h100", 8))
	draNode.GPUs = &sharing.GPUs{Kind: gpuinfo.Whole, PerCard: []sharing.Card{{Source: "dra"}}}
	tests := []struct {
		name   string
		group  *WorkerGroup
		node   landing.Node
		want   int64 // -1: not known
		source string
		shares int64
	}{
		{"whole cards", gpuGroupOf(of("nvidia.com/gpu", 2)), gpuNode("n", wholeLabels, of("nvidia.com/gpu", 4)), 2, "nvidia.com/gpu on 1 node: whole NVIDIA-A100", 0},
		{"one instance of a card under the single strategy", gpuGroupOf(of("nvidia.com/gpu", 1)), gpuNode("n", singleLabels, of("nvidia.com/gpu", 7)), 1, "mig 1g.5gb of NVIDIA-A100", 0},
		{"all seven instances of a card", gpuGroupOf(of("nvidia.com/gpu", 7)), gpuNode("n", singleLabels, of("nvidia.com/gpu", 7)), 7, "mig 1g.5gb", 0},
		{"instances of two profiles add up", gpuGroupOf(both(of("nvidia.com/mig-1g.5gb", 2), of("nvidia.com/mig-3g.20gb", 1))),
			gpuNode("n", mixedLabels, both(of("nvidia.com/mig-1g.5gb", 4), of("nvidia.com/mig-3g.20gb", 1))), 3, "nvidia.com/mig-1g.5gb + nvidia.com/mig-3g.20gb", 0},
		{"an instance with media extensions", gpuGroupOf(of("nvidia.com/mig-1g.5gb.me", 1)), gpuNode("n", mixedLabels, of("nvidia.com/mig-1g.5gb.me", 1)), 1, "mig", 0},
		{"a time slice", gpuGroupOf(of("nvidia.com/gpu", 1)), gpuNode("n", slicedLabels, of("nvidia.com/gpu", 4)), 1, "time-sliced ×4 Tesla-T4", 0},
		{"a renamed time slice", gpuGroupOf(of("nvidia.com/gpu.shared", 1)), gpuNode("n", slicedLabels, of("nvidia.com/gpu.shared", 4)), 1, "nvidia.com/gpu.shared on 1 node: time-sliced ×4", 0},
		{"two time slices, maybe of one card", gpuGroupOf(of("nvidia.com/gpu", 2)), gpuNode("n", slicedLabels, of("nvidia.com/gpu", 4)), 2, "time-sliced", 2},
		{"an MPS client", gpuGroupOf(of("nvidia.com/gpu", 1)), gpuNode("n", mpsLabels, of("nvidia.com/gpu", 4)), 1, "mps ×4", 0},
		{"four GiB of a card", gpuGroupOf(of("aliyun.com/gpu-mem", 4)), gpuNode("n", ackLabels, of("aliyun.com/gpu-mem", 30)), 1, "aliyun.com/gpu-mem on 1 node: gpu-mem", 0},
		{"memory of two cards, by the pod label", spreadOver(gpuGroupOf(of("aliyun.com/gpu-mem", 20), 2), 2), gpuNode("n", ackLabels, of("aliyun.com/gpu-mem", 30)), 2, "aliyun.com/gpu-mem on 1 node: gpu-mem", 0},
		{"a Gaudi card is no GPU to Ray", gpuGroupOf(of("habana.ai/gaudi", 8)), gpuNode("n", nil, of("habana.ai/gaudi", 8)), -1, "no GPU is asked for", 0},
		{"GPUs announced on Gaudi cards", gpuGroupOf(of("habana.ai/gaudi", 8), 8), gpuNode("n", nil, of("habana.ai/gaudi", 8)), 0, "have none", 0},
		{"four GiB and a fifth of a card's cores", gpuGroupOf(both(of("aliyun.com/gpu-mem", 4), of("aliyun.com/gpu-core.percentage", 20))),
			gpuNode("n", ackLabels, both(of("aliyun.com/gpu-mem", 30), of("aliyun.com/gpu-core.percentage", 200))), 1, "aliyun.com/gpu-core.percentage + aliyun.com/gpu-mem", 0},
		{"HAMi's memory belongs to its device", gpuGroupOf(both(of("nvidia.com/gpu", 1), of("nvidia.com/gpumem", 3000))), gpuNode("n", nil, of("nvidia.com/gpu", 10)), 1, "nvidia.com/gpu on", 0},
		{"half a card is one GPU to Ray", gpuGroupOf(of("koordinator.sh/gpu", 50)), gpuNode("n", nil, of("koordinator.sh/gpu", 400)), 1, "koordinator.sh/gpu", 0},
		{"200 percent are two cards", gpuGroupOf(of("koordinator.sh/gpu", 200)), gpuNode("n", nil, of("koordinator.sh/gpu", 400)), 2, "koordinator.sh/gpu", 0},
		{"a name in no table", gpuGroupOf(of("nvidia.com/gpu-10gb", 1)), gpuNode("n", nil, of("nvidia.com/gpu-10gb", 4)), -1, "unknown GPU resource nvidia.com/gpu-10gb", 0},
		{"a device was lost, and no node has enough", gpuGroupOf(of("nvidia.com/gpu", 4)), gpuNode("n", wholeLabels, of("nvidia.com/gpu", 3)), -1, "no node could hold", 0},
		{"no GPU and none announced", gpuGroupOf(nil), gpuNode("n", nil, nil), -1, "no GPU is asked for", 0},
		{"GPUs announced, none asked for, none there", gpuGroupOf(nil, 2), gpuNode("n", nil, nil), 0, "have none", 0},
		{"GPUs announced, none asked for, some there", gpuGroupOf(nil, 2), gpuNode("n", wholeLabels, of("nvidia.com/gpu", 4)), -1, "node n has some", 0},
		{"devices of a DeviceClass that has a name like no GPU", gpuGroupOf(of("example.com/h100", 2), 2), draNode, -1, "node n has some", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := Reported(sharing.Reader{}, test.group, []landing.Node{gpuNode("cpu", nil, nil), test.node})
			if test.want < 0 != (got.Value == nil) || got.Value != nil && *got.Value != raydemand.Whole(test.want) {
				t.Errorf("reported %v, want %d; source %s", got.Value, test.want, got.Source)
			}
			if !strings.Contains(got.Source, test.source) {
				t.Errorf("source is %q, want %q in it", got.Source, test.source)
			}
			if got.Shares != test.shares {
				t.Errorf("shares are %d, want %d", got.Shares, test.shares)
			}
		})
	}
}

func TestADeclaredPoolReportsBeforeItHasANode(t *testing.T) {
	g := gpuGroupOf(of("nvidia.com/gpu.shared", 1))
	declared := gpuNode("pool-a", slicedLabels, of("nvidia.com/gpu.shared", 4))
	declared.Declared = true
	got := Reported(sharing.Reader{}, g, []landing.Node{declared, gpuNode("n", slicedLabels, of("nvidia.com/gpu.shared", 4))})
	if want := "nvidia.com/gpu.shared on 1 node and 1 declared pool: time-sliced ×4 Tesla-T4"; got.Value == nil || got.Source != want {
		t.Errorf("reported %v from %q, want %q", got.Value, got.Source, want)
	}
}

func TestAMismatchIsAFindingWithItsFix(t *testing.T) {
	reported := func(n int64) *ReportedGPUs {
		amount := raydemand.Whole(n)
		return &ReportedGPUs{Value: &amount, Source: "nvidia.com/gpu on 1 node: whole"}
	}
	ray := func(newest int64, nodes, same int) RayGPUs {
		amount := raydemand.Whole(newest)
		return RayGPUs{Nodes: nodes, Same: same, Newest: &amount}
	}
	tests := []struct {
		name      string
		announced []int64
		reported  *ReportedGPUs
		ray       RayGPUs
		field     string
		fixed     string
		code, fix string
	}{
		{name: "all agree", announced: []int64{1}, reported: reported(1), ray: ray(1, 2, 2)},
		{name: "nothing is passed", reported: reported(1), code: NumGPUsMismatch, fix: `set rayStartParams: {"num-gpus": "1"}`},
		{name: "too few are passed", announced: []int64{2}, reported: reported(3), code: NumGPUsMismatch, fix: `"num-gpus": "3"`},
		{name: "the field resources", announced: []int64{2}, reported: reported(3), field: "resources.GPU", code: NumGPUsMismatch, fix: `set resources: {"GPU": "3"}`},
		{name: "something else decides", announced: []int64{2}, reported: reported(3), fixed: "change it there", code: NumGPUsMismatch, fix: "declare 3: change it there"},
		{name: "the nodes are not known", announced: []int64{2}, ray: ray(1, 1, 1)},
		{name: "the nodes cannot tell", announced: []int64{2}, reported: &ReportedGPUs{Source: "no node"}},
		{name: "running pods are older than the spec", announced: []int64{2}, reported: reported(2), ray: ray(1, 3, 2)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := gpuGroupOf(nil, test.announced...)
			g.Reported, g.GPUs.Fixed = test.reported, test.fixed
			if test.field != "" {
				g.GPUs.Field = test.field
			}
			n := g.NumGPUs(test.ray)
			if n.Mismatch != (test.code == NumGPUsMismatch) {
				t.Errorf("mismatch is %v", n.Mismatch)
			}
			all := g.NumGPUsFindings(n)
			if test.code == "" {
				if len(all) > 0 {
					t.Errorf("findings %+v", all)
				}
				return
			}
			if len(all) != 1 || all[0].Code != test.code || !strings.Contains(all[0].Fix, test.fix) || !strings.HasPrefix(all[0].Field, "spec.workerGroupSpecs[1].") {
				t.Errorf("findings %+v, want one of %s with fix %s", all, test.code, test.fix)
			}
		})
	}
}

func TestTheSpecForbidsTheSyncForAReasonThatIsNamed(t *testing.T) {
	tests := []struct {
		code   string
		change func(*Cluster, *WorkerGroup)
	}{
		{"", func(*Cluster, *WorkerGroup) {}},
		{"", func(c *Cluster, _ *WorkerGroup) { c.UpgradeStrategy = "None" }},
		{SyncRecreate, func(c *Cluster, _ *WorkerGroup) { c.UpgradeStrategy = "Recreate" }},
		{SyncOwned, func(c *Cluster, _ *WorkerGroup) { c.Owner = Owner{Kind: "RayJob", Name: "train"} }},
		{SyncOwned, func(c *Cluster, _ *WorkerGroup) { c.Owner = Owner{Kind: "RayService", Name: "chat"} }},
		{SyncSpecRefused, func(c *Cluster, _ *WorkerGroup) { c.Refused = true }},
		{SyncBroken, func(_ *Cluster, g *WorkerGroup) { g.Broken = true }},
		{SyncFixed, func(_ *Cluster, g *WorkerGroup) { g.GPUs.Fixed = "change it there" }},
		{SyncNoGPU, func(_ *Cluster, g *WorkerGroup) { g.Reported = &ReportedGPUs{Value: new(raydemand.Amount)} }},
	}
	for _, test := range tests {
		c, g := &Cluster{}, gpuGroupOf(of("nvidia.com/gpu", 1), 1)
		test.change(c, g)
		code := ""
		if refusal := c.SyncRefusal(g); refusal != nil {
			code = refusal.Code
		}
		if code != test.code {
			t.Errorf("refused as %q, want %q", code, test.code)
		}
	}
}

func TestAGroupIsEmptyWithoutPodsAndPlans(t *testing.T) {
	g := &WorkerGroup{Name: "gpu", Max: 5}
	c := &Cluster{Workers: []Worker{{Pod: "other", Group: "cpu"}}}
	if !c.Empty(g) {
		t.Error("not empty without a pod")
	}
	g.Replicas = 1
	if c.Empty(g) {
		t.Error("empty although a pod is on its way")
	}
	g.Replicas, g.Min = 0, 1
	if c.Empty(g) {
		t.Error("empty although the operator keeps one pod")
	}
	g.Min, c.Workers = 0, append(c.Workers, Worker{Pod: "ending", Group: "gpu", Terminating: true})
	if c.Empty(g) {
		t.Error("empty although a pod is still ending")
	}
}

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

func TestSeveralInstancesAreReportedUnlessTheGroupDeclaresOneGPU(t *testing.T) {
	g := gpuGroupOf(of("nvidia.com/gpu", 7), 7)
	g.Reported = Reported(sharing.Reader{}, g, []landing.Node{gpuNode("n", singleLabels, of("nvidia.com/gpu", 7))})
	if all := g.NumGPUsFindings(g.NumGPUs(RayGPUs{})); len(all) != 1 || all[0].Code != MIGInstancesSeveral {
		t.Errorf("findings %+v, want one of %s", all, MIGInstancesSeveral)
	}
	for _, g := range []*WorkerGroup{gpuGroupOf(of("nvidia.com/mig-1g.5gb", 1), 1), gpuGroupOf(of("nvidia.com/mig-1g.5gb", 7), 1)} {
		g.GPUs.Declared = new(raydemand.One)
		g.Reported = Reported(sharing.Reader{}, g, []landing.Node{gpuNode("n", mixedLabels, of("nvidia.com/mig-1g.5gb", 7))})
		n := g.NumGPUs(RayGPUs{})
		if all := g.NumGPUsFindings(n); len(all) > 0 || *n.Reported != raydemand.One {
			t.Errorf("findings %+v, reported %s", all, n.Reported)
		}
	}
}
