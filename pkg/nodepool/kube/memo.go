package kube

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
)

// memo keeps the decoded form of each RayCluster while the object stays the same: a cycle runs ten times a second, and the
// object changes a few times a minute.
type memo struct {
	reader nodegpu.Reader

	mu    sync.Mutex
	byKey map[nodepool.ClusterKey]decoded // guarded by mu
}

func newMemo(reader nodegpu.Reader) *memo {
	return &memo{reader: reader, byKey: map[nodepool.ClusterKey]decoded{}}
}

func (m *memo) decode(object *unstructured.Unstructured) decoded {
	key, uid, version := keyOf(object), string(object.GetUID()), object.GetResourceVersion()
	m.mu.Lock()
	defer m.mu.Unlock()
	if d, known := m.byKey[key]; known && version != "" && d.cluster.UID == uid && d.cluster.ResourceVersion == version {
		return d
	}
	d := decodeBy(m.reader, object)
	m.byKey[key] = d
	return d
}

func (m *memo) drop(key nodepool.ClusterKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byKey, key)
}
