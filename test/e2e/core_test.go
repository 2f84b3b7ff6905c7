package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/test/rig"
)

// TestCoreLoop goes through the loop once, on one RayCluster: work and requests get workers within the limits of their
// groups, a freeze stops writes, a crash of Heliostat repeats none, and workers without work are drained and removed.
// It is the part of this package that `make test` runs.
func TestCoreLoop(t *testing.T) {
	one := rig.Group{Name: "gpu", Max: 1, Devices: map[string]int64{"nvidia.com/gpu": 1}}
	s := stage(t, rig.Cluster{Name: "loop", IdleSeconds: 600, Groups: []rig.Group{cpu, one}})
	go lab.ObserveGuards(s.ctx, s.namespace, s.name, s.journal)

	s.step("a request over REST launches a worker with two CPUs, an actor launches one with a GPU")
	asked := s.rest(http.MethodPost, "/request_resources", `{"bundles": [{"CPU": 2}]}`)
	driver := s.drive()
	s.do(driver, actor("witness", 1))
	ran := s.see(driver, "witness", "running")
	busy := s.workers("gpu", 1)[0]
	idle := s.workers("cpu", 1)[0]
	s.guardedBefore(ran)
	heads, err := lab.Kube.CoreV1().Pods(s.namespace).List(s.ctx, metav1.ListOptions{LabelSelector: "ray.io/node-type=head"})
	s.must(err)
	if len(heads.Items) != 1 || !s.guarded(heads.Items[0].Name) {
		s.Errorf("%d heads, want one with a guard", len(heads.Items))
	}

	s.step("the worker without work loses its guard, has it while there is work, and is kept by the request")
	s.guardBecomes(idle, false)
	s.do(driver, rig.Command{Do: "actor", ID: "on the idle worker", CPUs: 2})
	s.see(driver, "on the idle worker", "running")
	s.guardBecomes(idle, true)
	s.do(driver, release("on the idle worker"))
	s.guardBecomes(idle, false)

	s.step("maxReplicas keeps more demand waiting")
	s.do(driver, task("second", 1))
	s.told("that the maximum is 1", func(st status) bool { return st.unmet("capped") })
	s.quiet("the maximum is 1")

	s.step("a freeze stops all writes: the maximum is raised, and nothing follows")
	s.annotate("freeze", "true")
	s.k8sEvent("Frozen")
	s.setGroup(1, map[string]any{"maxReplicas": 2})
	code, _, err := fleet.Call(s.ctx, http.MethodDelete, rig.RequestPath(s.namespace, s.name), "")
	if err != nil || code < http.StatusBadRequest {
		s.Errorf("clearing the request of a frozen RayCluster: status %d, %v; want a problem", code, err)
	}
	s.told("that the RayCluster is frozen, and wants a second worker", func(st status) bool {
		return st.Frozen && st.group("gpu").Desired == 2
	})
	s.quiet("the RayCluster is frozen")

	s.step("the freeze ends, and Heliostat is killed between its patch and the worker's start")
	s.annotate("freeze", "")
	s.patchedTo("gpu", 2)
	fleet.Kill()
	ctx, cancel := s.patient()
	defer cancel()
	s.must(restartFleet(ctx))
	s.see(driver, "second", "running")
	s.quiet("nothing is launched twice")
	s.created("gpu", 2)
	s.created("cpu", 1)
	if diff := cmp.Diff(string(asked), string(s.rest(http.MethodGet, "/request_resources", ""))); diff != "" {
		s.Errorf("the request after the restart (-before +after):\n%s", diff)
	}

	s.step("the second task ends: its worker is drained, named and gone; the busy one and the minimum stay")
	s.setGroup(0, map[string]any{"minReplicas": 1})
	s.rest(http.MethodDelete, "/request_resources", "")
	s.do(driver, release("second"))
	s.idleTimeout(2)
	if left := s.workers("gpu", 1); left[0] != busy {
		s.Errorf("worker %s is left, want the busy %s", left[0], busy)
	}
	s.quiet("one worker is busy, the other is the minimum")
	if left := s.workers("cpu", 1); left[0] != idle {
		s.Errorf("worker %s became %s", idle, left[0])
	}
	s.do(driver, rig.Command{Do: "ask", ID: "witness"})
	s.see(driver, "witness", "answered")

	s.step("without work and without a minimum, no worker stays")
	s.setGroup(0, map[string]any{"minReplicas": 0})
	s.do(driver, release("witness"))
	s.workers("gpu", 0)
	s.workers("cpu", 0)
	s.leftInOrder()
	s.created("gpu", 2)
	s.created("cpu", 1)
	for group, n := range rig.Replicas(s.object()) {
		if n != 0 {
			s.Errorf("group %s keeps %d replicas with nothing to do", group, n)
		}
	}
	if lost := driver.Lost(); len(lost) > 0 {
		s.Errorf("work was lost: %+v", lost)
	}
	s.step("done")
}

// leftInOrder asserts that every worker that is gone was drained and named in workersToDelete before it was stopped.
func (s *scene) leftInOrder() {
	s.Helper()
	s.drainedBeforeStopped()
	facts := s.journal.Facts()
	for _, pod := range rig.Pods(facts, "") {
		_, stopped := rig.OfPod(facts, pod, rig.PodStopping)
		if _, named := rig.OfPod(facts, pod, rig.Named); stopped && !named && !rig.GaveUp(facts, pod) {
			s.Errorf("pod %s was stopped and never named", pod)
		}
	}
}

// guardedBefore asserts that a worker had its guard before work ran there.
func (s *scene) guardedBefore(ran rig.Event) {
	s.Helper()
	if guarded, ok := rig.OfPod(s.journal.Facts(), ran.Pod, rig.Guarded); !ok || guarded.After(ran.At) {
		s.Errorf("worker %s got work at %v, and a guard (%t) at %v", ran.Pod, ran.At, ok, guarded)
	}
}

// idleTimeout sets the idle timeout of all groups.
func (s *scene) idleTimeout(seconds int64) {
	s.Helper()
	s.patch(fmt.Sprintf(`{"spec": {"autoscalerOptions": {"idleTimeoutSeconds": %d}}}`, seconds))
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
