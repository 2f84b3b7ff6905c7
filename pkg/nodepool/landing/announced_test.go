package landing_test

import (
	"slices"
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// hostNode returns a node of a pool with room for one pod, and labels written as key=value.
func hostNode(name, pool string, labels ...string) landing.Node {
	n := landing.Node{Name: name, Pool: pool, Ready: true, Labels: labelsOf(labels), Allocatable: landing.Quantities{
		"cpu": raydemand.Whole(8), "memory": raydemand.Whole(64 << 30), "pods": raydemand.Whole(110), "nvidia.com/gpu": raydemand.One}}
	n.Declared = name == ""
	if n.Declared {
		n.Name = pool
	}
	return n
}

// hosts is what is known about nodes.
type hosts struct {
	Places []landing.Node
	Rooms  []landing.Room
	Pods   []landing.PoolPods
}

func labelsOf(pairs []string) map[string]string {
	labels := map[string]string{}
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		labels[key] = value
	}
	return labels
}

// pool is a pool that accepts the pods; most is how many pods it may add, negative for no bound.
func pool(name string, most int64) landing.PoolPods {
	p := landing.PoolPods{Pool: name}
	if most >= 0 {
		p.MayAddPods = &most
	}
	return p
}

// in is a requirement of a template or an affinity.
func in(key string, values ...string) landing.Requirement {
	return landing.Requirement{Key: key, Operator: "In", Values: values}
}

func karpenter(name string, labels map[string]string, requirements ...landing.Requirement) landing.Room {
	return landing.Room{Pool: name, Source: landing.FromKarpenter, Mixed: true, Template: &landing.NodeTemplate{Labels: labels, Requirements: requirements}}
}

func TestWhatNewPodsAnnounceFollowsFromWhereTheyFit(t *testing.T) {
	const clique, domain, product = "nvidia.com/gpu.clique", "ray.io/gpu-domain", "nvidia.com/gpu.product"
	reader := sharing.Reader{TopologyLabels: []sharing.TopologyLabel{{Node: clique, Ray: domain}}}
	tpus := func(w *landing.NewWorker) { w.Resources = raydemand.Bundle{"TPU": raydemand.Whole(4)} }
	v6e := landing.PodShape{Selector: map[string]string{"cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice", "cloud.google.com/gke-tpu-topology": "4x4"}}
	v5p := func(name, topology string) landing.Node {
		return hostNode(name, "p", "cloud.google.com/gke-tpu-accelerator=tpu-v5p-slice", "cloud.google.com/gke-tpu-topology="+topology)
	}
	rooms := func(list ...landing.Room) []landing.Room { return list }
	for name, c := range map[string]struct {
		pod    landing.PodShape
		nodes  hosts
		label  string
		want   string // values, ! if certain; empty if not announced
		worker func(*landing.NewWorker)
	}{
		"all nodes in one domain":    {nodes: hosts{Places: []landing.Node{hostNode("a", "p", clique+"=d1"), hostNode("b", "p", clique+"=d1")}}, label: domain, want: "d1!"},
		"nodes in two domains":       {nodes: hosts{Places: []landing.Node{hostNode("a", "p", clique+"=d1"), hostNode("b", "p", clique+"=d2")}}, label: domain, want: "d1,d2"},
		"one node without the label": {nodes: hosts{Places: []landing.Node{hostNode("a", "p", clique+"=d1"), hostNode("b", "p")}}, label: domain, want: "d1"},
		"no node with the label":     {nodes: hosts{Places: []landing.Node{hostNode("b", "p")}}, label: domain, want: ""},
		"nodes that do not fit do not count": {pod: landing.PodShape{Selector: map[string]string{"disk": "fast"}},
			nodes: hosts{Places: []landing.Node{hostNode("a", "p", clique+"=d1", "disk=fast"), hostNode("b", "p", clique+"=d2")}}, label: domain, want: "d1!"},
		"the pod is pinned":       {pod: landing.PodShape{Selector: map[string]string{clique: "d7"}}, label: domain, want: "d7!"},
		"the affinity allows two": {pod: landing.PodShape{Affinity: []landing.NodeTerm{{Labels: []landing.Requirement{in(clique, "d1", "d2")}}}}, label: domain, want: "d1,d2"},
		"one term leaves it open": {pod: landing.PodShape{Affinity: []landing.NodeTerm{{Labels: []landing.Requirement{in(clique, "d1")}}, {Labels: []landing.Requirement{in("x", "y")}}}}, label: domain, want: "?"},
		"nothing is known":        {label: domain, want: "?"},
		"a declared shape":        {nodes: hosts{Places: []landing.Node{hostNode("", "p", clique+"=d1")}, Rooms: rooms(landing.Room{Pool: "p"}), Pods: []landing.PoolPods{pool("p", -1)}}, label: domain, want: "d1!"},
		"a pool that nothing describes": {nodes: hosts{Places: []landing.Node{hostNode("a", "p", clique+"=d1")}, Rooms: rooms(landing.Room{Pool: "p"}, landing.Room{Pool: "q"}), Pods: []landing.PoolPods{pool("p", 1), pool("q", 4)}},
			label: domain, want: "?"},
		"that pool is full": {nodes: hosts{Places: []landing.Node{hostNode("a", "p", clique+"=d1")}, Rooms: rooms(landing.Room{Pool: "p"}, landing.Room{Pool: "q"}), Pods: []landing.PoolPods{pool("p", 1), pool("q", 0)}},
			label: domain, want: "d1!"},
		"a NodePool's label":       {nodes: hosts{Rooms: rooms(karpenter("k", map[string]string{clique: "d3"})), Pods: []landing.PoolPods{pool("k", -1)}}, label: domain, want: "d3!"},
		"a NodePool's requirement": {nodes: hosts{Rooms: rooms(karpenter("k", nil, in(clique, "d3", "d4"))), Pods: []landing.PoolPods{pool("k", -1)}}, label: domain, want: "d3,d4"},
		"a requirement that the pod narrows": {pod: landing.PodShape{Affinity: []landing.NodeTerm{{Labels: []landing.Requirement{in(clique, "d4", "d5")}}}},
			nodes: hosts{Rooms: rooms(karpenter("k", nil, in(clique, "d3", "d4"))), Pods: []landing.PoolPods{pool("k", -1)}}, label: domain, want: "d4!"},
		"a NodePool that leaves it open": {nodes: hosts{Rooms: rooms(karpenter("k", nil)), Pods: []landing.PoolPods{pool("k", -1)}}, label: domain, want: "?"},
		"the group declares it": {nodes: hosts{Places: []landing.Node{hostNode("a", "p", clique+"=d1")}}, label: domain, want: "",
			worker: func(w *landing.NewWorker) { w.Declared = map[string]string{domain: "own"} }},

		"Ray's own prefix on nodes":           {nodes: hosts{Places: []landing.Node{hostNode("a", "p", "ray.io/rack=r1")}}, label: "ray.io/rack", want: "r1!"},
		"another label of a declared shape":   {nodes: hosts{Places: []landing.Node{hostNode("", "p", "rack=r1")}}, label: "rack", want: "r1"},
		"another label of nodes":              {nodes: hosts{Places: []landing.Node{hostNode("a", "p", "rack=r1")}}, label: "rack", want: ""},
		"a label that names the node":         {nodes: hosts{Places: []landing.Node{hostNode("a", "p", "ray.io/hostname=a")}}, label: "ray.io/hostname", want: ""},
		"the node's accelerator label is not": {nodes: hosts{Places: []landing.Node{hostNode("a", "p", "ray.io/accelerator-type=H100")}}, label: "ray.io/accelerator-type", want: "?"},

		"one product":              {nodes: hosts{Places: []landing.Node{hostNode("a", "p", product+"=Tesla-T4"), hostNode("b", "p", product+"=Tesla-T4")}}, label: "accelerator_type:", want: "T4!"},
		"two products of one type": {nodes: hosts{Places: []landing.Node{hostNode("a", "p", product+"=NVIDIA-H100-PCIe"), hostNode("b", "p", product+"=NVIDIA-H100-80GB-HBM3")}}, label: "accelerator_type:", want: "H100!"},
		"two types":                {nodes: hosts{Places: []landing.Node{hostNode("a", "p", product+"=NVIDIA-H100-PCIe"), hostNode("b", "p", product+"=Tesla-T4")}}, label: "accelerator_type:", want: "H100,T4"},
		"a node without a product": {nodes: hosts{Places: []landing.Node{hostNode("a", "p", product+"=NVIDIA-H100-PCIe"), hostNode("b", "p")}}, label: "accelerator_type:", want: "?"},
		"an AMD card by its name":  {nodes: hosts{Places: []landing.Node{hostNode("a", "p", "amd.com/gpu.product-name=AMD_Instinct_MI300X")}}, label: "accelerator_type:", want: "?"},
		"a NodePool of one model": {nodes: hosts{Rooms: rooms(karpenter("k", nil, in("karpenter.k8s.aws/instance-gpu-name", "h100"))), Pods: []landing.PoolPods{pool("k", -1)}},
			label: "ray.io/accelerator-type", want: "H100!"},
		"a NodePool of two models": {nodes: hosts{Rooms: rooms(karpenter("k", nil, in("karpenter.k8s.aws/instance-gpu-name", "h100", "a100"))), Pods: []landing.PoolPods{pool("k", -1)}},
			label: "ray.io/accelerator-type", want: "A100,H100"},
		"an affinity to two names of one model": {pod: landing.PodShape{Affinity: []landing.NodeTerm{{Labels: []landing.Requirement{in(product, "NVIDIA-H100-PCIe", "NVIDIA-H100-80GB-HBM3")}}}},
			label: "accelerator_type:", want: "H100!"},
		"an instance type":                      {nodes: hosts{Places: []landing.Node{hostNode("a", "p", "node.kubernetes.io/instance-type=p5.48xlarge")}}, label: "accelerator_type:", want: "?"},
		"a TPU by its selectors":                {pod: v6e, label: "accelerator_type:", want: "TPU-V6E!", worker: tpus},
		"its pod type":                          {pod: v6e, label: landing.TPUPodType, want: "v6e-16!", worker: tpus},
		"its topology":                          {pod: v6e, label: "ray.io/tpu-topology", want: "4x4!", worker: tpus},
		"a pod type by the nodes of a pool":     {nodes: hosts{Places: []landing.Node{v5p("a", "2x2x2"), v5p("b", "2x2x2")}}, label: landing.TPUPodType, want: "v5p-16!", worker: tpus},
		"nodes of two topologies":               {nodes: hosts{Places: []landing.Node{v5p("a", "2x2x2"), v5p("b", "2x2x4")}}, label: landing.TPUPodType, want: "v5p-16,v5p-32", worker: tpus},
		"a TPU of which nothing is known":       {label: landing.TPUPodType, want: "?", worker: tpus},
		"a group without TPUs beside TPU nodes": {pod: v6e, label: landing.TPUPodType, want: ""},
		"Neuron":                                {label: "accelerator_type:", want: "aws-neuron-core!", worker: func(w *landing.NewWorker) { w.Resources = raydemand.Bundle{"neuron_cores": raydemand.Whole(2)} }},
		"no accelerator": {nodes: hosts{Places: []landing.Node{hostNode("a", "p", product+"=Tesla-T4")}}, label: "accelerator_type:", want: "",
			worker: func(w *landing.NewWorker) { w.Resources = raydemand.Bundle{"CPU": raydemand.One} }},
	} {
		t.Run(name, func(t *testing.T) {
			worker := landing.NewWorker{Resources: raydemand.Bundle{"GPU": raydemand.One}, Pod: &c.pod}
			if c.worker != nil {
				c.worker(&worker)
			}
			got := ""
			for _, a := range worker.Announces(reader, c.nodes.Places, c.nodes.Rooms, c.nodes.Pods) {
				if a.Name != c.label {
					continue
				}
				if got = strings.Join(a.Values, ","); got == "" {
					got = "?"
				}
				if a.Certain {
					got += "!"
				} else if a.Why == "" {
					t.Error("it does not say why it is not certain")
				}
			}
			if got != c.want {
				t.Errorf("%s is %q, want %q", c.label, got, c.want)
			}
		})
	}
}

// The expected types are what _gpu_name_to_accelerator_type of Ray 2.60.0 and of 2.52.0 return for the driver's names.
func TestTheTypeOfACardIsTheOneThatRayTakesFromItsName(t *testing.T) {
	for product, want := range map[string]struct{ newer, older string }{
		"NVIDIA-H100-80GB-HBM3": {"H100", "H100"},
		"NVIDIA-H100-PCIe":      {"H100", "H100"},
		"NVIDIA-H200":           {"H200", "H200"},
		"NVIDIA-H20-3e":         {"H20", "H20"},
		"NVIDIA-B200":           {"B200", "B200"},
		"NVIDIA-GB200":          {"GB200", "GB200"},
		"NVIDIA-GH200-480GB":    {"GH200", "GH200"},
		"NVIDIA-A100-SXM4-40GB": {"A100", "A100"},
		"NVIDIA-A100-80GB-PCIe": {"A100", "A100"},
		"A100-SXM4-40GB":        {"A100", "A100"},
		"Tesla-T4":              {"T4", "T4"},
		"Tesla-V100-SXM2-16GB":  {"V100", "V100"},
		"Tesla-P100-PCIE-16GB":  {"P100", "P100"},
		"NVIDIA-A10G":           {"A10G", "A10G"},
		"NVIDIA-A10":            {"A10", "A10"},
		"NVIDIA-A30":            {"A30", "A30"},
		"NVIDIA-L4":             {"L4", "L4"},
		"NVIDIA-L40S":           {"L40S", "L40S"},
		"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition": {"RTX-PRO-6000", "RTX"},
		"NVIDIA-RTX-A6000":               {"RTX-A6000", "RTX"},
		"NVIDIA-RTX-6000-Ada-Generation": {"RTX-6000", "RTX"},
		"Quadro-RTX-6000":                {"RTX-6000", "RTX"},
		"NVIDIA-GeForce-RTX-4090":        {"GeForce-RTX-4090", "G"},
		"NVIDIA-TITAN-RTX":               {"TITAN-RTX", "TITAN"},
		"GRID-T4-4Q":                     {"T4", "T4"},
		"nvidia-tesla-t4":                {"T4", "T4"},
		"nvidia-tesla-a100":              {"A100", "A100"},
		"nvidia-a100-80gb":               {"A100", "A100"},
		"nvidia-h100-mega-80gb":          {"H100", "H100"},
		"nvidia-h200-141gb":              {"H200", "H200"},
		"nvidia-l4":                      {"L4", "L4"},
		"nvidia-rtx-pro-6000":            {"RTX-PRO-6000", "RTX"},
		"h100":                           {"H100", "H100"},
		"a10g":                           {"A10G", "A10G"},
		"l40s":                           {"L40S", "L40S"},
		"H100_NVLINK_80GB":               {"H100", "H100"},
		"AMD-Instinct-MI300X":            {"", ""},
		"radeon-pro-v520":                {"", ""},
		"GPU":                            {"", ""},
		"":                               {"", ""},
	} {
		for version, want := range map[string]string{"2.60.0": want.newer, "2.52.0": want.older} {
			got := landing.TypesOf(product, version)
			if want == "" && len(got) > 0 || want != "" && !slices.Equal(got, []string{want}) {
				t.Errorf("%s with Ray %s: %q, want %q", product, version, got, want)
			}
		}
		if got := landing.TypesOf(product, ""); want.newer != "" && (!slices.Contains(got, want.newer) || !slices.Contains(got, want.older)) {
			t.Errorf("%s with any Ray: %q, want %q and %q", product, got, want.newer, want.older)
		}
	}
}
