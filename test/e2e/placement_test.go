package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/test/devcluster/nodeagent"
	"heliostat.dev/heliostat/test/rig"
)

// sliceGroups are groups with one slice of a GPU each. Their pods never join Ray.
var sliceGroups = []struct {
	rig.Group
	// nodes are those that have such slices.
	nodes []string
}{
	{rig.Group{Name: "small", Devices: map[string]int64{"nvidia.com/mig-1g.5gb": 1}}, []string{"gpus-mixed", "gpus-media", "aks-mig-0"}},
	{rig.Group{Name: "half", Devices: map[string]int64{"nvidia.com/mig-3g.20gb": 1}}, []string{"gpus-mixed"}},
	{rig.Group{Name: "card", Devices: map[string]int64{"nvidia.com/gpu": 1},
		NodeSelector: map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}}, []string{"gpu-0", "gpu-1"}},
	{rig.Group{Name: "limited", Devices: map[string]int64{"nvidia.com/gpu": 1, "nvidia.com/gpumem": 4000},
		NodeSelector: map[string]string{"gpus": "hami"}}, []string{"gpus-hami"}},
	{rig.Group{Name: "sliced", Devices: map[string]int64{"nvidia.com/gpu": 1},
		NodeSelector: map[string]string{"gpus": "sliced"}}, []string{"gpus-sliced"}},
}

// TestSliceRequestsOverRESTGetTheSlicesThatMeetThem requests memory, compute and isolation of GPUs. One pod each serves
// them, on a node that has such slices. Time slices, which guarantee nothing, serve none of them. Then two groups share
// the cards of one pool.
func TestSlicesAreGivenToWhatTheyMeetAndShared(t *testing.T) {
	t.Parallel()
	cluster := rig.Cluster{Name: "slices", IdleSeconds: 600}
	for _, g := range sliceGroups {
		g.Image, g.Max = rig.SleeperImage, 4
		cluster.Groups = append(cluster.Groups, g.Group)
	}
	cluster.Groups = append(cluster.Groups, onCard("eight", 8), onCard("nine", 9))
	s := stage(t, cluster)
	const requests = `
		{"slice": {"memory": "4500Mi", "isolation": "hardware"}, "count": 2},
		{"slice": {"memory": "16Gi", "isolation": "hardware"}},
		{"slice": {"computeFraction": 0.9}},
		{"slice": {"memory": "3900Mi", "isolation": "limit"}}`
	s.rest(http.MethodPost, "/request_resources", `{"bundles": [`+requests+`]}`)
	want := map[string]int{"small": 2, "half": 1, "card": 1, "limited": 1}
	for _, g := range sliceGroups {
		s.scheduled(g.Name, want[g.Name], g.nodes)
	}
	s.quiet("each requirement has its slice")
	for _, g := range sliceGroups {
		s.created(g.Name, want[g.Name])
	}
	s.rest(http.MethodPost, "/request_resources", `{"bundles": [`+requests+`, {"slice": {"memory": "200Gi"}}]}`)
	s.told("that no slice has so much memory", func(st status) bool { return st.unmet("impossible") })
	s.rest(http.MethodDelete, "/request_resources", "")
	s.sharesCards("eight", "nine")
}

// onCard is a group whose pods take GiB of one card of pool cards, and have a resource of their own. They never join Ray.
func onCard(name string, gib int64) rig.Group {
	return rig.Group{Name: name, Max: 4, Image: rig.SleeperImage, Devices: map[string]int64{"aliyun.com/gpu-mem": gib},
		NodeSelector: map[string]string{"alibabacloud.com/nodepool-id": "cards"},
		Params:       map[string]string{"resources": `"{\"` + name + `\": 1}"`}}
}

// sharesCards needs two workers of each of two groups. Each group fits twice on the two cards of a pool that cannot
// grow. Together, two pods fit.
func (s *scene) sharesCards(groups ...string) {
	s.Helper()
	driver := s.drive()
	for _, name := range groups {
		for i := range 2 {
			s.do(driver, rig.Command{Do: "task", ID: fmt.Sprint(name, i), Resources: map[string]float64{name: 1}})
		}
	}
	pods := func(facts []rig.Fact) (all []string) {
		for _, name := range groups {
			all = append(all, rig.Pods(facts, name)...)
		}
		return all
	}
	s.eventually("a pod for each of the two cards", func(facts []rig.Fact) bool { return len(pods(facts)) >= 2 })
	s.told("what exceeds the cards", func(st status) bool { return st.unmet("capped") })
	s.quiet("the cards are full")
	if all := pods(s.journal.Facts()); len(all) != 2 {
		s.Errorf("pods %v were created, want 2 for two cards", all)
	}
}

// scheduled waits until the scheduler has bound n pods of the group, and checks their nodes.
func (s *scene) scheduled(group string, n int, nodes []string) {
	s.Helper()
	var bound []rig.Fact
	s.eventually(group+" to be scheduled", func(facts []rig.Fact) bool {
		bound = slices.DeleteFunc(slices.Clone(facts), func(f rig.Fact) bool { return f.Stage != rig.Scheduled || f.Group != group })
		return len(bound) >= n
	})
	for _, f := range bound {
		if node := strings.TrimPrefix(f.Detail, "on "); !slices.Contains(nodes, node) {
			s.Errorf("%s of group %s is on %s, want one of %v", f.Pod, group, node, nodes)
		}
	}
}

// aksPool is a node of a pool of AKS with the mixed strategy, once a node autoscaler has added it. Until then, the dev
// cluster has a node of that name without GPUs.
var aksPool = nodeagent.NodeSpec{
	Name: "aks-mig-0",
	Labels: map[string]string{
		"kubernetes.azure.com/agentpool": "mig", "agentpool": "mig", "kubernetes.azure.com/accelerator": "nvidia",
		"nvidia.com/gpu.present": "true", "nvidia.com/gpu.count": "1", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB",
		"nvidia.com/gpu.memory": "40960", "nvidia.com/gpu.replicas": "0", "nvidia.com/gpu.sharing-strategy": "none",
		"nvidia.com/mig.capable": "true", "nvidia.com/mig.strategy": "mixed", "nvidia.com/mig.config.state": "success",
		"nvidia.com/mig-1g.5gb.count": "7", "nvidia.com/mig-1g.5gb.memory": "4864", "nvidia.com/mig-1g.5gb.replicas": "1",
		"nvidia.com/mig-1g.5gb.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb",
	},
	Taints:   []corev1.Taint{{Key: "sku", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}},
	Capacity: map[string]string{"cpu": "4", "memory": "8Gi", "nvidia.com/mig-1g.5gb": "7"},
}

// domain is the topology label of the racks.
const domain = "ray.io/gpu-domain"

// rack is a group on one rack. Its template does not show the label that its Ray nodes have, as with a webhook.
func rack(name string, most int64) rig.Group {
	return rig.Group{Name: "rack-" + name, Max: most, NodeSelector: map[string]string{"rack": name}, Variables: "rack-" + name,
		Params: map[string]string{"resources": `"{\"seat\": 1}"`}}
}

// TestWorkIsPlacedByStrategyAndLabels creates a placement group of each strategy and one that must be on one rack, a
// task whose first choice of labels no group has, and a task for a pool of nodes that has no node. All groups are at
// zero. Each gets exactly the workers it needs.
func TestWorkIsPlacedByStrategyAndLabels(t *testing.T) {
	t.Parallel()
	pair := rig.Group{Name: "cpu", Max: 6, CPU: "4"}
	spot := rig.Group{Name: "spot", Max: 2, Labels: map[string]string{"tier": "spot"}}
	mig := rig.Group{Name: "mig", Max: 7, Labels: map[string]string{"pool": "mig"},
		Devices:      map[string]int64{"nvidia.com/mig-1g.5gb": 1},
		NodeSelector: map[string]string{"kubernetes.azure.com/agentpool": "mig"}}
	s := stage(t, rig.Cluster{Name: "places", IdleSeconds: 600, Groups: []rig.Group{pair, spot, mig, rack("a", 1), rack("b", 2)}})
	for _, name := range []string{"a", "b"} {
		_, err := lab.Kube.CoreV1().ConfigMaps(s.namespace).Create(s.ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "rack-" + name},
			Data:       map[string]string{"RAY_OVERRIDE_LABELS": `{"` + domain + `": "domain-` + name + `"}`},
		}, metav1.CreateOptions{})
		s.must(err)
	}
	driver := s.drive()

	zero := task("zero", 1)
	zero.Labels = mig.Labels
	cheap := rig.Command{Do: "task", ID: "cheap", CPUs: 1, Labels: map[string]string{"tier": "reserved"}, Fallbacks: []map[string]string{{"tier": "spot"}}}
	// Rack a has room for one of the two bundles only.
	seat := map[string]float64{"seat": 1}
	racked := rig.Command{Do: "group", ID: "racked", Topology: domain, Bundles: []map[string]float64{seat, seat}}
	s.do(driver, zero, cheap, racked)
	s.firstPod("mig")
	ctx, cancel := s.patient()
	defer cancel()
	s.must(lab.Cluster.Agent().SetNode(ctx, aksPool)) // as a node autoscaler adds it

	// A worker of group cpu holds two bundles, one of another group none.
	gangs := func(workers int, strategies map[string]int) {
		s.Helper()
		half := map[string]float64{"CPU": 2}
		for strategy := range strategies {
			s.do(driver, rig.Command{Do: "group", ID: strategy, Strategy: strategy, Bundles: []map[string]float64{half, half}})
		}
		for strategy, nodes := range strategies {
			if placed := s.see(driver, strategy, "placed"); len(placed.Nodes) != nodes {
				s.Errorf("%s: the bundles are on %d nodes, want %d", strategy, len(placed.Nodes), nodes)
			}
		}
		s.created("cpu", workers)
	}
	gangs(2, map[string]int{"STRICT_SPREAD": 2}) // each of two workers has room for one more
	gangs(2, map[string]int{"SPREAD": 2})        // which is just enough
	gangs(4, map[string]int{"STRICT_PACK": 1, "PACK": 1})

	s.see(driver, "cheap", "running")
	s.see(driver, "zero", "running")
	s.see(driver, "racked", "placed")
	s.quiet("all work is placed")
	for group, n := range map[string]int{"cpu": 4, "spot": 1, "mig": 1, "rack-a": 0, "rack-b": 2} {
		s.created(group, n)
	}
	s.scheduled("mig", 1, []string{aksPool.Name})
}
