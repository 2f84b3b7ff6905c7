package kube

import (
	"fmt"
	"slices"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/test/rig"
)

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
	if err := pods.EvictV1(s.Context(), eviction); err != nil {
		s.Fatal(err)
	}
	return func() { s.Helper(); finalizers(`null`) }
}

// takeBack computes what the loop writes for evicted pods while launch pods are needed.
func (s *scene) takeBack(cluster nodepool.Cluster, launch int) ([]nodepool.Target, []string) {
	s.Helper()
	launches := map[string]int{"gpu": launch}
	view := observe.View{Cluster: cluster, Members: observe.Join(cluster, nil)}
	names := scaledown.PodsOf(scaledown.Evicted(view, launches))
	targets, _, err := nodepool.Targets(cluster, launches, names)
	if err != nil {
		s.Fatal(err)
	}
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
				if _, err := m.Apply(t.Context(), change); err != nil {
					t.Fatal(err)
				}
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
