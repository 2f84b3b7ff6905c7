package e2e

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/test/devcluster/nodeagent"
	"heliostat.dev/heliostat/test/rig"
)

// TestWorkGetsExactlyTheWorkersItNeeds creates demand in every way that Ray has on one RayCluster: tasks, fractions of
// GPUs, label selectors with and without a fallback, a placement group of each strategy and one for one rack, requests
// over REST and through the SDK, and demand that nothing can serve. It stays, so each step needs new workers. Any
// additional worker means that demand was counted twice.
func TestWorkGetsExactlyTheWorkersItNeeds(t *testing.T) {
	t.Parallel()
	four := rig.Group{Name: "cpu", Max: 4, CPU: "4"}
	slice := rig.Group{Name: "mig", Max: 7, Devices: map[string]int64{"nvidia.com/mig-1g.10gb": 1}, Labels: map[string]string{"gpu-slice": "mig-1g.10gb"}}
	spot := rig.Group{Name: "spot", Max: 2, Labels: map[string]string{"tier": "spot"}}
	aks := rig.Group{Name: "aks", Max: 7, Labels: map[string]string{"pool": "mig"}, Devices: map[string]int64{"nvidia.com/mig-1g.5gb": 1},
		NodeSelector: map[string]string{"kubernetes.azure.com/agentpool": "mig"}}
	pair := rig.Group{Name: "pair", Max: 2, Hosts: 2, Params: map[string]string{"resources": `"{\"pair\": 1}"`}}
	whole := gpu
	whole.Params = map[string]string{"num-gpus": "1", "resources": `"{\"card\": 1}"`} // slices are GPUs too, and no cards
	s := stage(t, rig.Cluster{Name: "asks", IdleSeconds: 600, Annotations: map[string]string{"heliostat.dev/price": `{"cpu": 1, "gpu": 1,
		"pair": 1, "rack-a": 1, "rack-b": 1, "spot": 2, "mig": 3, "aks": 4}`}, Groups: []rig.Group{four, whole, slice, spot, aks, pair, rack("a", 1), rack("b", 2)}})
	for _, name := range []string{"a", "b"} {
		_, err := lab.Kube.CoreV1().ConfigMaps(s.namespace).Create(s.ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "rack-" + name},
			Data:       map[string]string{"RAY_OVERRIDE_LABELS": `{"` + domain + `": "domain-` + name + `"}`},
		}, metav1.CreateOptions{})
		s.must(err)
	}

	s.step("REST and the SDK ask for the same GPU; each kind of work asks for workers of a group")
	s.rest(http.MethodPost, "/request_resources", `{"bundles": [{"GPU": 1, "card": 1}]}`)
	driver := s.drive()
	s.do(driver, rig.Command{Do: "request_resources", ID: "sdk", Bundles: []map[string]float64{{"GPU": 1, "card": 1}}})
	s.see(driver, "sdk", "requested")
	sliced, zero := actor("slice", 1), task("zero", 1)
	sliced.Labels, zero.Labels = slice.Labels, aks.Labels
	cheap := rig.Command{Do: "task", ID: "cheap", CPUs: 1, Labels: map[string]string{"tier": "reserved"}, Fallbacks: []map[string]string{spot.Labels}}
	// Rack a has room for one of the two bundles only.
	seat := map[string]float64{"seat": 1}
	racked := rig.Command{Do: "group", ID: "racked", Topology: domain, Bundles: []map[string]float64{seat, seat}}
	// A worker of group cpu holds two of these bundles.
	half := map[string]float64{"CPU": 2}
	spread := rig.Command{Do: "group", ID: "STRICT_SPREAD", Strategy: "STRICT_SPREAD", Bundles: []map[string]float64{half, half}}
	s.do(driver, sliced, zero, cheap, racked, spread)
	s.firstPod("aks")
	ctx, cancel := s.patient()
	defer cancel()
	s.must(lab.Cluster.Agent().SetNode(ctx, aksPool)) // as a node autoscaler adds it
	s.workers("gpu", 1)
	s.placed(driver, "STRICT_SPREAD", 2)
	s.placed(driver, "racked", 2)
	for _, id := range []string{"slice", "zero", "cheap"} {
		s.see(driver, id, "running")
	}
	s.created("cpu", 2)
	s.created("gpu", 1)

	s.step("work takes what is there first: the requested GPU, and the room that the placement group leaves")
	s.do(driver, task("whole", 1), rig.Command{Do: "group", ID: "SPREAD", Strategy: "SPREAD", Bundles: []map[string]float64{half, half}})
	s.see(driver, "whole", "running")
	s.placed(driver, "SPREAD", 2)
	s.created("cpu", 2)
	s.created("gpu", 1)

	s.step("fractions share a worker; a gang needs one of two groups; placement groups are packed")
	s.do(driver, task("half-1", 0.5), task("half-2", 0.5),
		rig.Command{Do: "group", ID: "gang", Bundles: []map[string]float64{{"GPU": 1}, {"pair": 1}}},
		rig.Command{Do: "group", ID: "STRICT_PACK", Strategy: "STRICT_PACK", Bundles: []map[string]float64{half, half}},
		rig.Command{Do: "group", ID: "PACK", Strategy: "PACK", Bundles: []map[string]float64{half, half}})
	s.placed(driver, "STRICT_PACK", 1)
	s.placed(driver, "PACK", 1)
	s.placed(driver, "gang", 2)
	s.see(driver, "half-1", "running")
	s.see(driver, "half-2", "running")
	s.workers("pair", 2)
	s.quiet("all demand is served")
	want := map[string]int{"cpu": 4, "gpu": 3, "mig": 1, "spot": 1, "aks": 1, "pair": 2, "rack-a": 0, "rack-b": 2}
	for group, n := range want {
		s.created(group, n)
	}
	s.scheduled("aks", 1, []string{aksPool.Name})
	if got := rig.Replicas(s.object())["pair"]; got != 1 {
		s.Errorf("group pair has %d replicas, want one with two hosts", got)
	}

	s.step("demand that no group can serve is impossible, and demand above the maximum is capped")
	s.do(driver, task("too-big", 2), rig.Command{Do: "group", ID: "too-many", Bundles: []map[string]float64{half}})
	s.told("both reasons", func(st status) bool { return st.unmet("impossible") && st.unmet("capped") })
	s.quiet("nothing of it can be served")

	s.step("without work, all workers go but those of the two requests, which retain the same GPU")
	s.do(driver, rig.Command{Do: "request_resources", ID: "sdk-more", Bundles: []map[string]float64{{"GPU": 1, "card": 1}, {"CPU": 4}}})
	s.see(driver, "sdk-more", "requested")
	for _, id := range []string{"whole", "half-1", "half-2", "slice", "cheap", "zero", "racked", "STRICT_SPREAD", "SPREAD", "STRICT_PACK", "PACK", "gang", "too-big", "too-many"} {
		s.do(driver, release(id))
	}
	s.idleTimeout(2)
	for group := range want {
		kept := 0
		if group == "gpu" || group == "cpu" {
			kept = 1
		}
		s.workers(group, kept)
	}
	s.do(driver, rig.Command{Do: "request_resources", ID: "sdk-none", Bundles: []map[string]float64{}})
	s.workers("cpu", 0)
	s.quiet("the request over REST still retains its worker")
	s.workers("gpu", 1)

	s.step("a new request over REST replaces the last one, and none is left")
	s.rest(http.MethodPost, "/request_resources", `{"num_cpus": 1}`)
	s.rest(http.MethodDelete, "/request_resources", "")
	s.workers("gpu", 0)
	s.drainedBeforeStopped()
	for group, n := range rig.Replicas(s.object()) {
		if n != 0 {
			s.Errorf("group %s keeps %d replicas with nothing to do", group, n)
		}
	}
}

// placed waits until a placement group has its place, and asserts on how many nodes.
func (s *scene) placed(driver *rig.Driver, id string, nodes int) {
	s.Helper()
	if placed := s.see(driver, id, "placed"); len(placed.Nodes) != nodes {
		s.Errorf("%s: the bundles are on %d nodes, want %d", id, len(placed.Nodes), nodes)
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
