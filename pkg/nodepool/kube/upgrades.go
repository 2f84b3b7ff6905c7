package kube

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// addUpgrade names the RayCluster that this one is to replace, if its policy keeps room for upgrades. For an upgrade of
// a RayService, KubeRay creates a second RayCluster beside the first (ray-operator v1.6.2, rayservice_controller.go).
// Only the newest of them is to serve; the oldest one serves meanwhile.
func (m *Manager) addUpgrade(cluster *nodepool.Cluster, object *unstructured.Unstructured) {
	service := metav1.GetControllerOfNoCopy(object)
	if !cluster.Policy.MatchesUpgrades() || service == nil || service.Kind != "RayService" || !lives(object) {
		return
	}
	list, err := m.source.list(cluster.Key.Namespace)
	if err != nil {
		return // nothing is kept that is not known to be needed
	}
	oldest := object
	for _, other := range list {
		owner := metav1.GetControllerOfNoCopy(other)
		if owner == nil || owner.UID != service.UID || !lives(other) {
			continue
		}
		if age(other, object) > 0 {
			return // a newer one is to replace both
		}
		if age(other, oldest) < 0 {
			oldest = other
		}
	}
	if key := keyOf(oldest); key != cluster.Key {
		cluster.UpgradeFrom = &key
	}
}

// lives reports whether a RayCluster has pods or will have some.
func lives(object *unstructured.Unstructured) bool {
	suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend")
	return object.GetDeletionTimestamp() == nil && !suspended
}

// age orders RayClusters from the oldest to the newest. Those of one second have any fixed order.
func age(a, b *unstructured.Unstructured) int {
	return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time),
		cmp.Compare(a.GetName(), b.GetName()))
}
