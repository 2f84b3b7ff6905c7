package decode

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestAPodIsTheSameUntilSomethingChangesThatADecisionDependsOn(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: moment(5)}}
	deleted := moment(9)
	for _, c := range []struct {
		name   string
		kind   string
		change func(*corev1.Pod)
		same   bool
	}{
		{"another version of a worker", workerNode, func(p *corev1.Pod) { p.ResourceVersion = "8" }, true},
		{"a label that nobody reads", workerNode, func(p *corev1.Pod) { p.Labels["team"] = "b" }, true},
		{"a worker that is deleted", workerNode, func(p *corev1.Pod) { p.DeletionTimestamp = &deleted }, false},
		{"a worker on a node", workerNode, func(p *corev1.Pod) { p.Spec.NodeName = "n1" }, false},
		{"a worker of another RayCluster", workerNode, func(p *corev1.Pod) { p.Labels[ClusterLabel] = "other" }, false},
		{"another version of a head", headNode, func(p *corev1.Pod) { p.ResourceVersion = "8" }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := pod("p", c.kind, "gpu", rayState(running, 0))
			after := before.DeepCopy()
			c.change(after)
			if got := PodOf(before).Same(PodOf(after)); got != c.same {
				t.Errorf("the same: %t, want %t", got, c.same)
			}
		})
	}
}

func TestAPodThatIsNeitherHeadNorWorkerIsNone(t *testing.T) {
	cluster := Join(Decoded{}, kept(pod("job", "redis-cleanup", "")))
	if cluster.Head.Pod != "" || len(cluster.Workers) != 0 {
		t.Errorf("head %q, workers %v", cluster.Head.Pod, cluster.Workers)
	}
}

const (
	karpenters = nodepool.DoNotDisruptAnnotation
	autoscaler = nodepool.SafeToEvictAnnotation
	listed     = nodepool.GuardAnnotation
)

// TestGuardOf reads the annotations of a pod, before and after the cache strips it, and writes both ways.
func TestGuardOf(t *testing.T) {
	both := karpenters + "," + autoscaler
	for name, c := range map[string]struct {
		has           map[string]string
		by            string
		complete      bool
		kept, removed map[string]any // what a change of either kind writes
	}{
		"none": {
			kept:    map[string]any{karpenters: "true", autoscaler: "false", listed: both},
			removed: map[string]any{listed: nil},
		},
		"both of Heliostat": {
			has: map[string]string{karpenters: "true", autoscaler: "false", listed: both},
			by:  nodepool.GuardedByHeliostat, complete: true,
			kept:    map[string]any{karpenters: "true", autoscaler: "false", listed: both},
			removed: map[string]any{karpenters: nil, autoscaler: nil, listed: nil},
		},
		"both of a user": {
			has: map[string]string{karpenters: "true", autoscaler: "false"},
			by:  nodepool.GuardedByUser, complete: true,
			kept: map[string]any{listed: nil}, removed: map[string]any{listed: nil},
		},
		"one of a user": {
			has: map[string]string{karpenters: "true"}, by: nodepool.GuardedByUser,
			kept:    map[string]any{autoscaler: "false", listed: autoscaler},
			removed: map[string]any{listed: nil},
		},
		"one of a user, one of Heliostat": {
			has: map[string]string{karpenters: "true", autoscaler: "false", listed: autoscaler},
			by:  nodepool.GuardedByUser, complete: true,
			kept:    map[string]any{autoscaler: "false", listed: autoscaler},
			removed: map[string]any{autoscaler: nil, listed: nil},
		},
		"a user wants evictions": {
			has: map[string]string{karpenters: "false", autoscaler: "true"}, complete: true,
			kept: map[string]any{listed: nil}, removed: map[string]any{listed: nil},
		},
		"a user changed what Heliostat wrote": {
			has: map[string]string{karpenters: "70s", autoscaler: "false", listed: both},
			by:  nodepool.GuardedByHeliostat, complete: true,
			kept:    map[string]any{autoscaler: "false", listed: autoscaler},
			removed: map[string]any{autoscaler: nil, listed: nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "w", ResourceVersion: "7", Annotations: map[string]string{"other": "x"}}}
			maps.Copy(pod.Annotations, c.has)
			guard := guardOf(pod)
			if guard.By() != c.by || guard.Complete() != c.complete || guard.Version != "7" {
				t.Errorf("guard %+v is by %q, complete %t; want %q, %t", guard, guard.By(), guard.Complete(), c.by, c.complete)
			}
			for _, kind := range []string{headNode, workerNode} {
				pod.Labels = map[string]string{nodeTypeLabel: kind}
				cluster := Join(Decoded{}, kept(pod))
				cached := cluster.Head.Guard
				if kind == workerNode {
					cached = cluster.Workers[0].Guard
				}
				if cached != guard {
					t.Errorf("in the cache, as a %s: %+v, want %+v", kind, cached, guard)
				}
			}
			for keep, want := range map[bool]map[string]any{true: c.kept, false: c.removed} {
				if got := GuardWritten(nodepool.GuardChange{Read: guard, Keep: keep}); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("keep %t writes %v, want %v", keep, got, want)
				}
			}
		})
	}
}

func TestAPodNamesItsGPUs(t *testing.T) {
	const one, two = "GPU-3f1a0000-0000-0000-0000-000000000001", "GPU-3f1a0000-0000-0000-0000-000000000002"
	status := func(name, id string, health corev1.ResourceHealthStatus) corev1.ResourceStatus {
		return corev1.ResourceStatus{Name: corev1.ResourceName(name), Resources: []corev1.ResourceHealth{{ResourceID: corev1.ResourceID(id), Health: health}}}
	}
	for name, c := range map[string]struct {
		annotations map[string]string
		statuses    []corev1.ResourceStatus
		want        map[string]bool
	}{
		"no word of it": {},
		"a device plugin": {statuses: []corev1.ResourceStatus{status("nvidia.com/gpu", one, "Unhealthy"), status("rdma/hca", "mlx5_0", "Healthy")},
			want: map[string]bool{one: false}},
		"an instance": {statuses: []corev1.ResourceStatus{status("nvidia.com/mig-1g.10gb", "MIG-1", "Healthy")}, want: map[string]bool{"MIG-1": true}},
		"Dynamic Resource Allocation": {statuses: []corev1.ResourceStatus{status("claim:cards/one", "gpu.nvidia.com/n7/gpu-3", "Unknown")},
			want: map[string]bool{"gpu.nvidia.com/n7/gpu-3": true}},
		"HAMi": {annotations: map[string]string{"hami.io/vgpu-devices-allocated": one + ",NVIDIA,3000,0:" + two + ",NVIDIA,3000,0:;"},
			want: map[string]bool{one: true, two: true}},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{AllocatedResourcesStatus: c.statuses}}}}
		if diff := cmp.Diff(c.want, worker(pod).GPUs); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
