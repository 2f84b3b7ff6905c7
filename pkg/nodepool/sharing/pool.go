package sharing

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
