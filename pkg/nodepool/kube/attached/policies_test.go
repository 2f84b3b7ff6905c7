package attached

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
)

var llm = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}

func policyObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	made := &unstructured.Unstructured{}
	text = "apiVersion: heliostat.dev/v1alpha1\nkind: CapacityPolicy\n" + text
	form, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = made.UnmarshalJSON(form)
	}
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func policyNamed(name, made, spec string) string {
	return `
metadata: {name: ` + name + `, namespace: ml, uid: uid-` + name + `, generation: 3, creationTimestamp: "` + made + `"}
spec: {rayCluster: llm, ` + spec + `}
`
}

const twoWarm = `keepWarm: [{group: gpu, count: 2}]`

func newTestWatch(namespaces ...string) (*Policies, *[]nodepool.ClusterKey, *bytes.Buffer) {
	changes, log := &[]nodepool.ClusterKey{}, &bytes.Buffer{}
	return NewPolicies(Config{Namespaces: namespaces, Logger: slog.New(slog.NewTextHandler(log, nil)),
		Changed: func(key nodepool.ClusterKey) { *changes = append(*changes, key) }}), changes, log
}

// replace takes a whole list.
func (w *Policies) replace(namespace string, list ...*unstructured.Unstructured) {
	w.Store(namespace).ReplaceAll(list, "")
}

func (w *Policies) cluster() *nodepool.Cluster {
	c := &nodepool.Cluster{Key: llm}
	w.AddTo(c)
	return c
}

func TestUntilTheFirstListThePoliciesAreUnknown(t *testing.T) {
	w, changes, _ := newTestWatch()
	if c := w.cluster(); c.PolicyUnknown == "" {
		t.Error("they are known before they were read: idle workers that a policy wants would go")
	}
	annotated := &nodepool.Cluster{Key: llm, Policy: &capacity.Written{}}
	if w.AddTo(annotated); annotated.PolicyUnknown != "" {
		t.Error("the annotation counts, whatever the objects say")
	}
	w.replace("", policyObject(t, policyNamed("a", "2026-01-01T00:00:00Z", twoWarm)))
	c := w.cluster()
	if c.PolicyUnknown != "" || c.Policy == nil || c.Policy.KeepWarm[0].Count != 2 || len(*changes) != 1 {
		t.Errorf("unknown %q, policy %+v, %d cycles", c.PolicyUnknown, c.Policy, len(*changes))
	}
}

func TestTheOldestCountsAndTheOthersSaySo(t *testing.T) {
	w, _, _ := newTestWatch("ml")
	w.replace("ml")
	w.Store("ml").Put(policyObject(t, policyNamed("young", "2026-01-02T00:00:00Z", `keepWarm: [{group: gpu, count: 9}]`)))
	w.Store("ml").Put(policyObject(t, policyNamed("old", "2026-01-01T00:00:00Z", twoWarm)))
	c := w.cluster()
	if c.Policy.Source != "CapacityPolicy old" {
		t.Errorf("%s counts", c.Policy.Source)
	}
	want := []capacity.Status{
		{Name: "old", UID: "uid-old", Generation: 3, State: capacity.Active, Message: "it counts for the RayCluster"},
		{Name: "young", UID: "uid-young", Generation: 3, State: capacity.Superseded,
			Message: "CapacityPolicy old counts for the RayCluster"},
	}
	if diff := cmp.Diff(want, c.PolicyStatuses); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	if len(c.Findings) != 1 || c.Findings[0].Code != capacity.FindingSuperseded || c.Findings[0].Object != "CapacityPolicy ml/young" {
		t.Errorf("findings %+v", c.Findings)
	}
	w.Store("ml").Remove(policyObject(t, policyNamed("old", "2026-01-01T00:00:00Z", twoWarm)))
	if c = w.cluster(); c.Policy.Source != "CapacityPolicy young" || len(c.Findings) != 0 {
		t.Errorf("after the oldest is gone: %s, %+v", c.Policy.Source, c.Findings)
	}
}

func TestAnUnreadablePolicyNamesTheFieldAndWantsNothing(t *testing.T) {
	w, _, _ := newTestWatch()
	w.replace("", policyObject(t, policyNamed("a", "2026-01-01T00:00:00Z", `idle: {suspendAfter: soon}`)),
		policyObject(t, policyNamed("b", "2026-01-02T00:00:00Z", twoWarm)))
	c := w.cluster()
	if !cmp.Equal(c.Policy.Policy, capacity.Policy{}) {
		t.Errorf("policy %+v, want one that wants nothing", c.Policy)
	}
	f := c.Findings[0]
	if f.Code != capacity.FindingUnreadable || f.Field != "spec.idle.suspendAfter" || f.Seen != `"soon"` || !strings.Contains(f.Fix, "10m") {
		t.Errorf("finding %+v", f)
	}
	if s := c.PolicyStatuses[0]; s.State != capacity.Unreadable || !strings.Contains(s.Message, "spec.idle.suspendAfter") {
		t.Errorf("status %+v", s)
	}
}

func TestAPolicyThatIsBeingDeletedDoesNotCountAndGetsNoStatus(t *testing.T) {
	w, _, _ := newTestWatch()
	going := policyObject(t, policyNamed("a", "2026-01-01T00:00:00Z", twoWarm))
	now := metav1.Now()
	going.SetDeletionTimestamp(&now)
	w.replace("", going)
	if c := w.cluster(); c.Policy != nil || len(c.PolicyStatuses)+len(c.Findings) != 0 || c.PolicyStatus != nil {
		t.Errorf("policy %+v, statuses %+v, findings %+v", c.Policy, c.PolicyStatuses, c.Findings)
	}
	if got := w.WithoutCluster(llm); len(got) != 0 {
		t.Errorf("without a RayCluster: %+v", got)
	}
}

// What became of warm nodes is decided later, so it stays in the status until then.
func TestTheStatusKeepsWhatBecameOfWarmNodes(t *testing.T) {
	w, _, _ := newTestWatch()
	written := policyObject(t, policyNamed("a", "2026-01-01T00:00:00Z", twoWarm))
	status := map[string]any{"observedGeneration": int64(2), "state": "Active", "message": "it counts for the RayCluster",
		"warmNodes": []any{"keepWarmNodes[0]: warm", "keepWarmNodes[1]: at_max"}}
	written.Object["status"] = status
	w.replace("", written)
	c, lines := w.cluster(), "keepWarmNodes[0]: warm\nkeepWarmNodes[1]: at_max"
	if len(c.PolicyStatuses) != 1 || c.PolicyStatuses[0].WarmNodes != lines || *c.PolicyStatus != c.PolicyStatuses[0] {
		t.Errorf("to write %+v, wanted %+v; want the lines of the status in both", c.PolicyStatuses, c.PolicyStatus)
	}
	status["observedGeneration"] = int64(3)
	w.replace("", written)
	if c := w.cluster(); len(c.PolicyStatuses) != 0 || c.PolicyStatus == nil || c.PolicyStatus.WarmNodes != lines {
		t.Errorf("to write %+v, wanted %+v; want nothing to write", c.PolicyStatuses, c.PolicyStatus)
	}
}

func TestAStatusIsWrittenOnce(t *testing.T) {
	w, changes, _ := newTestWatch()
	text := policyNamed("a", "2026-01-01T00:00:00Z", twoWarm)
	w.replace("", policyObject(t, text))
	wanted := w.cluster().PolicyStatuses[0]
	patch, err := StatusPatch(wanted)
	if err != nil {
		t.Fatal(err)
	}
	written := policyObject(t, text)
	var fields map[string]any
	if err := json.Unmarshal(patch, &fields); err != nil {
		t.Fatal(err)
	}
	status := fields["status"].(map[string]any)
	status["observedGeneration"] = int64(status["observedGeneration"].(float64))
	written.Object["status"] = status
	before := len(*changes)
	w.Store("ml").Put(written)
	if c := w.cluster(); len(c.PolicyStatuses) != 0 {
		t.Errorf("%+v is written again", c.PolicyStatuses)
	}
	if len(*changes) != before {
		t.Error("its own status starts a cycle")
	}
}

func TestWithoutTheRightTheLogSaysItOnce(t *testing.T) {
	w, changes, log := newTestWatch("ml")
	w.replace("ml", policyObject(t, policyNamed("a", "2026-01-01T00:00:00Z", twoWarm)))
	*changes = nil
	w.Unread("ml", "forbidden")
	w.Unread("ml", "forbidden")
	if lines := strings.Count(log.String(), "\n"); lines != 1 {
		t.Errorf("%d lines in the log, want 1:\n%s", lines, log)
	}
	if c := w.cluster(); c.Policy != nil || c.PolicyUnknown != "" || len(*changes) != 1 {
		t.Errorf("policy %+v, unknown %q, %d cycles", c.Policy, c.PolicyUnknown, len(*changes))
	}
}

func TestARayClusterWithoutPolicyGetsNothing(t *testing.T) {
	var none *Policies
	none.AddTo(&nodepool.Cluster{Key: llm})
	w, _, _ := newTestWatch()
	w.replace("", policyObject(t, policyNamed("a", "2026-01-01T00:00:00Z", twoWarm)))
	other := &nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: "ml", Name: "other"}}
	if w.AddTo(other); other.Policy != nil || len(other.Findings)+len(other.PolicyStatuses) != 0 {
		t.Errorf("%+v", other)
	}
}

func TestAPolicyWithoutARayClusterSaysSo(t *testing.T) {
	var none *Policies
	if none.Clusters() != nil || none.WithoutCluster(llm) != nil {
		t.Error("a process without policies has some")
	}
	w, _, _ := newTestWatch()
	bad := policyObject(t, policyNamed("bad", "2026-01-01T00:00:00Z", `idle: {suspendAfter: soon}`))
	w.replace("", policyObject(t, policyNamed("a", "2026-01-01T00:00:00Z", twoWarm)), bad)
	if got := w.Clusters(); len(got) != 1 || got[0] != llm {
		t.Errorf("RayClusters %v", got)
	}
	got := w.WithoutCluster(llm)
	want := capacity.Status{Name: "a", UID: "uid-a", Generation: 3, State: capacity.NoRayCluster,
		Message: "Heliostat does not watch a RayCluster ml/llm, or it does not exist"}
	if len(got) != 2 || got[0] != want || got[1].State != capacity.Unreadable {
		t.Fatalf("got %+v, want %+v and one that cannot be read", got, want)
	}
	written := policyObject(t, policyNamed("a", "2026-01-01T00:00:00Z", twoWarm))
	written.Object["status"] = map[string]any{"observedGeneration": int64(3), "state": string(want.State), "message": want.Message}
	w.Store("ml").Put(written)
	if got := w.WithoutCluster(llm); len(got) != 1 || got[0].Name != "bad" {
		t.Errorf("%+v is written again", got)
	}
	if statuses := w.cluster().PolicyStatuses; len(statuses) != 2 || statuses[0].State != capacity.Active {
		t.Errorf("once there is a RayCluster: %+v", statuses)
	}
}
