package kube

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/test/rig"
)

// keep returns the change that guards a pod as the manager sees it.
func keep(cluster nodepool.Cluster, w nodepool.Worker) nodepool.GuardChange {
	return nodepool.GuardChange{Cluster: cluster.Key, Pod: w.Pod, UID: w.UID, Read: w.Guard, Keep: true}
}

func release(cluster nodepool.Cluster, w nodepool.Worker) nodepool.GuardChange {
	change := keep(cluster, w)
	change.Keep = false
	return change
}

// twoWorkers creates a RayCluster with two pending worker pods, and returns it as the manager sees it.
func (s *scene) twoWorkers(m *kube.Manager) nodepool.Cluster {
	s.Helper()
	s.create("llm", rig.Group{Name: "gpu", Replicas: 2, Max: 9})
	s.until("two workers in the cache", func() bool { return len(s.read(m, "llm").Workers) == 2 })
	return s.read(m, "llm")
}

// write adds or removes the guard of a pod as the loop does: after a conflict, from what the caches show then. The
// scheduler writes the status of new pods at the same time.
func (s *scene) write(m *kube.Manager, pod string, change func(nodepool.Cluster, nodepool.Worker) nodepool.GuardChange) {
	s.Helper()
	s.until("the guard of "+pod+" to be written", func() bool {
		cluster := s.read(m, "llm")
		for _, w := range cluster.Workers {
			if w.Pod == pod {
				err := m.Guard(s.Context(), change(cluster, w))
				if err != nil && !errors.Is(err, nodepool.ErrConflict) {
					s.Fatal(err)
				}
				return err == nil
			}
		}
		return false
	})
}

func (s *scene) pod(name string) *corev1.Pod {
	s.Helper()
	pod, err := lab.Client().CoreV1().Pods(s.namespace).Get(s.Context(), name, metav1.GetOptions{})
	must(s, err)
	return pod
}

func (s *scene) annotate(pod, annotations string) {
	s.Helper()
	patch := []byte(`{"metadata":{"annotations":{` + annotations + `}}}`)
	if _, err := lab.Client().CoreV1().Pods(s.namespace).Patch(s.Context(), pod, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
}

// guardOn returns the three annotations as the API server has them.
func (s *scene) guardOn(pod string) map[string]string {
	s.Helper()
	all := maps.Clone(s.pod(pod).Annotations)
	maps.DeleteFunc(all, func(name, _ string) bool {
		return !slices.Contains([]string{nodepool.GuardAnnotation, nodepool.DoNotDisruptAnnotation, nodepool.SafeToEvictAnnotation}, name)
	})
	return all
}

func (s *scene) worker(m *kube.Manager, pod string, holds func(nodepool.Guard) bool) nodepool.Worker {
	s.Helper()
	var found nodepool.Worker
	s.until("the guard of "+pod+" in the cache", func() bool {
		for _, w := range s.read(m, "llm").Workers {
			if w.Pod == pod && holds(w.Guard) {
				found = w
				return true
			}
		}
		return false
	})
	return found
}

func TestAGuardIsAddedAndRemovedAndKubeRayLeavesIt(t *testing.T) {
	t.Parallel()
	s := stage(t, "guard")
	m := s.manager(kube.Options{})
	cluster := s.twoWorkers(m)
	pod := cluster.Workers[0].Pod
	before := s.pod(pod).Annotations
	s.write(m, pod, keep)
	want := map[string]string{
		nodepool.DoNotDisruptAnnotation: "true", nodepool.SafeToEvictAnnotation: "false",
		nodepool.GuardAnnotation: nodepool.DoNotDisruptAnnotation + "," + nodepool.SafeToEvictAnnotation,
	}
	if got := s.guardOn(pod); !maps.Equal(got, want) {
		t.Errorf("annotations %v, want %v", got, want)
	}
	if got := s.guardOn(cluster.Workers[1].Pod); len(got) > 0 {
		t.Errorf("the other worker has %v", got)
	}
	managers := s.pod(pod).ManagedFields
	if !slices.ContainsFunc(managers, func(f metav1.ManagedFieldsEntry) bool { return f.Manager == "heliostat" }) {
		t.Errorf("field managers %+v, want heliostat among them", managers)
	}
	s.worker(m, pod, func(g nodepool.Guard) bool { return g.By() == nodepool.GuardedByHeliostat && g.Complete() })
	// The operator reconciles the RayCluster.
	s.patch("llm", types.JSONPatchType, `[{"op":"replace","path":"/spec/workerGroupSpecs/0/replicas","value":3}]`)
	s.until("a third worker", func() bool { return len(s.workers("llm", "gpu")) == 3 })
	if got := s.guardOn(pod); !maps.Equal(got, want) {
		t.Errorf("after a reconciliation: annotations %v, want %v", got, want)
	}
	s.write(m, pod, release)
	if after := s.pod(pod).Annotations; !maps.Equal(after, before) {
		t.Errorf("annotations at the end %v, want those of before: %v", after, before)
	}
	s.worker(m, pod, func(g nodepool.Guard) bool { return g.By() == "" && !g.Ours })
}

func TestAUsersOwnValuesAreNeverTouched(t *testing.T) {
	t.Parallel()
	s := stage(t, "guard-user")
	m := s.manager(kube.Options{})
	cluster := s.twoWorkers(m)
	first, second := cluster.Workers[0].Pod, cluster.Workers[1].Pod
	// The first wants to be consolidated, the second is guarded by its user for Karpenter alone.
	s.annotate(first, `"karpenter.sh/do-not-disrupt":"false","cluster-autoscaler.kubernetes.io/safe-to-evict":"true"`)
	s.annotate(second, `"karpenter.sh/do-not-disrupt":"true"`)
	other := s.worker(m, first, func(g nodepool.Guard) bool { return g.DoNotDisrupt == nodepool.MarkedOtherwise })
	if !other.Guard.Complete() || other.Guard.By() != "" {
		t.Errorf("guard %+v: nothing is left to add, and nobody guards it", other.Guard)
	}
	s.worker(m, second, func(g nodepool.Guard) bool { return g.DoNotDisrupt == nodepool.MarkedByUser })
	s.write(m, second, keep)
	both := s.worker(m, second, func(g nodepool.Guard) bool { return g.SafeToEvict == nodepool.MarkedByUs })
	if both.Guard.DoNotDisrupt != nodepool.MarkedByUser {
		t.Errorf("guard %+v: the user's annotation counts as ours", both.Guard)
	}
	s.write(m, second, release)
	if got := s.guardOn(second); !maps.Equal(got, map[string]string{nodepool.DoNotDisruptAnnotation: "true"}) {
		t.Errorf("annotations %v, want the user's own", got)
	}
	// What the user changes after us is the user's.
	fresh := s.worker(m, first, func(nodepool.Guard) bool { return true })
	s.annotate(first, `"karpenter.sh/do-not-disrupt":null`)
	if err := m.Guard(t.Context(), keep(cluster, fresh)); !errors.Is(err, nodepool.ErrConflict) {
		t.Errorf("a write over a change that was not read: %v, want ErrConflict", err)
	}
	s.worker(m, first, func(g nodepool.Guard) bool { return g.DoNotDisrupt == nodepool.Unmarked })
	s.write(m, first, keep)
	s.annotate(first, `"karpenter.sh/do-not-disrupt":"1h"`)
	s.worker(m, first, func(g nodepool.Guard) bool { return g.DoNotDisrupt == nodepool.MarkedOtherwise && g.Ours })
	s.write(m, first, release)
	want := map[string]string{nodepool.DoNotDisruptAnnotation: "1h", nodepool.SafeToEvictAnnotation: "true"}
	if got := s.guardOn(first); !maps.Equal(got, want) {
		t.Errorf("annotations %v, want %v", got, want)
	}
}

func TestAGuardReachesNoOtherPodAndNoRayClusterThatMustNotBeWritten(t *testing.T) {
	t.Parallel()
	s := stage(t, "guard-refused")
	m := s.manager(leading(s.namespace))
	s.until("it to lead", m.Leading)
	candidate, _ := s.managerWith(leading(s.namespace), nil)
	cluster := s.twoWorkers(m)
	w := cluster.Workers[0]
	again := keep(cluster, w)
	again.UID = "another"
	if err := m.Guard(t.Context(), again); !errors.Is(err, nodepool.ErrConflict) {
		t.Errorf("a pod that was made again: %v, want ErrConflict", err)
	}
	gone := keep(cluster, w)
	gone.Pod = "gone"
	if err := m.Guard(t.Context(), gone); !errors.Is(err, nodepool.ErrGone) {
		t.Errorf("a pod that is gone: %v, want ErrGone", err)
	}
	s.read(candidate, "llm")
	if err := candidate.Guard(t.Context(), keep(cluster, w)); !errors.Is(err, nodepool.ErrNotLeading) {
		t.Errorf("a candidate: %v, want ErrNotLeading", err)
	}
	s.patch("llm", types.MergePatchType, `{"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"research"}}}`)
	s.until("the queue in the cache", func() bool { return s.read(m, "llm").Queue.Queued() })
	s.write(m, w.Pod, keep) // only the loop decides whether a queued RayCluster is managed
	s.write(m, w.Pod, release)
	s.patch("llm", types.MergePatchType, `{"metadata":{"annotations":{"heliostat.dev/freeze":"true"}}}`)
	s.until("the freeze in the cache", func() bool { return s.read(m, "llm").Freeze })
	if err := m.Guard(t.Context(), keep(cluster, w)); !errors.Is(err, nodepool.ErrReadOnly) {
		t.Errorf("a frozen RayCluster: %v, want ErrReadOnly", err)
	}
	if got := s.guardOn(w.Pod); len(got) > 0 {
		t.Errorf("annotations %v", got)
	}
}

// TestGuardsNeedARightThatTheSidecarHas uses KubeRay's Role, which grants patch on pods, and an account without it.
func TestGuardsNeedARightThatTheSidecarHas(t *testing.T) {
	t.Parallel()
	s := stage(t, "guard-rights")
	s.createAs(rig.Cluster{Namespace: s.namespace, Name: "llm", InTree: true, Groups: []rig.Group{{Name: "gpu", Replicas: 1, Max: 9}}}.Manifest())
	key := s.key("llm")
	m, _ := s.managerAs(s.sidecarOf("llm"), kube.Options{Single: &key, Poll: time.Hour}, nil)
	s.until("a worker in the cache", func() bool { return len(s.read(m, "llm").Workers) == 1 })
	cluster := s.read(m, "llm")
	s.write(m, cluster.Workers[0].Pod, keep)
	var head nodepool.Head
	s.until("the head to be guarded", func() bool {
		head = s.read(m, "llm").Head
		return m.Guard(t.Context(), nodepool.GuardChange{Cluster: key, Pod: head.Pod, UID: head.PodUID, Read: head.Guard, Keep: true}) == nil
	})
	if got := s.guardOn(head.Pod); got[nodepool.DoNotDisruptAnnotation] != "true" {
		t.Errorf("annotations of the head %v", got)
	}
	config := rest.CopyConfig(lab.RESTConfig())
	config.Impersonate.UserName = "reader"
	s.allow("reader", "guard-reader",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"ray.io"}, Resources: []string{"rayclusters"}, Verbs: []string{"get"}})
	reader, _ := s.managerAs(config, kube.Options{Single: &key, Poll: time.Hour}, nil)
	s.until("a worker in the reader's cache", func() bool { return len(s.read(reader, "llm").Workers) == 1 })
	cluster = s.read(reader, "llm")
	if err := reader.Guard(t.Context(), release(cluster, cluster.Workers[0])); !errors.Is(err, nodepool.ErrDenied) {
		t.Errorf("without the right to patch pods: %v, want ErrDenied", err)
	}
}

// evict evicts a pod and holds it as Terminating, as a long grace period does. The result lets it end.
func (s *scene) evict(pod string) (end func()) {
	s.Helper()
	pods := lab.Client().CoreV1().Pods(s.namespace)
	finalizers := func(list string) {
		s.Helper()
		patch := fmt.Appendf(nil, `{"metadata":{"finalizers":%s}}`, list)
		if _, err := pods.Patch(s.Context(), pod, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			s.Fatal(err)
		}
	}
	finalizers(`["test.heliostat.dev/hold"]`)
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: pod}}
	must(s, pods.EvictV1(s.Context(), eviction))
	return func() { s.Helper(); finalizers(`null`) }
}

// takeBack computes what the loop writes for evicted pods while launch pods are needed.
func (s *scene) takeBack(cluster nodepool.Cluster, launch int) ([]nodepool.Target, []string) {
	s.Helper()
	launches := map[string]int{"gpu": launch}
	view := observe.View{Cluster: cluster, Members: observe.Join(cluster, nil)}
	names := scaledown.PodsOf(scaledown.Evicted(view, launches))
	targets, _, err := nodepool.Targets(cluster, launches, names)
	must(s, err)
	return targets, names
}

// TestAnEvictedWorkerIsReplacedAtOnceOrNotAtAllAndNoHealthyOneGoes has two workers, of which the first is evicted. The
// operator must not touch the second, whatever the plan needs.
func TestAnEvictedWorkerIsReplacedAtOnceOrNotAtAllAndNoHealthyOneGoes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		inTree  bool
		launch  int
		workers int // that remain, the healthy one included
	}{
		{"needed-in-tree", true, 1, 2},
		{"needed", false, 1, 2},
		{"unneeded-in-tree", true, 0, 1},
		{"unneeded", false, 0, 2}, // the operator replaces it when it has ended
	} {
		t.Run(c.name, func(t *testing.T) {
			s := stage(t, "evicted-"+c.name)
			s.createAs(rig.Cluster{Namespace: s.namespace, Name: "llm", InTree: c.inTree, Groups: []rig.Group{{Name: "gpu", Replicas: 2, Max: 9}}}.Manifest())
			m := s.manager(kube.Options{})
			s.until("two workers", func() bool { return len(s.workers("llm", "gpu")) == 2 })
			evicted, healthy := s.workers("llm", "gpu")[0], s.workers("llm", "gpu")[1]
			end := s.evict(evicted)
			var cluster nodepool.Cluster
			s.until("the eviction in a fresh list", func() bool {
				var err error
				if cluster, err = m.Fresh(t.Context(), s.key("llm")); err != nil {
					t.Fatal(err)
				}
				at := slices.IndexFunc(cluster.Workers, func(w nodepool.Worker) bool { return w.Pod == evicted })
				return at >= 0 && cluster.Workers[at].Terminating && cluster.Workers[at].Going.Sign == departure.PodDisrupted
			})
			targets, names := s.takeBack(cluster, c.launch)
			if named := slices.Equal(names, []string{evicted}); named != (c.inTree || c.launch > 0) || len(names) > 1 {
				t.Errorf("names %v, want the evicted pod alone if it is replaced or with in-tree autoscaling", names)
			}
			if len(targets) > 0 {
				change := nodepool.Change{Cluster: cluster.Key, UID: cluster.UID, Generation: cluster.Generation, Targets: targets}
				s.change(m, change)
				// An operator that misses the pod before it reads the change makes another one, as the old replicas say.
				s.until("the operator to read the change", func() bool {
					desired, _, _ := unstructured.NestedInt64(s.get("llm").Object, "status", "desiredWorkerReplicas")
					return desired == int64(c.workers)
				})
			}
			if c.launch > 0 {
				s.until("the replacement, while the evicted pod is still ending", func() bool { return len(s.workers("llm", "gpu")) == 2 })
			}
			end()
			s.until("the end", func() bool { return len(s.workers("llm", "gpu")) == c.workers })
			for range 20 {
				time.Sleep(100 * time.Millisecond)
				if now := s.workers("llm", "gpu"); len(now) != c.workers || !slices.Contains(now, healthy) {
					t.Fatalf("workers %v, want %d with the healthy %s", now, c.workers, healthy)
				}
			}
		})
	}
}
