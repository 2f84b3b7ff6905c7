package provisioning

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/client-go/dynamic"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/attached"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// Watch knows the ProvisioningRequests of RayClusters, and writes them.
type Watch struct {
	*attached.Objects[nodepool.ProvisioningRequest]
	client dynamic.Interface
	served reflector.Served
}

// NewWatch prepares the reads; Start begins them.
func NewWatch(c attached.Config) *Watch {
	served := reflector.Served{Client: c.Client, Discovery: c.Discovery, Group: apiGroup, Versions: versions,
		Logger: c.Logger}
	kind := attached.Kind[nodepool.ProvisioningRequest]{Served: served, Resource: resourceName, Selector: attached.Made,
		Read: read}
	return &Watch{client: c.Client, served: served, Objects: attached.New(c, kind)}
}

// AddTo adds to a RayCluster what is known of its ProvisioningRequests.
func (w *Watch) AddTo(cluster *nodepool.Cluster) {
	if w == nil {
		return
	}
	requests, state := w.Of(cluster.Key, cluster.UID)
	slices.SortFunc(requests, func(a, b nodepool.ProvisioningRequest) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.Name, b.Name))
	})
	cluster.Provisioning = &nodepool.Provisioning{Unread: state.Unknown, Requests: requests}
}
