package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/test/rig"
)

// TestAHigherPriorityTakesAnIdleGPU has a pool of two GPUs, which a RayCluster that may be reclaimed uses both. A RayCluster
// of a higher PriorityClass gets the one whose worker is idle; the task on the other one goes on. The first one waits until
// the urgent work has ended, and then has its GPU again.
func TestAHigherPriorityTakesAnIdleGPU(t *testing.T) {
	t.Parallel()
	never := corev1.PreemptNever
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Value: 1000, PreemptionPolicy: &never}
	classes := lab.Kube.SchedulingV1().PriorityClasses()
	if _, err := classes.Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = classes.Delete(context.Background(), class.Name, metav1.DeleteOptions{}) })
	one := rig.Group{Name: "gpu", Max: 2, Devices: map[string]int64{"amd.com/gpu": 1}, NodeSelector: map[string]string{"gpus": "reclaim"}}
	low := stage(t, rig.Cluster{Name: "low", IdleSeconds: 600, Groups: []rig.Group{one},
		Annotations: map[string]string{"heliostat.dev/reclaimable": "true"}})
	work := low.drive()
	low.do(work, task("kept", 1), task("short", 1))
	kept := low.see(work, "kept", "running").Pod
	idle := low.see(work, "short", "running").Pod
	low.do(work, release("short"))

	low.step("urgent work waits for the full pool, and then takes the place of the idle worker")
	high := &scene{T: t, ctx: low.ctx, began: low.began, namespace: low.namespace, name: "high", journal: rig.NewJournal(nil)}
	lab.Observe(high.ctx, high.namespace, high.name, high.journal)
	high.create(rig.Cluster{Namespace: high.namespace, Name: high.name, IdleSeconds: 20, Priority: class.Name, Groups: []rig.Group{one}})
	urgent := high.drive()
	high.do(urgent, task("urgent", 1))
	high.told("what it would take", func(st status) bool {
		return slices.ContainsFunc(st.Findings, func(f struct{ Code, Field string }) bool { return f.Code == "reclaim-possible" })
	})
	high.see(urgent, "urgent", "running")
	if left := low.workers("gpu", 1); left[0] != kept {
		t.Errorf("%v is left, want %s; %s was idle", left, kept, idle)
	}
	if begins := low.k8sEvent("GiveBackBegins"); !strings.Contains(begins.Message, "give-back of 1 GPU of group gpu for RayCluster "+high.namespace+"/high") {
		t.Errorf("Event %q", begins.Message)
	}
	low.k8sEvent("GiveBackEnds")
	if taken := low.object().GetAnnotations()["heliostat.dev/reclaimed"]; !strings.HasSuffix(taken, "Z 1") {
		t.Errorf("taken %q", taken)
	}

	low.step("what comes later waits, because it has no higher priority")
	low.do(work, task("later", 1))
	low.told("that the pool is full", func(st status) bool { return st.unmet("capped") })
	low.quiet("a higher priority uses the GPU")
	high.quiet("its work has what it needs")

	low.step("the urgent work ends, and its GPU goes back to demand")
	high.do(urgent, release("urgent"))
	low.see(work, "later", "running")
	low.workers("gpu", 2)
	low.created("gpu", 3)
	high.created("gpu", 1)
	low.drainedBeforeStopped()
	if lost := work.Lost(); len(lost) > 0 {
		t.Errorf("work was lost: %+v", lost)
	}
}
