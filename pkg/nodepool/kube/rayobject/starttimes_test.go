package rayobject

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool/arrival"
)

func TestStartTimesAreReadFromTheirAnnotation(t *testing.T) {
	for text, want := range map[string]map[string]arrival.Samples{
		`{"gpu":{"node":[60],"join":[10, 12]}}`: {"gpu": {Node: []int64{60}, Join: []int64{10, 12}}},
		`{"gpu":{"node":[-60]}}`:                nil,
	} {
		decoded := DecodeObject(&unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{StartTimesAnnotation: text}}}})
		cluster := Join(decoded, nil)
		if diff := cmp.Diff(want, cluster.StartTimes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		if found := slices.Contains(codes(cluster.Findings), AnnotationUnreadable); found != (want == nil) {
			t.Errorf("%s: findings %v", text, codes(cluster.Findings))
		}
	}
}
