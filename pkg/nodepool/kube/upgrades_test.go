package kube

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
)

// namespaced is a cache with the RayClusters of one namespace.
type namespaced []*unstructured.Unstructured

func (n namespaced) rayCluster(nodepool.ClusterKey) (*unstructured.Unstructured, error) {
	return n[0], nil
}

func (n namespaced) list(string) ([]*unstructured.Unstructured, error) { return n, nil }

// ownedObject returns a RayCluster that its controller has created some seconds after the first.
func ownedObject(name, kind string, owner types.UID, seconds int64) *unstructured.Unstructured {
	o := newRayCluster()
	o.SetNamespace("ml")
	o.SetName(name)
	o.SetCreationTimestamp(metav1.NewTime(time.Unix(1_800_000_000+seconds, 0)))
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: kind, Name: "llm", UID: owner,
		Controller: new(true)}})
	return o
}

func TestTheNewestRayClusterOfARayServiceReplacesTheOldestOne(t *testing.T) {
	of := func(name string, seconds int64) *unstructured.Unstructured {
		return ownedObject(name, "RayService", "service", seconds)
	}
	suspended, deleted := of("suspended", 0), of("deleted", 0)
	suspended.Object["spec"] = map[string]any{"suspend": true}
	deleted.SetDeletionTimestamp(new(metav1.Now()))
	match := &capacity.Written{Policy: capacity.Policy{OnUpgrade: capacity.UpgradeMatch}}
	for _, c := range []struct {
		name   string
		object *unstructured.Unstructured
		others namespaced
		policy *capacity.Written
		want   string
	}{
		{"the older one serves", of("b", 60), namespaced{of("a", 0), of("b", 60)}, match, "a"},
		{"the older one replaces nothing", of("a", 0), namespaced{of("a", 0), of("b", 60)}, match, ""},
		{"one that is given up in between replaces nothing", of("b", 60), namespaced{of("a", 0), of("b", 60), of("c", 120)}, match, ""},
		{"the newest one replaces the oldest", of("c", 120), namespaced{of("b", 60), of("a", 0), of("c", 120)}, match, "a"},
		{"in one second the name decides", of("b", 0), namespaced{of("a", 0), of("b", 0)}, match, "a"},
		{"no policy", of("b", 60), namespaced{of("a", 0)}, nil, ""},
		{"another policy", of("b", 60), namespaced{of("a", 0)}, &capacity.Written{}, ""},
		{"another RayService", of("b", 60), namespaced{ownedObject("a", "RayService", "other", 0)}, match, ""},
		{"a RayJob", ownedObject("b", "RayJob", "job", 60), namespaced{ownedObject("a", "RayJob", "job", 0)}, match, ""},
		{"no owner", newRayCluster(), namespaced{newRayCluster(), of("a", 0)}, match, ""},
		{"the older one is suspended, or being deleted", of("b", 60), namespaced{suspended, deleted}, match, ""},
		{"it is being deleted itself", deleted, namespaced{of("a", -60)}, match, ""},
	} {
		m := &Manager{source: c.others}
		cluster := nodepool.Cluster{Key: keyOf(c.object), Policy: c.policy}
		m.addUpgrade(&cluster, c.object)
		got := ""
		if cluster.UpgradeFrom != nil {
			got = cluster.UpgradeFrom.Name
		}
		if got != c.want {
			t.Errorf("%s: replaces %q, want %q", c.name, got, c.want)
		}
	}
}
