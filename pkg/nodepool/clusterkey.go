package nodepool

import "cmp"

// ClusterKey identifies one RayCluster.
type ClusterKey struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String returns namespace/name.
func (k ClusterKey) String() string { return k.Namespace + "/" + k.Name }

// Compare orders keys by namespace and name.
func (k ClusterKey) Compare(other ClusterKey) int {
	return cmp.Or(cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Name, other.Name))
}
