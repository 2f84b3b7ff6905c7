package nodes

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
)

// goingOf returns what a worker on node a shows, by the watches alone.
func goingOf(n *nodes, claims *claimWatch, own *departure.Notice) *departure.Notice {
	o := &Watch{nodes: n, claims: claims}
	cluster := nodepool.Cluster{Key: llm, UID: "u", Workers: []nodepool.Worker{{Pod: "w", Node: "a", Running: true, Going: own}}}
	n.addTo(&cluster)
	o.markGoing(&cluster)
	return cluster.Workers[0].Going
}

func TestASignOfTheNodeShowsWithTheWorkerBeforeThereIsANewView(t *testing.T) {
	client := &fakeNodes{list: []corev1.Node{*kubeNode("a", "1", corev1.ConditionTrue)}}
	besideNodes(t, client, func(t *testing.T, n *nodes, changes *atomic.Int32) {
		claims := newClaimWatch(nil, nil, slog.New(slog.DiscardHandler))
		if got := goingOf(n, claims, nil); got != nil {
			t.Fatalf("a healthy node goes: %+v", got)
		}
		before := changes.Load()
		time.Sleep(nodesPause)
		tainted := kubeNode("a", "1", corev1.ConditionTrue)
		tainted.Spec.Taints = []corev1.Taint{{Key: "DeletionCandidateOfClusterAutoscaler", Effect: corev1.TaintEffectPreferNoSchedule}}
		client.stream.Modify(tainted)
		synctest.Wait()
		if got := goingOf(n, claims, nil); got == nil || got.Sign != departure.AutoscalerCandidate {
			t.Errorf("a taint that keeps no pod away is not seen: %+v", got)
		}
		if changes.Load() == before {
			t.Error("a sign causes no cycle")
		}
		deleting := kubeNode("a", "1", corev1.ConditionTrue)
		deleting.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		client.stream.Modify(deleting)
		synctest.Wait() // nodesPause is not over
		if got := goingOf(n, claims, nil); got == nil || got.Sign != departure.NodeDeleting {
			t.Errorf("a Node that is deleted goes: %+v", got)
		}
		client.stream.Modify(kubeNode("a", "1", corev1.ConditionTrue))
		synctest.Wait()
		if got := goingOf(n, claims, nil); got != nil {
			t.Errorf("after the sign is taken back: %+v", got)
		}
		client.stream.Delete(kubeNode("a", "1", corev1.ConditionTrue))
		elapse(2 * nodesPause)
		if got := goingOf(n, claims, nil); got == nil || got.Sign != departure.NodeGone || !got.Certain {
			t.Errorf("a worker without a Node: %+v", got)
		}
	})
}

func TestANodeThatWasNeverSeenIsNoSign(t *testing.T) {
	besideNodes(t, &fakeNodes{list: []corev1.Node{*kubeNode("b", "1", corev1.ConditionTrue)}},
		func(t *testing.T, n *nodes, _ *atomic.Int32) {
			claims := newClaimWatch(nil, nil, slog.New(slog.DiscardHandler))
			goingOf(n, claims, nil)
			time.Sleep(2 * missingNodeGrace)
			if got := goingOf(n, claims, nil); got != nil {
				t.Errorf("a worker on a node that the watch has not shown yet would be drained: %+v", got)
			}
		})
}

// A taint that a worker tolerates, and a condition without a taint, keep no pod off the machine. If each replacement
// there were drained in turn, one machine could use up pods without an end.
func TestAPodThatComesToAMachineThatGoesIsNotDrained(t *testing.T) {
	client := &fakeNodes{list: []corev1.Node{*kubeNode("a", "1", corev1.ConditionTrue)}}
	besideNodes(t, client, func(t *testing.T, n *nodes, _ *atomic.Int32) {
		o := &Watch{nodes: n, claims: newClaimWatch(nil, nil, slog.New(slog.DiscardHandler))}
		begun := time.Now()
		tainted := kubeNode("a", "1", corev1.ConditionTrue)
		tainted.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}}
		client.stream.Modify(tainted)
		synctest.Wait()
		time.Sleep(time.Minute)
		changed := tainted.DeepCopy() // the sign counts from when it was first seen
		changed.Labels = map[string]string{"touched": "yes"}
		client.stream.Modify(changed)
		synctest.Wait()
		certain := func(scheduled time.Duration) bool {
			cluster := nodepool.Cluster{Key: llm, UID: "u",
				Workers: []nodepool.Worker{{Pod: "w", Node: "a", Running: true, ScheduledAt: begun.Add(scheduled)}}}
			n.addTo(&cluster)
			o.markGoing(&cluster)
			if cluster.Workers[0].Going == nil {
				t.Fatalf("a worker scheduled after %s shows no sign", scheduled)
			}
			return cluster.Workers[0].Going.Certain
		}
		if !certain(-time.Minute) || !certain(time.Second) {
			t.Error("a worker that was there before the sign, or came with it, is not drained")
		}
		if certain(20 * time.Second) {
			t.Error("a worker that came to the machine after the sign is drained")
		}
	})
}

func TestTheDeadlineOfANodeClaimShowsWithTheWorkersOfItsNode(t *testing.T) {
	client := &fakeNodes{list: []corev1.Node{*kubeNode("a", "1", corev1.ConditionTrue)}}
	besideNodes(t, client, func(t *testing.T, n *nodes, _ *atomic.Int32) {
		claims := newClaimWatch(nil, nil, slog.New(slog.DiscardHandler))
		claim := nodeClaimOf("g1-a", "Launched", "Initialized")
		_ = unstructured.SetNestedField(claim.Object, "a", "status", "nodeName")
		claims.update(claim)
		if got := goingOf(n, claims, nil); got != nil {
			t.Fatalf("a healthy claim: %+v", got)
		}
		claim = claim.DeepCopy()
		claim.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
		claim.SetAnnotations(map[string]string{"karpenter.sh/nodeclaim-termination-timestamp": "2026-11-23T12:01:00Z"})
		claims.update(claim)
		pod := departure.Of(departure.PodTerminating, "the pod is being deleted").Until(time.Date(2026, 11, 23, 12, 0, 30, 0, time.UTC))
		got := goingOf(n, claims, pod)
		if got == nil || got.Sign != departure.NodeClaimDeleting || !got.Deadline.Equal(pod.Deadline) {
			t.Errorf("a worker whose NodeClaim and pod are deleted: %+v; want the claim, and the earlier deadline", got)
		}
		if got := goingOf(n, claims, nil); got == nil || got.Deadline.Format(time.TimeOnly) != "12:01:00" {
			t.Errorf("the deadline of the claim: %+v", got)
		}
		claims.delete(claim)
		if got := goingOf(n, claims, nil); got != nil {
			t.Errorf("the claim is gone: %+v", got)
		}
		claims.update(claim)
		claims.replace(nil, "")
		if got := goingOf(n, claims, nil); got != nil {
			t.Errorf("after a list without the claim: %+v", got)
		}
	})
}

// Neither a heartbeat nor a watch that breaks gives the machine more time.
func TestASpotMachineGoesTwoMinutesAfterItsTaintIsSeen(t *testing.T) {
	besideNodes(t, &fakeNodes{list: []corev1.Node{*kubeNode("a", "1", corev1.ConditionTrue)}}, func(t *testing.T, n *nodes, _ *atomic.Int32) {
		claims := newClaimWatch(nil, nil, slog.New(slog.DiscardHandler))
		tainted := func(cpu string) *corev1.Node {
			node := kubeNode("a", cpu, corev1.ConditionTrue)
			node.Spec.Taints = []corev1.Taint{{Key: "aws-node-termination-handler/spot-itn", Effect: corev1.TaintEffectNoSchedule}}
			return node
		}
		time.Sleep(time.Hour)
		goes := time.Now().Add(2 * time.Minute)
		for i, tell := range []func(){
			func() { n.update(tainted("1")) },
			func() { n.update(tainted("2")) },
			func() { n.replace([]*corev1.Node{tainted("2")}, "") },
			func() { n.update(tainted("3")) },
		} {
			tell()
			if got := goingOf(n, claims, nil); got == nil || !got.Deadline.Equal(goes) {
				t.Errorf("after news %d: %+v, want the deadline %v", i, got, goes)
			}
			time.Sleep(10 * time.Second)
		}
		n.update(kubeNode("a", "1", corev1.ConditionTrue))
		n.update(tainted("1"))
		if got := goingOf(n, claims, nil); got == nil || !got.Deadline.Equal(time.Now().Add(2*time.Minute)) {
			t.Errorf("after another notice: %+v", got)
		}
	})
}
