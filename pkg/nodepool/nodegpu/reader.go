package nodegpu

import (
	"time"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// PoolOf returns the pool of a node from its labels and annotations, empty if none names it.
func (g Reader) PoolOf(node NodeObject) string {
	name, _, _ := g.PoolAndProvider(node)
	return name
}

// PoolLabels are the labels and annotations that name the pool of a node. If several are set, the first row wins.
var PoolLabels = []PoolLabel{
	{"kubernetes.azure.com/agentpool", "aks", "AKS documentation"},
	{"agentpool", "aks", "AKS documentation, older"},
	{"karpenter.sh/nodepool", "karpenter", "Karpenter"},
	{"karpenter.sh/provisioner-name", "karpenter", "Karpenter before v1beta1"},
	{"eks.amazonaws.com/nodegroup", "eks", "EKS documentation, managed node groups"},
	{"alpha.eksctl.io/nodegroup-name", "eks", "eksctl, self-managed node groups too"},
	{"cloud.google.com/gke-nodepool", "gke", "GKE documentation"},
	{"alibabacloud.com/nodepool-id", "ack", "ACK nodes"},
	{"node.alibabacloud.com/nodepool-id", "ack", "ACK, a script in its documentation"},
	{"oci.oraclecloud.com/node-pool-id", "oke", "Cluster Autoscaler for OKE; an annotation"},
}

// PoolLabel is a label or annotation that names the pool of a node, and the provider that sets it.
type PoolLabel struct{ Key, Provider, source string }

// PoolAndProvider returns the pool of a node and the pool's provider.
func (g Reader) PoolAndProvider(node NodeObject) (name, provider string, ok bool) {
	if name := node.Labels[g.PoolLabel]; g.PoolLabel != "" && name != "" {
		return name, "configured", true
	}
	for _, row := range PoolLabels {
		for _, from := range []map[string]string{node.Labels, node.Annotations} {
			if name := from[row.Key]; name != "" {
				return name, row.Provider, true
			}
		}
	}
	return "", "", false
}

// Reader configures how nodes are read. The zero value uses the built-in tables.
type Reader struct {
	// Names adds resource names to the built-in ones.
	Names gpuinfo.Names
	// PoolLabel is a label that names the pool of a node. It takes precedence over those of cloud providers.
	PoolLabel string
	// TopologyLabels are the labels of Kubernetes nodes that Ray nodes have as well.
	TopologyLabels []TopologyLabel
	// At is when the nodes were read, for the age of annotations; zero for nodes from a file, which may have any age.
	At time.Time
}

// TopologyLabel says that each Ray node has the label Ray with the value of the label Node of its Kubernetes node.
type TopologyLabel struct{ Node, Ray string }
