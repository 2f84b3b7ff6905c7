package neighbours

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/rig"
)

// TestKarpenterAndRealRay runs the scenarios in which Karpenter removes nodes under real Ray work. Most share one Ray
// head; each has NodePools of its own.
func TestKarpenterAndRealRay(t *testing.T) {
	t.Parallel()
	m := startMachines(t, "--protect-busy", "--allocation-timeout", "10m")
	const consolidated, patient, roomy, hasty = "consolidated", "patient", "roomy", "hasty"
	m.scenario(t, "machines with work", func(m *machines) {
		w := m.workload(rig.Cluster{Name: "work", IdleSeconds: 5}, 4, 0,
			devcluster.NodePool{Name: consolidated, Types: []string{"two"}, ConsolidateAfter: "5s"},
			devcluster.NodePool{Name: patient, Types: []string{"one"}, CapacityTypes: []string{"spot"}},
			devcluster.NodePool{Name: roomy, Types: []string{"one"}, CapacityTypes: []string{"spot"}, TerminationGracePeriod: "3m"},
			devcluster.NodePool{Name: hasty, Types: []string{"one"}, CapacityTypes: []string{"spot"}, TerminationGracePeriod: "60s"})
		for _, scenario := range []struct {
			pool string
			do   func(*workload, string)
		}{{consolidated, consolidation}, {hasty, isLostAtTheDeadline}, {patient, finishesOnAGoingMachine}, {roomy, finishesOnAGoingMachine}} {
			w.Run(scenario.pool, func(t *testing.T) {
				t.Parallel()
				scenario.do(w.in(t), scenario.pool)
			})
		}
	})
	m.scenario(t, "an idle worker is evicted", evictedWhileIdle)
}

// consolidation covers assertion 4: half-empty nodes with busy workers are left alone, and nodes that become empty go.
func consolidation(w *workload, pool string) {
	first, second := pool+"-1", pool+"-2"
	w.task(first, pool, 1, 0)
	taken := w.fill(pool) // the other GPU of the first node
	w.task(second, pool, 1, 0)
	pods := []string{w.wait(first, "running").Pod, w.wait(second, "running").Pod}
	if w.nodeOf(pods[0]).Name == w.nodeOf(pods[1]).Name {
		w.Fatalf("the workers %v are on one node, want two", pods)
	}
	taken()
	w.guards(pods...)
	// Without guards, Karpenter empties one of two half-empty nodes after 5 s (consolidateAfter), 10 s (poll) and 15 s
	// (validation). The machines of the other scenarios go meanwhile.
	for end := time.Now().Add(35 * time.Second); time.Now().Before(end); time.Sleep(time.Second) {
		w.unchanged(pool, pods)
	}
	w.until("Karpenter says that the guards block it", func(ctx context.Context) error { return w.blockedBy(ctx, pods) })
	w.end("release", first)
	left := w.workers(pool, 1)
	w.until("the empty node is gone", w.hasClaims(pool, 1))
	w.unchanged(pool, left)
}

// in returns the workload for a subtest.
func (w *workload) in(t *testing.T) *workload {
	sub, lab := *w, *w.machines
	lab.T = t
	sub.machines = &lab
	return &sub
}

// fill runs a pod with a GPU beside the first worker of a pool, and returns what deletes it.
func (w *workload) fill(pool string) (remove func()) {
	w.Helper()
	w.workers(pool, 1)
	gpu := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	client := w.Kube.CoreV1().Pods(w.name)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "filler"}, Spec: corev1.PodSpec{
		NodeSelector: map[string]string{"pool": pool}, TerminationGracePeriodSeconds: new(int64(0)),
		Containers: []corev1.Container{{Name: "main", Image: "machine", Command: []string{"/bin/bash", "-c", "sleep 3600; true"},
			Resources: corev1.ResourceRequirements{Requests: gpu, Limits: gpu}}},
	}}
	if _, err := client.Create(w.Context(), pod, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	w.until("the other GPU is taken", func(ctx context.Context) error {
		filler, err := client.Get(ctx, "filler", metav1.GetOptions{})
		if err == nil && filler.Spec.NodeName == "" {
			err = errors.New("the filler has no node")
		}
		return err
	})
	return func() {
		must(w, client.Delete(w.Context(), "filler", metav1.DeleteOptions{}))
	}
}

// isLostAtTheDeadline covers assertion 6: a task runs on a machine of a pool whose deadline leaves 50 s until the pod is
// deleted, 10 s before the end of its grace period.
func isLostAtTheDeadline(w *workload, pool string) {
	id := pool + "-1"
	w.task(id, pool, 1, 0)
	old := w.wait(id, "running").Pod
	node := w.reclaim(old)
	deadline := w.deadline(pool)
	w.until("the worker's deadline is shown", w.says(old, "node "+node+" goes at "+deadline))
	replacement := w.replaced(old)
	w.until("the task is lost at the deadline", func(context.Context) error {
		if !slices.ContainsFunc(w.driver.Lost(), func(e rig.Event) bool { return e.ID == id }) {
			return errors.New("it runs")
		}
		return nil
	})
	w.until("the replacement has joined", func(context.Context) error {
		if _, ok := rig.OfPod(w.journal.Facts(), replacement, rig.NodeAlive); !ok {
			return fmt.Errorf("worker %s has not", replacement)
		}
		return nil
	})
}

// finishesOnAGoingMachine covers assertion 5: it runs a task, deletes the NodeClaim of its node, and checks that the task
// finishes there, that no other work begins there, that a replacement is launched before it ends, and that the machine
// goes when the task is done.
func finishesOnAGoingMachine(w *workload, pool string) {
	id := pool + "-1"
	w.task(id, pool, 0.5, 0)
	old := w.wait(id, "running").Pod
	w.guards(old)
	w.settled(old)
	claims := w.claims(pool)
	w.reclaim(old)
	w.until("Ray drains the worker", w.drained(old))
	w.task(id+"-next", pool, 0.5, 1)
	w.replaced(old)
	w.end("finish", id)
	if done := w.wait(id, "done"); done.Pod != old {
		w.Errorf("%s finished on %s, want %s", id, done.Pod, old)
	}
	if next := w.wait(id+"-next", "done"); next.Pod == old {
		w.Errorf("%s ran on %s, which is going", next.ID, old)
	}
	w.served(pool)
	w.until("the NodeClaim is gone", func(ctx context.Context) error {
		for _, claim := range w.claims(pool) {
			if slices.Contains(claims, claim) {
				return fmt.Errorf("%s is there", claim)
			}
		}
		return nil
	})
}

// evictedWhileIdle covers assertion 7: while an idle worker is evicted, the busy one stays. The operator replaces a pod
// that is evicted, and the replacement goes when it is idle. Then it shows what the other scenarios prevent: without
// Heliostat, a busy worker's task is lost.
func evictedWhileIdle(m *machines) {
	const pool = "evicted"
	w := m.workload(rig.Cluster{Name: "evicted", IdleSeconds: 600}, 3, 0, // until the worker is evicted
		devcluster.NodePool{Name: pool, Types: []string{"one"}})
	w.task("busy", pool, 1, 0)
	w.task("short", pool, 1, 0)
	busy, idle := w.wait("busy", "running").Pod, w.wait("short", "running").Pod
	w.end("release", "short")
	w.until("the idle worker is not guarded", w.isGuarded(idle, false))
	w.guards(busy)
	w.reclaim(idle)
	w.until("the idle worker is evicted", func(context.Context) error {
		if _, ok := rig.OfPod(w.journal.Facts(), idle, rig.PodStopping); !ok {
			return errors.New("it is not")
		}
		return nil
	})
	w.idleTimeout(5)
	w.until("only the busy worker is left", w.hasOnly(busy))
	w.served("")
	w.lostWithoutHeliostat("busy", busy)
}

// idleTimeout changes the time after which idle workers go.
func (w *workload) idleTimeout(seconds int) {
	w.Helper()
	patch := fmt.Appendf(nil, `{"spec": {"autoscalerOptions": {"idleTimeoutSeconds": %d}}}`, seconds)
	_, err := w.Dynamic.Resource(rig.RayClusters).Namespace(w.name).Patch(w.Context(), w.name, types.MergePatchType, patch,
		metav1.PatchOptions{})
	must(w, err)
}

// lostWithoutHeliostat takes the RayCluster out of Heliostat's hands and the guard from a worker, and deletes its
// NodeClaim.
func (w *workload) lostWithoutHeliostat(id, pod string) {
	w.Helper()
	off := []byte(`{"metadata": {"annotations": {"heliostat.dev/mode": "off"}}}`)
	bare := []byte(`{"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": null, "heliostat.dev/guard": null,
		"cluster-autoscaler.kubernetes.io/safe-to-evict": null}}}`)
	_, err := w.Dynamic.Resource(rig.RayClusters).Namespace(w.name).Patch(w.Context(), w.name, types.MergePatchType, off,
		metav1.PatchOptions{})
	must(w, err)
	w.until("the guard is taken away", func(ctx context.Context) error {
		_, err := w.Kube.CoreV1().Pods(w.name).Patch(ctx, pod, types.MergePatchType, bare, metav1.PatchOptions{})
		must(w, err)
		time.Sleep(time.Second) // Heliostat would put it back within a cycle, 0.2 s
		return w.isGuarded(pod, false)(ctx)
	})
	w.reclaim(pod)
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	if _, err := w.driver.Wait(ctx, id, "done"); !errors.Is(err, rig.ErrLost) {
		w.Errorf("without Heliostat: %v, want that the task is lost", err)
	}
	w.say("without Heliostat, the task is lost")
}

// nodeOf returns the node of a pod.
func (w *workload) nodeOf(pod string) *corev1.Node {
	w.Helper()
	node, err := w.NodeOf(w.Context(), w.name, pod)
	must(w, err)
	return node
}

// pods returns the workers of a pool's group.
func (w *workload) pods(ctx context.Context, pool string) ([]corev1.Pod, error) {
	pods, err := w.WorkerPods(ctx, w.name, w.name)
	return slices.DeleteFunc(pods, func(p corev1.Pod) bool { return p.Labels["ray.io/group"] != pool }), err
}

// workers waits until a pool's group has so many workers, none of them Terminating, and returns their names.
func (w *workload) workers(pool string, want int) (names []string) {
	w.Helper()
	w.until(fmt.Sprintf("%d workers are left on pool %s", want, pool), func(ctx context.Context) error {
		pods, err := w.pods(ctx, pool)
		if err != nil {
			return err
		}
		names = nil
		for _, pod := range pods {
			names = append(names, pod.Name)
		}
		if len(names) != want {
			return fmt.Errorf("there are %v", names)
		}
		return nil
	})
	return names
}

// hasOnly returns a check that a worker has been the only one for 3 s: between the end of an evicted pod and its
// replacement there are fewer for a moment. It fails the test when the worker itself is being deleted.
func (w *workload) hasOnly(pod string) func(context.Context) error {
	var since time.Time
	return func(ctx context.Context) error {
		pods, err := w.WorkerPods(ctx, w.name, w.name)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Name == pod && p.DeletionTimestamp == nil }) {
			w.Fatalf("%s: worker %s is being deleted", w.name, pod)
		}
		if len(pods) > 1 {
			since = time.Time{}
			return fmt.Errorf("there are %d workers", len(pods))
		}
		if since.IsZero() {
			since = time.Now()
		}
		if lasted := time.Since(since); lasted < 3*time.Second {
			return fmt.Errorf("for %v only", lasted)
		}
		return nil
	}
}

// unchanged checks that all workers of a pool's group are these, that none of them is being deleted, and that none of
// their tasks is lost.
func (w *workload) unchanged(pool string, want []string) {
	w.Helper()
	pods, err := w.pods(w.Context(), pool)
	must(w, err)
	for _, pod := range pods {
		if !slices.Contains(want, pod.Name) || pod.DeletionTimestamp != nil || len(pods) != len(want) {
			w.Fatalf("%s: worker %s of %d, deleted at %v; want %v", w.name, pod.Name, len(pods), pod.DeletionTimestamp, want)
		}
	}
	w.served(pool)
}

// isGuarded returns a check that a pod has the guard, or that it has not.
func (w *workload) isGuarded(pod string, want bool) func(context.Context) error {
	return func(ctx context.Context) error {
		object, err := w.Kube.CoreV1().Pods(w.name).Get(ctx, pod, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for key, value := range map[string]string{
			"karpenter.sh/do-not-disrupt": "true", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
		} {
			if has := object.Annotations[key] == value; has != want {
				return fmt.Errorf("annotation %s of pod %s is %q", key, pod, object.Annotations[key])
			}
		}
		return nil
	}
}

// guards checks that all these pods were guarded before their work ran, and are.
func (w *workload) guards(pods ...string) {
	w.Helper()
	for _, pod := range pods {
		if err := w.isGuarded(pod, true)(w.Context()); err != nil {
			w.Errorf("%s: %v", w.name, err)
		}
		guarded, _ := rig.OfPod(w.journal.Facts(), pod, rig.Guarded)
		busy, _ := rig.OfPod(w.journal.Facts(), pod, rig.NodeBusy)
		if guarded.IsZero() || !busy.IsZero() && guarded.After(busy) {
			w.Errorf("%s: worker %s was guarded at %v, busy from %v on", w.name, pod, guarded, busy)
		}
	}
}

// blockedBy returns an error until Karpenter has said that the guard of one of these pods blocks it.
func (w *workload) blockedBy(ctx context.Context, pods []string) error {
	events, err := w.Kube.CoreV1().Events(metav1.NamespaceDefault).List(ctx,
		metav1.ListOptions{FieldSelector: "reason=DisruptionBlocked"})
	if err != nil {
		return err
	}
	for _, e := range events.Items {
		for _, pod := range pods {
			if strings.Contains(e.Message, "do-not-disrupt") && strings.Contains(e.Message, w.name+"/"+pod) {
				return nil
			}
		}
	}
	return fmt.Errorf("none of %d Events names one of %v", len(events.Items), pods)
}

// claims returns the names of the NodeClaims of a pool.
func (w *workload) claims(pool string) (names []string) {
	w.Helper()
	claims, err := w.NodeClaims(w.Context(), pool)
	must(w, err)
	for _, claim := range claims {
		names = append(names, claim.GetName())
	}
	return names
}

// deadline returns the time of day at which the NodeClaim of a pool that is being deleted ends.
func (w *workload) deadline(pool string) (at string) {
	w.Helper()
	w.until("the NodeClaim has a deadline", func(ctx context.Context) error {
		claims, err := w.NodeClaims(ctx, pool)
		if err != nil {
			return err
		}
		for _, claim := range claims {
			if text := claim.GetAnnotations()["karpenter.sh/nodeclaim-termination-timestamp"]; text != "" {
				end, err := time.Parse(time.RFC3339, text)
				at = end.UTC().Format(time.TimeOnly)
				return err
			}
		}
		return fmt.Errorf("none of %d has", len(claims))
	})
	return at
}

func (w *workload) hasClaims(pool string, want int) func(context.Context) error {
	return func(context.Context) error {
		if claims := w.claims(pool); len(claims) != want {
			return fmt.Errorf("there are %v", claims)
		}
		return nil
	}
}

// settled waits until a worker joined more than 3 s ago: until then, Heliostat does not drain it.
func (w *workload) settled(pod string) {
	w.Helper()
	joined, _ := rig.OfPod(w.journal.Facts(), pod, rig.NodeAlive)
	time.Sleep(time.Until(joined.Add(6 * time.Second)))
}

// drained returns a check that Ray drains the node of a pod.
func (w *workload) drained(pod string) func(context.Context) error {
	return func(context.Context) error {
		if _, ok := rig.OfPod(w.journal.Facts(), pod, rig.Drained); !ok {
			return errors.New("Ray places work there")
		}
		return nil
	}
}

// replaced waits until another worker of the pod's group is created, and checks that the pod is still there. It returns
// the other worker.
func (w *workload) replaced(old string) (replacement string) {
	w.Helper()
	began := time.Now()
	w.until("a replacement is launched", func(context.Context) error {
		facts := w.journal.Facts()
		last, _ := rig.First(facts, func(f rig.Fact) bool { return f.Stage == rig.PodCreated && f.Pod == old })
		pods := rig.Living(facts, last.Group)
		if len(pods) < 2 || pods[len(pods)-1] == old {
			return fmt.Errorf("the workers of group %s are %v", last.Group, pods)
		}
		replacement = pods[len(pods)-1]
		return nil
	})
	if at, gone := rig.OfPod(w.journal.Facts(), old, rig.PodGone); gone && at.Before(began) {
		w.Errorf("worker %s was gone before its replacement was launched", old)
	}
	return replacement
}

// says returns a check that an Event of the RayCluster about a worker whose machine goes contains a text.
func (w *workload) says(pod, text string) func(context.Context) error {
	return func(ctx context.Context) error {
		events, err := w.Kube.CoreV1().Events(w.name).List(ctx, metav1.ListOptions{FieldSelector: "reason=WorkerGoing"})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if strings.HasPrefix(e.Message, pod+":") && strings.Contains(e.Message, text) {
				return nil
			}
		}
		return fmt.Errorf("none of %d Events says so of worker %s", len(events.Items), pod)
	}
}
