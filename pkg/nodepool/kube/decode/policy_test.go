package decode

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func annotatedWith(policy string) Decoded {
	return DecodeObject(&unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "ml", "name": "llm", "generation": int64(1), "annotations": map[string]any{capacity.Annotation: policy}},
		"spec":     map[string]any{},
		"status":   map[string]any{"observedGeneration": int64(1)},
	}})
}

func TestTheAnnotationHoldsAPolicy(t *testing.T) {
	d := annotatedWith(`{"keepWarm": [{"group": "gpu", "count": 2}]}`)
	p := d.Cluster.Policy
	if p == nil || p.Fault != "" || len(p.KeepWarm) != 1 || p.KeepWarm[0].Count != 2 {
		t.Fatalf("policy %+v, want 2 free workers of gpu", p)
	}
	if len(d.Findings) != 0 {
		t.Errorf("findings %+v, want none", d.Findings)
	}
}

func TestAPolicyThatCannotBeReadWantsNothingAndIsAFinding(t *testing.T) {
	d := annotatedWith(`{"keepWarm": [{"group": "gpu", "count": "two"}]}`)
	p := d.Cluster.Policy
	if p == nil || !cmp.Equal(p.Policy, capacity.Policy{}) || p.Fault == "" {
		t.Errorf("policy %+v, want one that counts and wants nothing", p)
	}
	if len(d.Findings) != 1 {
		t.Fatalf("findings %+v, want one", d.Findings)
	}
	f := d.Findings[0]
	if f.Code != AnnotationUnreadable || !strings.HasSuffix(f.Field, "capacity-policy: keepWarm[0].count") ||
		f.Seen != `"two"` || !strings.Contains(f.Fix, "a whole number from 0 to 10000") {
		t.Errorf("finding %+v", f)
	}
}

func TestAFieldThatWasRemovedIsAFindingAndTheRestOfThePolicyCounts(t *testing.T) {
	d := annotatedWith(`{"onUpgrade": "match", "keepWarm": [{"group": "gpu", "count": 2}]}`)
	if p := d.Cluster.Policy; p == nil || p.Fault != "" || len(p.KeepWarm) != 1 {
		t.Errorf("policy %+v, want 2 free workers of gpu", p)
	}
	if len(d.Findings) != 1 || d.Findings[0].Code != AnnotationUnknown || d.Findings[0].Severity != raydemand.Warning ||
		!strings.HasSuffix(d.Findings[0].Field, "capacity-policy: onUpgrade") || !strings.Contains(d.Findings[0].Fix, "was removed") {
		t.Errorf("findings %+v, want that onUpgrade was removed", d.Findings)
	}
}
