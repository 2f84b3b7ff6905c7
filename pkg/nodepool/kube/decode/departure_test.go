package decode

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool/departure"
)

func TestWhatANodeSaysAboutItsEndSurvivesTheCache(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		want   *departure.Notice
	}{
		"a node that stays": {func(*corev1.Node) {}, nil},
		"a node of another tenant": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "nvidia.com/gpu", Effect: corev1.TaintEffectNoSchedule}}
		}, nil},
		"cordoned": {func(n *corev1.Node) { n.Spec.Unschedulable = true }, &departure.Notice{Sign: departure.Cordoned, Message: "cordoned"}},
		"deleted": {func(n *corev1.Node) { n.DeletionTimestamp = &at },
			&departure.Notice{Sign: departure.NodeDeleting, Message: "the Node is being deleted", Certain: true, Since: at.Time}},
		"a candidate, with an effect that keeps no pod away": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "DeletionCandidateOfClusterAutoscaler", Value: "1795435200", Effect: corev1.TaintEffectPreferNoSchedule}}
		}, &departure.Notice{Sign: departure.AutoscalerCandidate, Message: "taint DeletionCandidateOfClusterAutoscaler", Since: at.Time}},
		"disrupted and cordoned": {func(n *corev1.Node) {
			n.Spec.Unschedulable = true
			n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}}
		}, &departure.Notice{Sign: departure.KarpenterDisrupted, Message: "taint karpenter.sh/disrupted", Certain: true}},
		"shut down by the kubelet": {func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", Message: "node is shutting down", LastTransitionTime: at}}
		}, &departure.Notice{Sign: departure.KubeletShutdown, Message: "the kubelet shuts the machine down", Certain: true, Since: at.Time}},
		"taken back by Azure": {func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: "VMEventScheduled", Status: corev1.ConditionTrue, Message: "Preempt Scheduled: Mon, 23 Nov 2026 12:00:30 GMT", LastTransitionTime: at}}
		}, &departure.Notice{Sign: departure.AKSScheduledEvent, Message: "condition VMEventScheduled: Preempt", Certain: true, Reclaimed: true,
			Since: at.Time, Deadline: at.Add(30 * time.Second)}},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		c.change(node)
		stripped, err := Strip(node)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, Departure(stripped.(*corev1.Node))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestANodeClaimThatIsDeletedNamesNodeDeadlineAndCause(t *testing.T) {
	const claim = `
metadata:
  name: spot-x1
  creationTimestamp: 2026-11-23T11:00:00Z
  deletionTimestamp: 2026-11-23T12:00:00Z
  annotations: {karpenter.sh/nodeclaim-termination-timestamp: "2026-11-23T12:01:00Z"}
  labels: {karpenter.sh/capacity-type: spot}
spec: {expireAfter: 720h}
status: {nodeName: node-1, conditions: [{type: Ready, status: "True", reason: Ready}]}
`
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	deleted := departure.Notice{Sign: departure.NodeClaimDeleting, Message: "NodeClaim spot-x1 is being deleted", Certain: true, Since: at, Deadline: at.Add(time.Minute)}
	for name, c := range map[string]struct {
		change func(o map[string]any)
		want   func(n departure.Notice) *departure.Notice
	}{
		"by the provider, on an interruption": {func(map[string]any) {}, func(n departure.Notice) *departure.Notice { n.Reclaimed = true; return &n }},
		"without a grace period": {func(o map[string]any) { unstructured.RemoveNestedField(o, "metadata", "annotations") },
			func(n departure.Notice) *departure.Notice { n.Reclaimed, n.Deadline = true, time.Time{}; return &n }},
		"before Karpenter has annotated it": {func(o map[string]any) {
			unstructured.RemoveNestedField(o, "metadata", "annotations")
			set(o, "1m30s", "spec", "terminationGracePeriod")
		}, func(n departure.Notice) *departure.Notice {
			n.Reclaimed, n.Deadline = true, at.Add(90*time.Second)
			return &n
		}},
		"by consolidation": {func(o map[string]any) {
			set(o, []any{map[string]any{"type": "DisruptionReason", "status": "True", "reason": "Underutilized"}}, "status", "conditions")
		}, func(n departure.Notice) *departure.Notice { n.Message += " (Underutilized)"; return &n }},
		"because it expired":      {func(o map[string]any) { set(o, "1h", "spec", "expireAfter") }, func(n departure.Notice) *departure.Notice { return &n }},
		"on demand":               {func(o map[string]any) { set(o, map[string]any{}, "metadata", "labels") }, func(n departure.Notice) *departure.Notice { return &n }},
		"before there is a node":  {func(o map[string]any) { unstructured.RemoveNestedField(o, "status") }, func(departure.Notice) *departure.Notice { return nil }},
		"one that nobody deletes": {func(o map[string]any) { unstructured.RemoveNestedField(o, "metadata", "deletionTimestamp") }, func(departure.Notice) *departure.Notice { return nil }},
	} {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(claim), &object); err != nil {
			t.Fatal(err)
		}
		c.change(object)
		node, notice := ClaimDeparture(&unstructured.Unstructured{Object: object})
		if diff := cmp.Diff(c.want(deleted), notice); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if (notice != nil) != (node == "node-1") {
			t.Errorf("%s: node %q with %+v", name, node, notice)
		}
	}
}

func set(object map[string]any, value any, path ...string) {
	if err := unstructured.SetNestedField(object, value, path...); err != nil {
		panic(err)
	}
}
