package kube

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// decodeCache keeps the decoded form of each RayCluster while the object stays the same: a cycle runs up to ten times a
// second, and the object changes a few times a minute.
type decodeCache struct {
	reader sharing.Reader
	// limits returns the LimitRanges of a namespace; nil in the single form.
	limits func(namespace string) []*corev1.LimitRange

	mu    sync.Mutex
	byKey map[nodepool.ClusterKey]judged // guarded by mu
}

// judged is the decoded form of a RayCluster. tolerated is the OperatorVerdict of its generation of, the newest known
// one that the operator has accepted.
type judged struct {
	decode.Decoded
	of        int64
	tolerated error
}

func newDecodeCache(reader sharing.Reader) *decodeCache {
	return &decodeCache{reader: reader, byKey: map[nodepool.ClusterKey]judged{}}
}

func (m *decodeCache) decode(object *unstructured.Unstructured) decode.Decoded {
	key, uid, version := keyOf(object), string(object.GetUID()), object.GetResourceVersion()
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.byKey[key]
	if before.Cluster.UID != uid {
		before = judged{}
	}
	if version != "" && before.Cluster.ResourceVersion == version {
		return before.Decoded
	}
	object = decode.Whole(object)
	d := decode.Decode(m.reader, object)
	if m.limits != nil {
		if ranges := m.limits(key.Namespace); len(ranges) > 0 {
			decode.UnderLimitRanges(object, &d, nil, ranges)
		}
	}
	now := judged{d, before.of, before.tolerated}
	switch c := &now.Cluster; {
	case !accepted(c):
		judge(object.Object, &now.Decoded, now.tolerated)
	case now.of != c.Generation:
		now.of, now.tolerated = c.Generation, OperatorVerdict(object.Object)
	}
	m.byKey[key] = now
	return now.Decoded
}

// dropNamespace forgets the RayClusters of a namespace, or all with "".
func (m *decodeCache) dropNamespace(namespace string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.byKey, func(key nodepool.ClusterKey, _ judged) bool {
		return namespace == "" || key.Namespace == namespace
	})
}

func (m *decodeCache) drop(key nodepool.ClusterKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byKey, key)
}
