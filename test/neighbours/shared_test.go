package neighbours

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/rig"
)

// ownScheduler is the test: no pod that names it gets a node before the test wants.
const ownScheduler = "test-scheduler"

// lastCard covers two RayClusters that want the only free card of a pool that cannot grow. One of them gets it. The
// other one says that it is promised while the pod is on its way, and that the pool is full when the pod is there.
func lastCard(k *karpenterLab) {
	k.nodePool("shared", devcluster.NodePool{Name: "shared", Class: "fast", Replicas: 1})
	var teams []*rayTeam
	for _, name := range []string{"shared-a", "shared-b"} {
		r := k.heldCluster(name, gpuWorkers("shared", 9))
		r.bounded("shared", "shared", 1)
		teams = append(teams, r)
	}
	for _, r := range teams {
		r.want(1)
	}
	wins := func(c apiv1.Cluster) bool { return groupOf(c, "shared").Desired == 1 }
	promised := func(c apiv1.Cluster) bool {
		return groupOf(c, "shared").Desired == 0 && slices.ContainsFunc(c.Unmet, func(u apiv1.Unmet) bool {
			return u.Reason.Code == planner.CodePoolPromised
		})
	}
	first := k.firstOf(teams, wins)
	second := teams[1-slices.Index(teams, first)]
	second.until("the card is promised to the other RayCluster", promised, nil)
	for end := time.Now().Add(8 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if a, b := first.status(), second.status(); !wins(a) || groupOf(b, "shared").Desired != 0 {
			k.Fatalf("%s wants %d, %s wants %d workers, and there is one card", first.key, groupOf(a, "shared").Desired,
				second.key, groupOf(b, "shared").Desired)
		}
	}
	first.schedule("shared")
	first.until("the worker has joined", func(c apiv1.Cluster) bool { return groupOf(c, "shared").Ready == 1 }, nil)
	second.capped("shared", "shared", 0)
}

// heldCluster creates a RayCluster whose workers get their nodes from the test.
func (k *karpenterLab) heldCluster(name string, group rig.Group) *rayTeam {
	k.Helper()
	return k.rayClusterOf(rig.Cluster{Namespace: name, Name: name, Groups: []rig.Group{group}}, func(manifest *unstructured.Unstructured) {
		groups, _, _ := unstructured.NestedSlice(manifest.Object, "spec", "workerGroupSpecs")
		if err := unstructured.SetNestedField(groups[0].(map[string]any), ownScheduler, "template", "spec", "schedulerName"); err != nil {
			k.Fatal(err)
		}
		if err := unstructured.SetNestedSlice(manifest.Object, groups, "spec", "workerGroupSpecs"); err != nil {
			k.Fatal(err)
		}
	})
}

// firstOf returns the team whose status meets a condition first.
func (k *karpenterLab) firstOf(teams []*rayTeam, meets func(apiv1.Cluster) bool) *rayTeam {
	k.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		for _, r := range teams {
			if meets(r.status()) {
				k.note("%s is first", r.key)
				return r
			}
		}
	}
	k.Fatal("no RayCluster launched a worker")
	return nil
}

// schedule binds the only worker to the only node of a pool.
func (r *rayTeam) schedule(pool string) {
	r.Helper()
	pods := r.Kube.CoreV1().Pods(r.key.Namespace)
	workers, err := pods.List(r.Context(), metav1.ListOptions{LabelSelector: "ray.io/node-type=worker"})
	if err != nil || len(workers.Items) != 1 || workers.Items[0].Spec.NodeName != "" {
		r.Fatalf("%d workers, want one without a node; %v", len(workers.Items), err)
	}
	nodes, err := r.Kube.CoreV1().Nodes().List(r.Context(), metav1.ListOptions{LabelSelector: "karpenter.sh/nodepool=" + pool})
	if err != nil || len(nodes.Items) != 1 {
		r.Fatalf("%d nodes in pool %s, want one; %v", len(nodes.Items), pool, err)
	}
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: workers.Items[0].Name}, Target: corev1.ObjectReference{Kind: "Node", Name: nodes.Items[0].Name}}
	if err := pods.Bind(r.Context(), binding, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
}
