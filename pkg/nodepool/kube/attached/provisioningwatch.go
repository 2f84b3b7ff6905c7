package attached

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// Provisioning knows the ProvisioningRequests of RayClusters, and writes them.
type Provisioning struct {
	*untyped[nodepool.ProvisioningRequest]
}

// NewProvisioning prepares the reads; Start begins them.
func NewProvisioning(c Config) *Provisioning {
	return &Provisioning{New(c, Kind[*unstructured.Unstructured, nodepool.ProvisioningRequest]{
		Served: c.Served(autoscalingGroup, requestVersions...), Resource: requestResource, Selector: Made,
		Read: readRequest,
	})}
}

// AddTo adds to a RayCluster what is known of its ProvisioningRequests.
func (w *Provisioning) AddTo(cluster *nodepool.Cluster) {
	if w == nil {
		return
	}
	requests, state := w.Of(cluster.Key, cluster.UID)
	slices.SortFunc(requests, func(a, b nodepool.ProvisioningRequest) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.Name, b.Name))
	})
	cluster.Provisioning = &nodepool.Provisioning{Unread: state.Unknown, Requests: requests}
}
