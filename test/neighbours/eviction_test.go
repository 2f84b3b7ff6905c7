package neighbours

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/rig"
	"heliostat.dev/heliostat/test/simray"
)

// evictedBesideAReduction covers assertion 7: Karpenter evicts an idle worker when Heliostat is about to remove it. A
// finalizer holds the worker Terminating, as a long grace period does. The operator deletes any worker if replicas are
// lowered without the name of the one that leaves, so the busy worker proves what Heliostat wrote.
func evictedBesideAReduction(name string, inTree bool) func(*karpenterLab) {
	return func(k *karpenterLab) {
		k.nodePool(name, devcluster.NodePool{Name: name, Class: "fast"})
		cluster := rig.Cluster{Namespace: name, Name: name, IdleSeconds: 3, InTree: inTree, NoTolerations: true,
			Annotations: map[string]string{"heliostat.dev/mode": "managed"}, Groups: []rig.Group{gpuWorkers(name, 4)}}
		if inTree {
			cluster.SidecarImage = rig.SidecarImage
		}
		r := k.rayClusterOf(cluster)
		r.want(1)
		busy := r.joined(1, "")
		work := r.head.Submit(simray.Task{Bundle: raydemand.Bundle{raydemand.GPU: raydemand.One}})
		idle := r.joined(2, busy.Name)

		r.hold(idle.Name, true)
		r.head.Cancel(work)
		if _, err := r.DeleteNodeClaim(r.Context(), name, idle.Name); err != nil {
			r.Fatal(err)
		}
		r.eventually("the idle worker is evicted", func(ctx context.Context) error {
			return r.terminating(ctx, idle.Name)
		})
		if inTree {
			r.eventually("replicas are lowered", func(ctx context.Context) error { return r.goal(ctx, 1, idle.Name) })
		}
		// Longer than the idle timeout, and than the operator takes to act on what it reads.
		r.staysWhile(busy, 10*time.Second, func(ctx context.Context) error {
			if r.goal(ctx, 2, "") == nil && !inTree {
				return nil // the operator replaces the worker once it is gone
			}
			return r.goal(ctx, 1, idle.Name)
		})
		r.hold(idle.Name, false)
		r.eventually("the evicted worker is gone", func(ctx context.Context) error {
			_, err := r.worker(ctx, idle.Name)
			if err == nil {
				return fmt.Errorf("worker %s is there", idle.Name)
			}
			return nil
		})
		r.until("only the busy worker is left", func(c apiv1.Cluster) bool {
			pods, err := r.WorkerPods(r.Context(), name, name)
			return err == nil && len(pods) == 1 && groupOf(c, name).Desired == 1 && r.goal(r.Context(), 1, "") == nil
		}, nil)
		r.staysWhile(busy, 5*time.Second, func(ctx context.Context) error { return r.goal(ctx, 1, "") })
	}
}

// joined waits until so many workers have joined Ray, and returns the one that has not this name.
func (r *rayTeam) joined(count int, other string) corev1.Pod {
	r.Helper()
	r.until(fmt.Sprintf("%d workers have joined", count), func(c apiv1.Cluster) bool { return groupOf(c, r.key.Name).Ready == count }, nil)
	pods, err := r.WorkerPods(r.Context(), r.key.Namespace, r.key.Name)
	if err != nil || len(pods) != count {
		r.Fatalf("there are %d workers, %v; want %d", len(pods), err, count)
	}
	return pods[slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Name != other })]
}

func (r *rayTeam) worker(ctx context.Context, name string) (*corev1.Pod, error) {
	return r.Kube.CoreV1().Pods(r.key.Namespace).Get(ctx, name, metav1.GetOptions{})
}

// hold adds or removes a finalizer that keeps a pod Terminating.
func (r *rayTeam) hold(pod string, on bool) {
	r.Helper()
	patch := `{"metadata": {"finalizers": null}}`
	if on {
		patch = `{"metadata": {"finalizers": ["test.heliostat.dev/held"]}}`
	}
	_, err := r.Kube.CoreV1().Pods(r.key.Namespace).Patch(r.Context(), pod, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{})
	must(r, err)
}

func (r *rayTeam) terminating(ctx context.Context, name string) error {
	pod, err := r.worker(ctx, name)
	if err == nil && pod.DeletionTimestamp == nil {
		return fmt.Errorf("worker %s runs", name)
	}
	return err
}

// goal returns an error unless the RayCluster asks for so many replicas and names this pod. Without a name, it is not
// looked which pods are named: the names of those that are gone stay for a while.
func (r *rayTeam) goal(ctx context.Context, replicas int64, named string) error {
	object, err := r.Dynamic.Resource(rig.RayClusters).Namespace(r.key.Namespace).Get(ctx, r.key.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	groups, _, _ := unstructured.NestedSlice(object.Object, "spec", "workerGroupSpecs")
	group := groups[0].(map[string]any)
	names, _, _ := unstructured.NestedStringSlice(group, "scaleStrategy", "workersToDelete")
	if group["replicas"] != replicas || named != "" && !slices.Contains(names, named) {
		return fmt.Errorf("replicas are %v without %v, want %d without %q", group["replicas"], names, replicas, named)
	}
	return nil
}

// staysWhile fails the test if a worker is deleted within some time, or if a check fails in it.
func (r *rayTeam) staysWhile(pod corev1.Pod, during time.Duration, check func(context.Context) error) {
	r.Helper()
	for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		now, err := r.worker(r.Context(), pod.Name)
		if err != nil || now.UID != pod.UID || now.DeletionTimestamp != nil {
			r.Fatalf("the busy worker %s is being deleted: %v", pod.Name, err)
		}
		must(r, check(r.Context()))
	}
}

// launchedAlone checks that all starting workers show that their machines are launched.
func (r *rayTeam) launchedAlone(workers int) {
	r.Helper()
	r.until("all starting workers show their launched machines", func(c apiv1.Cluster) bool {
		launched := 0
		for _, a := range c.Arrivals {
			if a.Stage == string(arrival.NodeLaunched) && a.Since != nil {
				launched++
			}
		}
		return launched == workers
	}, nil)
}

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
		must(k, unstructured.SetNestedField(groups[0].(map[string]any), ownScheduler, "template", "spec", "schedulerName"))
		must(k, unstructured.SetNestedSlice(manifest.Object, groups, "spec", "workerGroupSpecs"))
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
	must(r, pods.Bind(r.Context(), binding, metav1.CreateOptions{}))
}
