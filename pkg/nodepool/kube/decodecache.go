package kube

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// decodeCache keeps the decoded form of each RayCluster while the object stays the same: a cycle runs up to ten times a
// second, and the object changes a few times a minute.
type decodeCache struct {
	reader sharing.Reader

	mu    sync.Mutex
	byKey map[nodepool.ClusterKey]decode.Decoded // guarded by mu
}

func newDecodeCache(reader sharing.Reader) *decodeCache {
	return &decodeCache{reader: reader, byKey: map[nodepool.ClusterKey]decode.Decoded{}}
}

func (m *decodeCache) decode(object *unstructured.Unstructured) decode.Decoded {
	key, uid, version := keyOf(object), string(object.GetUID()), object.GetResourceVersion()
	m.mu.Lock()
	defer m.mu.Unlock()
	if d, known := m.byKey[key]; known && version != "" && d.Cluster.UID == uid &&
		d.Cluster.ResourceVersion == version {
		return d
	}
	d := decode.Decode(m.reader, object)
	judge(object.Object, &d)
	m.byKey[key] = d
	return d
}

func (m *decodeCache) drop(key nodepool.ClusterKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byKey, key)
}
