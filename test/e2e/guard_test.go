package e2e

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/test/rig"
)

// TestAWorkerIsGuardedFromBeforeItsWorkToItsEnd uses one worker that stays when it is idle.
func TestAWorkerIsGuardedFromBeforeItsWorkToItsEnd(t *testing.T) {
	t.Parallel()
	s := stage(t, rig.Cluster{Name: "guarded", IdleSeconds: 600, Groups: []rig.Group{gpu}})
	driver := s.drive()
	s.do(driver, task("first", 1))
	s.see(driver, "first", "running")
	worker := s.workers("gpu", 1)[0]
	if !s.guarded(worker) {
		t.Error("the worker got work before it had a guard")
	}
	heads, err := lab.Kube.CoreV1().Pods(s.namespace).List(s.ctx, metav1.ListOptions{LabelSelector: "ray.io/node-type=head"})
	s.must(err)
	if len(heads.Items) != 1 || !s.guarded(heads.Items[0].Name) {
		t.Errorf("%d heads, want one with a guard", len(heads.Items))
	}
	s.do(driver, release("first"))
	s.see(driver, "first", "released")
	s.guardBecomes(worker, false)
	s.do(driver, task("second", 1))
	s.see(driver, "second", "running")
	s.guardBecomes(worker, true)
	s.do(driver, release("second"))
	s.see(driver, "second", "released")
	s.created("gpu", 1)
}

// guarded reports whether a pod has the annotations that keep node autoscalers from evicting it.
func (s *scene) guarded(name string) bool {
	s.Helper()
	pod, err := lab.Kube.CoreV1().Pods(s.namespace).Get(s.ctx, name, metav1.GetOptions{})
	s.must(err)
	return pod.Annotations[nodepool.DoNotDisruptAnnotation] == nodepool.DoNotDisrupt &&
		pod.Annotations[nodepool.SafeToEvictAnnotation] == nodepool.SafeToEvict
}

// guardBecomes waits until a pod has a guard, or none.
func (s *scene) guardBecomes(pod string, want bool) {
	s.Helper()
	began := time.Now()
	for s.guarded(pod) != want {
		if time.Since(began) > patience {
			s.Fatalf("pod %s: guarded %t after %v, want %t", pod, !want, patience, want)
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.Logf("pod %s: guarded %t after %v", pod, want, time.Since(began).Round(time.Millisecond))
}
