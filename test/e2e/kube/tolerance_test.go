package kube

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/rig"
)

// TestAnUndecodableRayClusterDoesNotBlindTheOthers stores replicas 2147483648, which the API server accepts. Typed
// clients, including the operator's, then cannot read any RayCluster. This affects the operator in every namespace, so
// the test does not run in parallel.
func TestAnUndecodableRayClusterDoesNotBlindTheOthers(t *testing.T) {
	s := stage(t, "undecodable")
	s.create("good", rig.Group{Name: "gpu", Max: 9})
	s.createAs(groups(s.namespace, "bad", map[string]any{"replicas": int64(2147483648)}))
	defer func() {
		if err := lab.Dynamic().Resource(rig.RayClusters).Namespace(s.namespace).Delete(context.Background(), "bad", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}()
	m := s.manager(kube.Options{})
	bad := s.read(m, "bad")
	if !bad.Unreadable || !finding(bad, decode.FieldOutOfRange) || !errors.Is(bad.Writable(), nodepool.ErrReadOnly) {
		t.Errorf("Unreadable %v, findings %v", bad.Unreadable, bad.Findings)
	}
	good := s.read(m, "good")
	if _, err := m.Apply(t.Context(), s.targets(good, map[string]int{"gpu": 2})); err != nil {
		t.Errorf("the good one cannot be written: %v", err)
	}
	if replicas := s.read(m, "good").Groups[0].Replicas; replicas != 2 {
		t.Errorf("the good one has %d replicas, want 2", replicas)
	}
}

// groups returns a RayCluster with one group for each set of fields, named a, b, c.
func groups(namespace, name string, changes ...map[string]any) *unstructured.Unstructured {
	var list []rig.Group
	for i := range changes {
		list = append(list, rig.Group{Name: string(rune('a' + i)), Max: 3})
	}
	manifest := rig.Cluster{Namespace: namespace, Name: name, Groups: list}.Manifest()
	specs := manifest.Object["spec"].(map[string]any)["workerGroupSpecs"].([]any)
	for i, fields := range changes {
		for field, value := range fields {
			specs[i].(map[string]any)[field] = value
		}
	}
	return manifest
}

func TestRequestsSurviveInTheAnnotation(t *testing.T) {
	t.Parallel()
	s := stage(t, "requests")
	s.create("llm", rig.Group{Name: "gpu", Max: 9})
	m := s.manager(kube.Options{})
	before := s.read(m, "llm").Generation
	want := []raydemand.Request{{Bundle: raydemand.Bundle{raydemand.GPU: 5000}, Count: 2}}
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	must(t, m.SetResourceRequests(t.Context(), s.key("llm"), want, noon))
	got, since, err := m.ResourceRequests(t.Context(), s.key("llm"))
	if diff := cmp.Diff(want, got); diff != "" || err != nil || !since.Equal(noon) {
		t.Errorf("read back at once: since %v, %v (-want +got):\n%s", since, err, diff)
	}
	second := s.manager(kube.Options{})
	s.until("another process to read it", func() bool {
		return cmp.Diff(want, s.read(second, "llm").RequestResources) == ""
	})
	must(t, m.SetResourceRequests(t.Context(), s.key("llm"), nil, time.Time{}))
	if cluster := s.read(m, "llm"); len(cluster.RequestResources) > 0 || cluster.Generation != before {
		t.Errorf("after clearing: %v, generation %d, was %d", cluster.RequestResources, cluster.Generation, before)
	}
	if err := m.SetResourceRequests(t.Context(), s.key("nobody"), want, noon); !errors.Is(err, nodepool.ErrGone) {
		t.Errorf("an unknown cluster: error is %v, want ErrGone", err)
	}
}

func TestCyclesFollowEvents(t *testing.T) {
	t.Parallel()
	s := stage(t, "cycles")
	var cycles atomic.Int64
	s.managerWith(kube.Options{}, func(context.Context, nodepool.ClusterKey, bool) time.Duration { cycles.Add(1); return 0 })
	s.create("llm", rig.Group{Name: "gpu", Max: 9, Replicas: 1})
	s.until("a cycle for the new cluster", func() bool { return cycles.Load() > 0 })
	s.until("the worker", func() bool { return len(s.workers("llm", "gpu")) == 1 })
	var quiet int64
	s.until("two seconds without a cycle", func() bool { // the operator's last writes are late on a busy machine
		quiet = cycles.Load()
		time.Sleep(2 * time.Second)
		return cycles.Load() == quiet
	})
	must(t, lab.Client().CoreV1().Pods(s.namespace).Delete(t.Context(), s.workers("llm", "gpu")[0], metav1.DeleteOptions{}))
	s.until("a cycle for the deleted pod", func() bool { return cycles.Load() > quiet })
}
