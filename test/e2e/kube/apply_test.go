package kube

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/test/rig"
)

func TestScaleUpAndDownByOnePatchEach(t *testing.T) {
	t.Parallel()
	s := stage(t, "apply")
	s.create("llm", rig.Group{Name: "cpu", Max: 9}, rig.Group{Name: "gpu", Max: 9})
	m := s.manager(kube.Options{})
	cluster := s.read(m, "llm")

	generation := s.change(m, s.targets(cluster, map[string]int{"gpu": 3}))
	// Read at once, before the cache is up to date.
	after, err := m.Cluster(t.Context(), s.key("llm"))
	if err != nil || after.Generation != generation || after.Groups[1].Replicas != 3 || generation <= cluster.Generation {
		t.Fatalf("read after the write: generation %d, groups %+v, %v; want generation %d", after.Generation, after.Groups, err, generation)
	}
	s.until("three workers", func() bool { return len(s.workers("llm", "gpu")) == 3 })
	s.until("three workers in the cache", func() bool { return len(s.read(m, "llm").Workers) == 3 })

	names := s.workers("llm", "gpu")
	fresh, err := m.Fresh(t.Context(), s.key("llm"))
	must(t, err)
	s.change(m, s.targets(fresh, nil, names[1]))
	rest := []string{names[0], names[2]}
	s.until("the named worker to go, and no other", func() bool { return cmp.Diff(rest, s.workers("llm", "gpu")) == "" })

	// The name stays in the list until the pod is gone. A separate target then clears it.
	s.until("the list may be cleared", func() bool {
		targets, _, err := nodepool.Targets(s.read(m, "llm"), nil, nil)
		return err == nil && len(targets) == 1 && len(targets[0].WorkersToDelete) == 0
	})
	s.change(m, s.targets(s.read(m, "llm"), nil))
	if targets, _, err := nodepool.Targets(s.read(m, "llm"), nil, nil); err != nil || len(targets) > 0 {
		t.Errorf("there is still something to do: %+v, %v", targets, err)
	}
	if diff := cmp.Diff(rest, s.workers("llm", "gpu")); diff != "" {
		t.Errorf("workers at the end (-want +got):\n%s", diff)
	}
}

// TestAStaleChangeWritesNothing uses the single form with a long poll interval. It reads once, so its data is stale
// after any write. Only the test operations of the patch then protect it.
func TestAStaleChangeWritesNothing(t *testing.T) {
	t.Parallel()
	s := stage(t, "stale")
	tests := []struct {
		name      string
		kind      types.PatchType
		meanwhile string
	}{
		{"reordered", types.JSONPatchType, `[{"op":"move","from":"/spec/workerGroupSpecs/0","path":"/spec/workerGroupSpecs/1"}]`},
		{"removed", types.JSONPatchType, `[{"op":"remove","path":"/spec/workerGroupSpecs/1"}]`},
		{"rescaled", types.JSONPatchType, `[{"op":"replace","path":"/spec/workerGroupSpecs/1/replicas","value":5}]`},
		{"frozen", types.MergePatchType, `{"metadata":{"annotations":{"heliostat.dev/freeze":"true"}}}`},
		{"suspended", types.MergePatchType, `{"spec":{"suspend":true}}`},
		{"queued", types.MergePatchType, `{"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"research"}}}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &scene{T: t, namespace: s.namespace}
			s.create(test.name, rig.Group{Name: "cpu", Max: 9}, rig.Group{Name: "gpu", Max: 9})
			key := s.key(test.name)
			m := s.manager(kube.Options{Single: &key, Poll: time.Hour})
			change := s.targets(s.read(m, test.name), map[string]int{"gpu": 2})
			s.patch(test.name, test.kind, test.meanwhile)
			before := s.get(test.name).GetGeneration()
			if _, err := m.Apply(t.Context(), change); !errors.Is(err, nodepool.ErrConflict) {
				t.Errorf("error is %v, want ErrConflict", err)
			}
			if after := s.get(test.name).GetGeneration(); after != before {
				t.Errorf("generation went from %d to %d: something was written", before, after)
			}
		})
	}
}

func TestMultiHostReplicasGoWhole(t *testing.T) {
	t.Parallel()
	s := stage(t, "hosts")
	s.create("llm", rig.Group{Name: "tpu", Max: 9, Hosts: 2})
	m := s.manager(kube.Options{})
	s.change(m, s.targets(s.read(m, "llm"), map[string]int{"tpu": 3}))
	s.until("two replicas of two hosts in the cache", func() bool { return len(s.read(m, "llm").Workers) == 4 })
	cluster := s.read(m, "llm")
	var leaving, staying []string
	for _, w := range cluster.Workers {
		if w.Replica == cluster.Workers[0].Replica {
			leaving = append(leaving, w.Pod)
		} else {
			staying = append(staying, w.Pod)
		}
	}
	slices.Sort(staying)
	if len(leaving) != 2 {
		t.Fatalf("workers %+v are not two replicas of two", cluster.Workers)
	}
	s.change(m, s.targets(cluster, nil, leaving...))
	s.until("one replica to go whole", func() bool { return cmp.Diff(staying, s.workers("llm", "tpu")) == "" })
}

// TestARayClusterIsSuspendedAndResumed writes as the loop does when a RayCluster has had no work, and when something
// wants it again.
func TestARayClusterIsSuspendedAndResumed(t *testing.T) {
	t.Parallel()
	s := stage(t, "idle")
	s.create("llm", rig.Group{Name: "gpu", Max: 9})
	m := s.manager(kube.Options{})
	since := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	end := func(resume bool, want error) {
		t.Helper()
		s.until("a change without a write of the operator in between", func() bool {
			fresh, err := m.Fresh(t.Context(), s.key("llm"))
			must(t, err)
			err = m.EndIdle(t.Context(), nodepool.IdleChange{Cluster: fresh.Key, UID: fresh.UID, Since: since, Resume: resume,
				ResourceVersion: fresh.ResourceVersion, Generation: fresh.Generation})
			if errors.Is(err, nodepool.ErrConflict) {
				return false
			}
			if !errors.Is(err, want) {
				t.Fatalf("resume %v: %v, want %v", resume, err, want)
			}
			return true
		})
	}
	end(false, nil)
	s.until("the RayCluster to be suspended, since then", func() bool {
		seen := s.read(m, "llm")
		return seen.Suspended && seen.IdleSince.Equal(since)
	})
	end(true, nil)
	s.until("the RayCluster to be resumed", func() bool {
		seen := s.read(m, "llm")
		return !seen.Suspended && seen.IdleSince.IsZero()
	})

	// What a user has suspended is the user's.
	s.patch("llm", types.MergePatchType, `{"spec":{"suspend":true}}`)
	s.until("the RayCluster to be suspended by a user", func() bool { return s.read(m, "llm").Suspended })
	end(true, nodepool.ErrReadOnly)
}

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
	must(s, err)
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
