package kube

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/nodepool/kube/kueue"
	"heliostat.dev/heliostat/test/rig"
)

// childOf creates a RayCluster that a RayJob controls. The RayJob is suspended, so the operator creates no RayCluster
// for it.
func (s *scene) childOf(job string) (name string) {
	s.Helper()
	spec := rig.Cluster{Groups: []rig.Group{{Name: "cpu", Max: 9}}}.Spec()
	owner, err := lab.Dynamic().Resource(rig.RayJobs).Namespace(s.namespace).Create(s.Context(),
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": map[string]any{"namespace": s.namespace, "name": job},
			"spec": map[string]any{"suspend": true, "submissionMode": "InteractiveMode",
				"shutdownAfterJobFinishes": true, "rayClusterSpec": spec},
		}}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	name = job + "-raycluster"
	child := rig.Cluster{Namespace: s.namespace, Name: name, InTree: true, Groups: []rig.Group{{Name: "cpu",
		Max: 9}}}.Manifest()
	child.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
	s.createAs(child)
	return name
}

// TestAnOwnerThatWasQueuedMeanwhileStopsAPatch checks that the manager reads the owner right before a patch. The caches
// hold no owners, and the last known state may be stale.
func TestAnOwnerThatWasQueuedMeanwhileStopsAPatch(t *testing.T) {
	t.Parallel()
	s := stage(t, "queued-owner")
	name := s.childOf("train")
	m := s.manager(kube.Options{})
	// The first reading requests one of the owner beside it. It must not come after the label.
	s.until("the owner to be known", func() bool { return s.read(m, name).Queue.Unknown == "" })
	if _, err := m.Apply(t.Context(), s.targets(s.read(m, name), map[string]int{"cpu": 1})); err != nil {
		t.Fatalf("below a RayJob in no queue: %v", err)
	}
	label := []byte(`{"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"research"}}}`)
	if _, err := lab.Dynamic().Resource(rig.RayJobs).Namespace(s.namespace).Patch(t.Context(), "train",
		types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	cluster, before := s.read(m, name), s.get(name).GetGeneration()
	if cluster.Queue.Queued() {
		t.Fatalf("queue %+v: nobody has read the owner again", cluster.Queue)
	}
	if _, err := m.Apply(t.Context(), s.targets(cluster, map[string]int{"cpu": 1})); !errors.Is(err,
		nodepool.ErrReadOnly) || !strings.Contains(err.Error(), "RayJob train") {
		t.Errorf("error is %v, want ErrReadOnly and the RayJob", err)
	}
	if after := s.get(name).GetGeneration(); after != before {
		t.Errorf("generation went from %d to %d: something was written", before, after)
	}
	if queue := s.read(m, name).Queue; queue.Name != "research" || queue.Parent.Kind != "RayJob" || queue.Parent.Name != "train" {
		t.Errorf("queue %+v after the look, want the RayJob's", queue)
	}
}

// TestAnOwnerThatMayNotBeReadIsReported runs with KubeRay's own Role, which the sidecar form uses. The Role grants no
// access to RayJobs.
func TestAnOwnerThatMayNotBeReadIsReported(t *testing.T) {
	t.Parallel()
	s := stage(t, "unread-owner")
	name := s.childOf("train")
	config, key := s.sidecarOf(name), s.key(name)
	m, _ := s.managerAs(config, kube.Options{Single: &key, Poll: 100 * time.Millisecond}, nil)
	s.until("the finding "+kueue.Unread, func() bool { return finding(s.read(m, name), kueue.Unread) })
	if _, err := m.Apply(t.Context(), s.targets(s.read(m, name), map[string]int{"cpu": 1})); err != nil {
		t.Errorf("without a sign of a queue: %v, want the patch", err)
	}
	stamp := `[{"op":"add","path":"/spec/workerGroupSpecs/0/template/metadata","value":{"labels":{"kueue.x-k8s.io/podset":"cpu","kueue.x-k8s.io/local-queue-name":"research"}}}]`
	s.patch(name, types.JSONPatchType, stamp)
	s.until("the poll to see the pod templates", func() bool {
		return s.read(m,
			name).Generation == s.get(name).GetGeneration()
	})
	_, err := m.Apply(t.Context(), s.targets(s.read(m, name), map[string]int{"cpu": 1}))
	if !errors.Is(err, nodepool.ErrReadOnly) || !strings.Contains(err.Error(), "queue research") {
		t.Errorf("with Kueue's labels in a pod template: %v, want ErrReadOnly and the queue", err)
	}
	if queue := s.read(m, name).Queue; queue.Name != "research" {
		t.Errorf("queue %+v, want the one in the pod templates", queue)
	}
}
