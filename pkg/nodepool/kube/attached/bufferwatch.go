package attached

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// Buffers knows the CapacityBuffers of RayClusters, and writes them.
type Buffers struct {
	*untyped[nodepool.Buffer]
}

// NewBuffers prepares the reads; Start begins them.
func NewBuffers(c Config) *Buffers {
	served := c.Served(autoscalingGroup, bufferVersions...)
	served.Resource = bufferResource
	return &Buffers{New(c, Kind[*unstructured.Unstructured, nodepool.Buffer]{
		Served: served, Resource: bufferResource, Selector: Made, Read: readBuffer,
	})}
}

// AddTo adds to a RayCluster what is known of its buffers, and what those that its policy wants are made of.
func (w *Buffers) AddTo(cluster *nodepool.Cluster, rayCluster *unstructured.Unstructured) {
	if w == nil {
		return
	}
	list, state := w.Of(cluster.Key, cluster.UID)
	slices.SortFunc(list, func(a, b nodepool.Buffer) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Name, b.Name))
	})
	known := &nodepool.Buffers{List: list}
	if known.Missing = state.Unknown; !state.Tried {
		known.Missing, known.Unread = "", "CapacityBuffers have not been read yet"
	}
	cluster.Buffers = known
	if cluster.Policy == nil || len(cluster.Policy.KeepWarmNodes) == 0 {
		return
	}
	known.Templates = map[string]string{}
	for i := range cluster.Policy.KeepWarmNodes {
		name := cluster.Policy.KeepWarmNodes[i].Group
		group, exists := cluster.Group(name)
		if _, done := known.Templates[name]; done || !exists {
			continue
		}
		// One that cannot be read has no identity, and the write of its buffer says why.
		known.Templates[name] = ""
		template, err := groupTemplate(rayCluster, name, group.Pod.Neighbors.Labels)
		if err == nil && template != nil {
			known.Templates[name], _ = identity(template)
		}
	}
}
