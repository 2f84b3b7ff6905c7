package attached

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/client-go/dynamic"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// Watch knows the ProvisioningRequests of RayClusters, and writes them.
type Provisioning struct {
	*Objects[nodepool.ProvisioningRequest]
	client dynamic.Interface
	served reflector.Served
}

// NewWatch prepares the reads; Start begins them.
func NewProvisioning(c Config) *Provisioning {
	served := reflector.Served{Client: c.Client, Discovery: c.Discovery, Group: autoscalingGroup, Versions: requestVersions,
		Logger: c.Logger}
	kind := Kind[nodepool.ProvisioningRequest]{Served: served, Resource: requestResource, Selector: Made,
		Read: readRequest}
	return &Provisioning{client: c.Client, served: served, Objects: New(c, kind)}
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
