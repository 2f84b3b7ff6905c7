package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/test/devcluster/nodeagent"
	"heliostat.dev/heliostat/test/rig"
)

// gpuCase is one way to expose GPUs, with a worker group that uses it.
type gpuCase struct {
	name    string
	devices map[string]int64
	// pool is the value of the node label gpus that the group selects. It is set if the resource name does not identify
	// the node.
	pool string
	// derived is the number that the operator passes by default, or -1 for no flag. gpus is the number that a pod gets,
	// and that it announces in the end.
	derived, gpus float64
	// ray: the group's pods run Ray, and not only KubeRay's command for it.
	ray bool
}

var gpuCases = []gpuCase{
	{name: "single", devices: map[string]int64{"nvidia.com/gpu": 7}, pool: "single", derived: 7, gpus: 7, ray: true},
	{name: "mixed-small", devices: map[string]int64{"nvidia.com/mig-1g.5gb": 1}, derived: 1, gpus: 1},
	{name: "mixed-both", devices: map[string]int64{"nvidia.com/mig-1g.5gb": 2, "nvidia.com/mig-3g.20gb": 1}, derived: 2, gpus: 3, ray: true},
	{name: "sliced", devices: map[string]int64{"nvidia.com/gpu": 1}, pool: "sliced", derived: 1, gpus: 1},
	{name: "renamed", devices: map[string]int64{"nvidia.com/gpu.shared": 1}, derived: -1, gpus: 1},
	{name: "mps", devices: map[string]int64{"nvidia.com/gpu": 1}, pool: "mps", derived: 1, gpus: 1},
	{name: "memory", devices: map[string]int64{"aliyun.com/gpu-mem": 4}, derived: -1, gpus: 1, ray: true},
	{name: "memory-cores", devices: map[string]int64{"aliyun.com/gpu-mem": 4, "aliyun.com/gpu-core.percentage": 20}, derived: -1, gpus: 1},
	{name: "hami", devices: map[string]int64{"nvidia.com/gpu": 1, "nvidia.com/gpumem": 4000}, pool: "hami", derived: 1, gpus: 1},
	{name: "volcano", devices: map[string]int64{"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 2000}, derived: -1, gpus: 1},
	{name: "media", devices: map[string]int64{"nvidia.com/mig-1g.5gb.me": 1}, derived: -1, gpus: 1},
	{name: "mig-shared", devices: map[string]int64{"nvidia.com/mig-1g.5gb.shared": 1}, derived: -1, gpus: 1},
}

// TestEveryWayToHandOutGPUsIsCountedRight runs one RayCluster with one group for each way to expose GPUs. At first,
// Heliostat writes nothing, and the columns show where the operator counts wrong. Then, while the groups are empty,
// Heliostat writes the numbers that the device plugin reports. A task that needs all GPUs of a pod launches a pod of each
// group, whose command tells Ray that number: it runs in some groups, the others have no Ray. Finally, the plugin removes
// devices, which must not change a number that is correct for running pods.
func TestEveryWayToHandOutGPUsIsCountedRight(t *testing.T) {
	t.Parallel()
	cluster := rig.Cluster{Name: "counts", IdleSeconds: 600}
	for _, c := range gpuCases {
		group := rig.Group{Name: c.name, Max: 1, Devices: c.devices, Labels: map[string]string{"handed-out": c.name}}
		if !c.ray {
			group.Image = rig.SleeperImage
		}
		if c.pool != "" {
			group.NodeSelector = map[string]string{"gpus": c.pool}
		}
		cluster.Groups = append(cluster.Groups, group)
	}
	s := prepare(t, cluster.Name)
	cluster.Namespace = s.namespace
	s.must(lab.Create(s.ctx, cluster.Manifest()))

	s.told("what the operator derives and the nodes report", func(st status) bool { return columns(st, false) })
	s.annotate("num-gpus-sync", "when-empty")
	s.told("numbers that agree", func(st status) bool { return columns(st, true) })
	s.headAlive()
	driver := s.drive()
	for _, c := range gpuCases {
		work := task(c.name, c.gpus)
		work.Labels = map[string]string{"handed-out": c.name}
		s.do(driver, work)
	}
	for _, c := range gpuCases {
		s.startsRayWith(s.firstPod(c.name), c.gpus)
		if c.ray {
			s.see(driver, c.name, "running")
			s.workers(c.name, 1)
		}
	}
	s.told("Ray nodes that announce what was written", func(st status) bool {
		return columns(st, true) && !slices.ContainsFunc(gpuCases, func(c gpuCase) bool {
			n := st.group(c.name).NumGPUs
			return c.ray && (n.Ray == nil || n.Reported == nil || *n.Ray != *n.Reported)
		})
	})

	// The card loses one device, then all of them. The number for a new pod first stays the same, then is unknown. The
	// number of the running pod stays correct.
	s.announce("gpus-single", "6")
	s.told("no node for seven", func(st status) bool {
		g := st.group("single")
		return g.NumGPUs.Reported == nil && *g.NumGPUs.Ray == 7 && *g.NumGPUs.Derived == 7 && !g.NumGPUs.Mismatch
	})
	s.announce("gpus-sliced", "3")
	s.announce("gpus-single", "7")
	s.told("the devices again", func(st status) bool { return columns(st, true) })
	for _, c := range gpuCases {
		s.created(c.name, 1)
	}
}

// startsRayWith asserts that the operator has given a pod's Ray node so many GPUs.
func (s *scene) startsRayWith(name string, gpus float64) {
	s.Helper()
	pod, err := lab.Kube.CoreV1().Pods(s.namespace).Get(s.ctx, name, metav1.GetOptions{})
	s.must(err)
	command := strings.Fields(strings.Join(pod.Spec.Containers[0].Args, " "))
	if want := fmt.Sprintf("--num-gpus=%g", gpus); !slices.Contains(command, want) {
		s.Errorf("pod %s has the command %v, want %s", name, command, want)
	}
}

// columns reports whether the numbers match those of the cases, before or after a sync.
func columns(st status, synced bool) bool {
	for _, c := range gpuCases {
		n := st.group(c.name).NumGPUs
		wrong := c.derived != c.gpus
		derived := c.derived
		if synced {
			derived = c.gpus
		}
		if n.Reported == nil || *n.Reported != c.gpus || n.Sources.Reported == "" || n.Mismatch != (wrong && !synced) {
			return false
		}
		if (n.Derived == nil) != (derived < 0) || n.Derived != nil && *n.Derived != derived {
			return false
		}
		if declared := wrong && synced; declared != (n.Declared != nil) || declared && *n.Declared != c.gpus {
			return false
		}
	}
	return true
}

// group returns the REST API's status of one group.
func (s status) group(name string) groupStatus {
	for _, g := range s.Groups {
		if g.Name == name {
			return g
		}
	}
	return groupStatus{}
}

// announce sets the number of devices that the plugin of a node in nodes.yaml announces as nvidia.com/gpu.
func (s *scene) announce(node, devices string) {
	s.Helper()
	ctx, cancel := s.patient()
	defer cancel()
	i := slices.IndexFunc(nodes, func(n nodeagent.NodeSpec) bool { return n.Name == node })
	if i < 0 {
		s.Fatal(fmt.Errorf("there is no node %s", node))
	}
	spec := nodes[i]
	spec.Allocatable = map[string]string{"nvidia.com/gpu": devices}
	s.must(lab.Cluster.Agent().SetNode(ctx, spec))
}
