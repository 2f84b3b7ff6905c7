package landing

import "slices"

// DomainLabel is a label of Kubernetes nodes whose value is a domain: hosts with fast links between them. Set says what
// sets the label.
type DomainLabel struct{ Key, Set string }

// DomainLabels are those that are known, the smallest domains first. Labels that name a single host are not in the
// list. docs/howto/racks.md has the same table.
var DomainLabels = []DomainLabel{
	// ClusterUUID.CliqueID of the fabric (k8s-device-plugin, internal/lm/imex.go).
	{"nvidia.com/gpu.clique", "NVIDIA's GPU feature discovery and DRA driver: hosts that share NVLink, on any cloud"},
	// Topograph's reference, "Node Labels and Annotations", of 1.0 and of 0.x.
	{"accelerator.topograph.run/sub-domain", "NVIDIA's Topograph 1.x"},
	{"accelerator.topograph.run/domain", "NVIDIA's Topograph 1.x"},
	{"network.topology.nvidia.com/accelerator", "NVIDIA's Topograph 0.x"},
	// AI Hypercomputer, "Schedule GKE workloads with Topology Aware Scheduling".
	{"cloud.google.com/gce-topology-subblock", "GKE: a rack"},
	{"cloud.google.com/gce-topology-block", "GKE: racks in one block of the network"},
	// EKS User Guide, "Place distributed AI/ML workloads with network topology labels".
	{"topology.k8s.aws/network-node-layer-4", "EKS, on machines whose network has four layers"},
	{"topology.k8s.aws/network-node-layer-3", "EKS: the nearest layer on most machines"},
	{"topology.k8s.aws/network-node-layer-2", "EKS"},
	{"topology.k8s.aws/network-node-layer-1", "EKS"},
	// CoreWeave's reference, "InfiniBand Labels".
	{"node.coreweave.cloud/rack", "CoreWeave: the physical rack"},
}

// Pinned returns the only value of a label of nodes with which nodes suit the pod. It returns false if there are
// several.
func (p *PodShape) Pinned(key string) (string, bool) {
	values, limited := p.required(func(other string) bool { return other == key })
	slices.Sort(values)
	if values = slices.Compact(values); !limited || len(values) != 1 {
		return "", false
	}
	return values[0], true
}
