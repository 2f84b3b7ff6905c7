package decode

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// readNode reads a node as somebody posted it. The excerpts rarely show conditions; without a Ready one it becomes
// ready.
func readNode(t *testing.T, name string) *corev1.Node {
	t.Helper()
	node := readData[*corev1.Node](t, "testdata/nodes/"+name+".yaml")
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return node
		}
	}
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue})
	return node
}

func TestRealNodesHoldTheirAllocatableResources(t *testing.T) {
	gpu := func(resource string, amount int64) landing.PodShape {
		return landing.PodShape{Requests: landing.Quantities{resource: raydemand.Whole(amount)}}
	}
	tolerant := gpu("nvidia.com/gpu", 8)
	tolerant.Tolerations = []landing.Toleration{{Key: "nvidia.com/gpu", Operator: "Exists"}}
	tests := []struct {
		name, node string
		shape      landing.PodShape
		want       landing.Answer
	}{
		{"a cordoned node", "ack-p4-cordoned", gpu("nvidia.com/gpu", 1), landing.Answer{Why: "node alihn1-qas-k8s-w31212 is cordoned"}},
		{"a taint that is not tolerated", "eks-karpenter-p4d", gpu("nvidia.com/gpu", 8), landing.Answer{
			Why: "node ip-10-0-5-152.ap-northeast-2.compute.internal has taint nvidia.com/gpu=present:NoSchedule which the group does not tolerate"}},
		{"a taint that is tolerated", "eks-karpenter-p4d", tolerant, landing.Answer{Nodes: 1}},
		{"GKE adds the toleration", "timeslice-gke-l4", gpu("nvidia.com/gpu", 1), landing.Answer{Nodes: 1}},
		{"a MIG profile by its name", "mig-mixed-h100-80-eight-cards", gpu("nvidia.com/mig-1g.10gb", 1), landing.Answer{Nodes: 1}},
		{"a profile that is not cut", "mig-mixed-h100-80-eight-cards", gpu("nvidia.com/mig-7g.80gb", 1), landing.Answer{
			Why: "needs nvidia.com/mig-7g.80gb 1, no node announces it; node myworker.redhat.com announces nvidia.com/mig-1g.10gb 16 instead"}},
		{"capacity that is left over from before partitioning", "mig-mixed-a30-capacity-keeps-old-gpu", gpu("nvidia.com/gpu", 1), landing.Answer{
			Why: "needs nvidia.com/gpu 1, no node announces it; node worker1.host.com announces nvidia.com/mig-1g.6gb 2 instead"}},
		{"GPUs that no plugin announces", "gke-k80-gpu-not-exposed", gpu("nvidia.com/gpu", 1), landing.Answer{
			Why: "needs nvidia.com/gpu 1, no node announces it; node gke-my-gpu-cluster-default-pool-4d0fa82d-ttxh shows GPUs (cloud.google.com/gke-accelerator=nvidia-tesla-k80), and no device plugin announces them"}},
		{"cards that are all unhealthy", "failure-all-cards-unhealthy", gpu("nvidia.com/gpu", 1), landing.Answer{
			Why: "needs nvidia.com/gpu 1, no node announces it"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.shape.Fit([]landing.Node{ForPodFit(sharing.Reader{}, readNode(t, test.node))})); diff != "" {
				t.Errorf("fit (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAStrippedNodeSaysTheSameInLess(t *testing.T) {
	whole := readNode(t, "ack-p4-cordoned")
	whole.Status.Images = []corev1.ContainerImage{{Names: []string{"rayproject/ray"}}}
	whole.Annotations, whole.ManagedFields = map[string]string{"a": "b"}, []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	object, err := Strip(whole)
	must(t, err)
	stripped, ok := object.(*corev1.Node)
	if !ok {
		t.Fatalf("a node became %T", object)
	}
	if diff := cmp.Diff(ForPodFit(sharing.Reader{}, whole), ForPodFit(sharing.Reader{}, stripped)); diff != "" {
		t.Errorf("node (-whole +stripped):\n%s", diff)
	}
	if len(stripped.Status.Images)+len(stripped.Annotations)+len(stripped.ManagedFields) > 0 || len(stripped.Status.Capacity) != 1 || len(stripped.Status.Conditions) != 2 {
		t.Errorf("too much is kept: %+v", stripped)
	}
}

func TestAHeartbeatChangesNothingThatIsKept(t *testing.T) {
	before := readNode(t, "ack-p4-cordoned")
	after := before.DeepCopy()
	after.ResourceVersion = "2"
	for i := range after.Status.Conditions {
		after.Status.Conditions[i].LastHeartbeatTime = metav1.NewTime(time.Unix(1_700_000_000, 0))
	}
	if !ForPodFit(sharing.Reader{}, before).Equal(ForPodFit(sharing.Reader{}, after)) {
		t.Error("a heartbeat makes another node")
	}
}

func TestConfiguredNamesAndPoolLabelsAreReadOnNodes(t *testing.T) {
	reader := sharing.Reader{PoolLabel: "example.com/pool",
		Names: gpuinfo.Names{Configured: []gpuinfo.Resource{{Name: "example.com/vgpu", Kind: gpuinfo.MPS, Role: gpuinfo.Devices}}}}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"example.com/pool": "mine", "agentpool": "theirs"}},
		Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{"example.com/vgpu": resource.MustParse("1")}},
	}
	if read := ForPodFit(reader, node); read.Pool != "mine" || read.GPUs == nil || read.GPUs.Kind != gpuinfo.MPS {
		t.Errorf("node in pool %q with %+v", read.Pool, read.GPUs)
	}
	if read := ForPodFit(sharing.Reader{}, node); read.Pool != "theirs" {
		t.Errorf("node in pool %q where nothing is configured", read.Pool)
	}
}

// truth is what holds for a recorded node. Values are any: a number, a map, a text, or "unknown" and "none". What
// X_from says is text cannot be derived from the object, so unknown is right there too.
type truth map[string]any

// nodeFixtures are nodes as people posted them, each with what is true of it in a comment at its top.
func nodeFixtures(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("testdata/nodes/*.yaml")
	if err != nil || len(paths) != 49 {
		t.Fatalf("found %d nodes, %v; want 49", len(paths), err)
	}
	found := map[string]string{}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		must(t, err)
		found[strings.TrimSuffix(filepath.Base(path), ".yaml")] = string(raw)
	}
	return found
}

func truthOf(t *testing.T, fixture string) truth {
	t.Helper()
	_, comment, found := strings.Cut(fixture, "# expect:\n")
	if !found {
		t.Fatal("nothing is expected")
	}
	var text strings.Builder
	for line := range strings.Lines(comment) {
		rest, isComment := strings.CutPrefix(line, "#   ")
		if !isComment {
			break
		}
		text.WriteString(rest)
	}
	var expect truth
	must(t, yaml.Unmarshal([]byte(text.String()), &expect))
	return expect
}

// unknowable: the truth is unknown itself, or known from the text beside the object alone.
func (e truth) unknowable(key string) bool { return e[key] == "unknown" || e[key+"_from"] == "text" }

func (e truth) number(key string) (int64, bool) {
	n, ok := e[key].(float64)
	return int64(n), ok
}

func (e truth) counts(key string) map[string]int64 {
	values, ok := e[key].(map[string]any)
	if !ok {
		return nil
	}
	counts := map[string]int64{}
	for name, n := range values {
		counts[name] = int64(n.(float64))
	}
	return counts
}

// Unknown is right where the node cannot prove it, a wrong number never is.
func TestRecordedNodesAreUnderstood(t *testing.T) {
	for name, fixture := range nodeFixtures(t) {
		t.Run(name, func(t *testing.T) {
			objects, err := nodesOf(strings.NewReader(fixture))
			if err != nil || len(objects) != 1 {
				t.Fatalf("%d nodes, %v", len(objects), err)
			}
			got, want := sharing.Reader{}.Read(objects[0]), truthOf(t, fixture)
			want.checkTexts(t, got)
			want.checkNumber(t, "cards", got.Cards)
			want.checkNumber(t, "replicas", got.Replicas)
			want.checkNumber(t, "card_memory_mib", got.CardMemoryMiB)
			want.checkCounts(t, "units", got.Units)
			want.checkCounts(t, "memory_mib", got.MemoryMiB)
			if perCard := want.counts("per_card"); perCard != nil && !want.unknowable("cards") || got.UnitsPerCard != nil && want["units"] != "unknown" && perCard != nil {
				if diff := cmp.Diff(perCard, got.UnitsPerCard); diff != "" {
					t.Errorf("units per card (-true +read):\n%s", diff)
				}
			}
			want.checkProblem(t, got)
		})
	}
}

func (e truth) checkTexts(t *testing.T, got sharing.GPUs) {
	t.Helper()
	for key, value := range map[string]string{
		"product": text(got.Product), "kind": string(got.Kind), "isolation": string(got.Isolation), "profile": text(got.Profile), "pool": text(got.Pool),
	} {
		want, given := e[key].(string)
		switch {
		case !given || value == want || want == "none" && key == "pool" && value == "unknown":
		case (value == "unknown" || value == want+" (unproven)") && (e.unknowable(key) || key == "isolation" && e.unknowable("kind")):
		default:
			t.Errorf("%s is %s, true is %s", key, value, want)
		}
	}
}

func text(value *string) string {
	if value == nil {
		return "unknown"
	}
	return *value
}

// overcommitted registers are no memory of a card.
func (e truth) checkNumber(t *testing.T, key string, got *int64) {
	t.Helper()
	want, given := e.number(key)
	from, _ := e[key+"_from"].(string)
	switch {
	case got == nil && (!given || e.unknowable(key) || strings.Contains(from, "overcommitted")):
	case got == nil:
		t.Errorf("%s is unknown, true is %d", key, want)
	case e[key] == "unknown":
		t.Errorf("%s is %d, the node does not say", key, *got)
	case given && *got != want:
		t.Errorf("%s is %d, true is %d", key, *got, want)
	}
}

func (e truth) checkCounts(t *testing.T, key string, got map[string]int64) {
	t.Helper()
	if e[key] == "unknown" && got != nil {
		t.Errorf("%s are %v, the node does not say", key, got)
	}
	if want := e.counts(key); want != nil {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-true +read):\n%s", key, diff)
		}
	}
}

func (e truth) checkProblem(t *testing.T, got sharing.GPUs) {
	t.Helper()
	if (e["problem"] == "none") != (len(got.Problems) == 0) {
		t.Errorf("problems are %v, true is: %v", got.Problems, e["problem"])
	}
}

// What is read of each recorded node, in one line: a change of the reading shows here, whatever the test above
// tolerates.
func TestWhatIsReadOfRecordedNodesStays(t *testing.T) {
	const golden = "testdata/nodes.txt"
	want, err := os.ReadFile(golden)
	must(t, err)
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(readings(t), "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", golden, diff)
	}
}

func readings(t *testing.T) string {
	t.Helper()
	var lines strings.Builder
	fixtures := nodeFixtures(t)
	for _, name := range slices.Sorted(maps.Keys(fixtures)) {
		objects, err := nodesOf(strings.NewReader(fixtures[name]))
		must(t, err)
		gpus := sharing.Reader{}.Read(objects[0])
		fmt.Fprintf(&lines, "%s: %s %s, cards %s, units %v, MiB %v, %s, problems %v\n",
			name, gpus.Kind, text(gpus.Product), number(gpus.Cards), gpus.Units, gpus.MemoryMiB, gpus.Isolation, gpus.Problems)
	}
	return lines.String()
}

func number(value *int64) string {
	if value == nil {
		return "unknown"
	}
	return fmt.Sprint(*value)
}

// Whatever a file holds, it is refused or read, never a panic; and what shares a device never passes for isolated.
func FuzzNodesAreReadOrRefused(f *testing.F) {
	paths, err := filepath.Glob("testdata/nodes/*.yaml")
	if err != nil || len(paths) == 0 {
		f.Fatalf("found %d nodes, %v", len(paths), err)
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		must(f, err)
		f.Add(string(raw))
	}
	f.Fuzz(func(t *testing.T, manifest string) {
		nodes, err := nodesOf(strings.NewReader(manifest))
		if err != nil {
			return
		}
		for _, node := range nodes {
			gpus := sharing.Reader{}.Read(node)
			if shared := gpus.Kind == "time-sliced" || gpus.Kind == "mps"; shared && gpus.Isolation == "hardware" {
				t.Errorf("%s passes for isolated: %+v", gpus.Kind, gpus)
			}
			for _, problem := range gpus.Problems {
				if problem.Code == "" || problem.Message == "" {
					t.Errorf("a problem without code or message: %+v", gpus.Problems)
				}
			}
		}
		if pools := landing.Observed((sharing.Reader{}), nodes); len(pools) > len(nodes) {
			t.Errorf("%d pools of %d nodes", len(pools), len(nodes))
		}
	})
}

func TestAnErrorNamesTheFieldOfTheNode(t *testing.T) {
	for field, object := range map[string]map[string]any{
		`metadata.labels is "x": want an object`: {
			"metadata": map[string]any{"labels": "x"}},
		"metadata.labels.x is 1: want a string": {
			"metadata": map[string]any{"labels": map[string]any{"x": int64(1)}}},
		"spec.taints is 1: want a list": {"spec": map[string]any{"taints": int64(1)},
			"status": map[string]any{"allocatable": map[string]any{"cpu": "-1"}}},
	} {
		if _, _, err := Read(sharing.Reader{}, object); err == nil || err.Error() != "reading node: "+field {
			t.Errorf("got %v, want %s", err, field)
		}
	}
}

func TestAnAmountOfANodeThatIsNoneIsAProblemThatNamesFieldValueAndWhatIsRight(t *testing.T) {
	for value, want := range map[string]string{
		`"0.5"`:                  `status.allocatable["nvidia.com/gpu"] is 500m: want a whole number of units`,
		`"1500m"`:                `status.allocatable["nvidia.com/gpu"] is 1500m: want a whole number of units`,
		`"1e30"`:                 `status.allocatable["nvidia.com/gpu"] is 1e30: want a whole number of units`,
		`"99999999999999999999"`: `status.allocatable["nvidia.com/gpu"] is `,
		`10000000000`:            `status.allocatable["nvidia.com/gpu"] is 10000000000: want 0 to 1048576`,
	} {
		text := fmt.Sprintf(`{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "8", "nvidia.com/gpu": %s}}}`, value)
		var set NodeSet
		if err := set.Read(strings.NewReader(text)); err != nil {
			t.Errorf("%s: %v", value, err)
			continue
		}
		gpus := sharing.Reader{}.Read(set.Nodes()[0])
		if len(gpus.Problems) != 1 || gpus.Problems[0].Code != sharing.AmountUnreadable || !strings.HasPrefix(gpus.Problems[0].Message, want) {
			t.Errorf("%s: problems %v, want %s", value, gpus.Problems, want)
		}
		_, view, err := Read(sharing.Reader{}, map[string]any{"status": map[string]any{"allocatable": map[string]any{"cpu": "8", "nvidia.com/gpu": strings.Trim(value, `"`)}}})
		if _, announced := view.Allocatable["nvidia.com/gpu"]; announced || err != nil || len(view.Allocatable) != 1 {
			t.Errorf("%s: %v announces %v", value, err, view.Allocatable)
		}
	}
}

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
		"taken back by AWS, seen a minute ago": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "aws-node-termination-handler/spot-itn", Value: "spot-itn-1", Effect: corev1.TaintEffectNoSchedule}}
		}, &departure.Notice{Sign: departure.AWSSpot, Message: "taint aws-node-termination-handler/spot-itn", Certain: true, Reclaimed: true,
			Deadline: at.Add(time.Minute)}},
		"taken back by AWS, with the time": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "aws-node-termination-handler/spot-itn", Effect: corev1.TaintEffectNoExecute, TimeAdded: &at}}
		}, &departure.Notice{Sign: departure.AWSSpot, Message: "taint aws-node-termination-handler/spot-itn", Certain: true, Reclaimed: true,
			Since: at.Time, Deadline: at.Add(2 * time.Minute)}},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		c.change(node)
		stripped, err := Strip(node)
		must(t, err)
		if diff := cmp.Diff(c.want, Departure(stripped.(*corev1.Node), at.Add(-time.Minute))); diff != "" {
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
		must(t, yaml.Unmarshal([]byte(claim), &object))
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
