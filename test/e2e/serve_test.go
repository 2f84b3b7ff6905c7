package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/test/devcluster/kit"
	"heliostat.dev/heliostat/test/rig"
)

// rayServe is the set of packages that Ray Serve needs in addition to Ray.
var rayServe = kit.Tool{Name: "rayserve", Version: "2.60.0", Lock: "serve.lock", MinPython: 11, MaxPython: 14}

// TestHalfEmptyWorkersOfServeArePackedWithoutAFailedRequest runs four Serve replicas of one CPU on four workers of two
// CPUs, which Serve spreads evenly, and calls them all the time. The RayCluster lets replicas move: Heliostat drains one
// worker after the other until two are left, and Serve moves the replicas. No request may fail.
func TestHalfEmptyWorkersOfServeArePackedWithoutAFailedRequest(t *testing.T) {
	t.Parallel()
	layer := layerOf(t, rayServe)
	s := stageLayer(t, layer, map[string]any{"num-cpus": "0"}, rig.Cluster{Name: "serve", IdleSeconds: 300,
		Annotations: map[string]string{"heliostat.dev/price": `{"cpu": 3.1}`},
		Groups:      []rig.Group{{Name: "cpu", CPU: "2", Replicas: 4, Max: 4}}})
	s.workers("cpu", 4)
	driver := s.driveData(layer)
	s.do(driver, rig.Command{Do: "serve", ID: "app", Workers: 4})
	s.see(driver, "app", "running")

	s.patch(`{"metadata": {"annotations": {"heliostat.dev/consolidate": "serve"}}}`)
	began := time.Now()
	for left := 3; left >= 2; left-- {
		s.workers("cpu", left)
		t.Logf("%d workers %.0f s after the annotation", left, time.Since(began).Seconds())
	}
	s.quiet("two full workers are left")
	s.do(driver, rig.Command{Do: "release", ID: "app"})
	t.Logf("during that: %s", s.see(driver, "app", "done").Pod)
	if lost := driver.Lost(); len(lost) > 0 {
		t.Errorf("%d requests failed, the first: %s", len(lost), lost[0].Error)
	}
	s.created("cpu", 4)
}

// TestServeAnswersWhileItsWorkerIsGivenBack takes one of three GPUs whose workers each run a replica that uses no GPU, and
// calls the replicas all the time. It runs alone, because each scene of Serve needs both cores.
func TestServeAnswersWhileItsWorkerIsGivenBack(t *testing.T) {
	layer := layerOf(t, rayServe)
	s := stageLayer(t, layer, map[string]any{"num-cpus": "0"}, rig.Cluster{Name: "servegives", IdleSeconds: 300,
		Groups: []rig.Group{{Name: "gpu", CPU: "2", Replicas: 3, Max: 3, Devices: map[string]int64{"nvidia.com/gpu": 1}}}})
	s.workers("gpu", 3)
	driver := s.driveData(layer)
	s.do(driver, rig.Command{Do: "serve", ID: "app", Workers: 3})
	s.see(driver, "app", "running")
	began := time.Now()
	s.giveBack(`{"gpus": 1, "group": "gpu", "deadlineSeconds": 300}`)
	s.workers("gpu", 2)
	t.Logf("two workers %.0f s after the call", time.Since(began).Seconds())
	s.quiet("the group is held down")
	s.do(driver, rig.Command{Do: "release", ID: "app"})
	t.Logf("during that: %s", s.see(driver, "app", "done").Pod)
	if lost := driver.Lost(); len(lost) > 0 {
		t.Errorf("%d requests failed, the first: %s", len(lost), lost[0].Error)
	}
}

// TestServeAnswersWhileAGPUIsBad breaks the GPU of the only worker with a replica, and calls it all the time. The
// replacement joins before the drained worker goes by name, Serve moves the replica there, and no request fails.
// It runs alone, as TestServeAnswersWhileItsWorkerIsGivenBack does.
func TestServeAnswersWhileAGPUIsBad(t *testing.T) {
	layer := layerOf(t, rayServe)
	one := rig.Group{Name: "gpu", CPU: "2", Replicas: 1, Max: 2, Devices: map[string]int64{"amd.com/gpu": 1},
		NodeSelector: map[string]string{"gpus": "repair"}}
	s := stageLayer(t, layer, map[string]any{"num-cpus": "0"}, rig.Cluster{Name: "servebad", IdleSeconds: 300, Groups: []rig.Group{one}})
	bad := s.workers("gpu", 1)[0]
	pod, err := lab.Kube.CoreV1().Pods(s.namespace).Get(s.ctx, bad, metav1.GetOptions{})
	s.must(err)
	driver := s.driveData(layer)
	s.do(driver, rig.Command{Do: "serve", ID: "app", Workers: 1})
	s.see(driver, "app", "running")

	began := time.Now()
	s.condition(pod.Spec.NodeName, "XIDErrors", corev1.ConditionTrue, "XID 79 on GPU 0")
	defer s.condition(pod.Spec.NodeName, "XIDErrors", corev1.ConditionFalse, "")
	s.eventually("the worker goes by name", func(facts []rig.Fact) bool { _, gone := rig.OfPod(facts, bad, rig.PodGone); return gone })
	t.Logf("the worker went %.0f s after the sign", time.Since(began).Seconds())
	if _, named := rig.OfPod(s.journal.Facts(), bad, rig.Named); !named {
		t.Error("the worker went without its name")
	}
	s.drainedBeforeStopped()
	s.workers("gpu", 1)
	s.quiet("the replica has moved")
	s.do(driver, rig.Command{Do: "release", ID: "app"})
	t.Logf("during that: %s", s.see(driver, "app", "done").Pod)
	if lost := driver.Lost(); len(lost) > 0 {
		t.Errorf("%d requests failed, the first: %s", len(lost), lost[0].Error)
	}
	s.created("gpu", 2)
}

// TestSlowHalfEmptyWorkersOfRestartableActorsArePacked leaves one actor on each of two workers of two CPUs. At the deadline
// of the drain, one worker ends, and Ray restarts its actor on the other. An actor that Ray does not restart would keep
// its worker.
func TestSlowHalfEmptyWorkersOfRestartableActorsArePacked(t *testing.T) {
	slow(t)
	s := stage(t, rig.Cluster{Name: "restart", IdleSeconds: 300,
		Annotations: map[string]string{"heliostat.dev/price": `{"cpu": 3.1}`}, Groups: []rig.Group{cpu}})
	driver := s.drive()
	restartable := func(id string) rig.Command { return rig.Command{Do: "actor", ID: id, CPUs: 1, Restarts: -1} }
	s.do(driver, restartable("a"))
	s.see(driver, "a", "running")
	s.do(driver, rig.Command{Do: "task", ID: "filler", CPUs: 1})
	s.see(driver, "filler", "running") // beside a, because there is no other worker
	s.do(driver, restartable("b"))
	s.see(driver, "b", "running")
	s.workers("cpu", 2)
	s.do(driver, release("filler"))

	s.patch(`{"metadata": {"annotations": {"heliostat.dev/consolidate": "restartable"}}}`)
	began := time.Now()
	last := s.workers("cpu", 1)[0]
	t.Logf("one worker %.0f s after the annotation", time.Since(began).Seconds())
	for _, id := range []string{"a", "b"} {
		s.do(driver, rig.Command{Do: "ask", ID: id})
		if on := s.see(driver, id, "answered").Pod; on != last {
			t.Errorf("actor %s is on %s, want %s", id, on, last)
		}
	}
	s.created("cpu", 2)
}
