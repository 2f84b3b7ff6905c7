package cli

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestTheClosestClusterIsNearAndListed(t *testing.T) {
	listed := func(names ...string) (all []apiv1.ClusterSummary) {
		for _, name := range names {
			namespace, name, _ := strings.Cut(name, "/")
			all = append(all, apiv1.ClusterSummary{Namespace: namespace, Name: name})
		}
		return all
	}
	for name, test := range map[string]struct {
		listed []apiv1.ClusterSummary
		want   string
	}{
		"nothing is listed":                              {nil, "/"},
		"it is known, so something else was not found":   {listed("ml/llm", "ml/llm2"), "/"},
		"one of its namespace goes before another's":     {listed("dev/llm", "ml/llm2"), "ml/llm2"},
		"one of its name in another namespace":           {listed("dev/llm", "ml/other"), "dev/llm"},
		"two namespaces have one of its name":            {listed("dev/llm", "prod/llm"), "/"},
		"a near name in another namespace is no mistake": {listed("dev/llm2"), "/"},
	} {
		if got := closestKey(nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, test.listed); got.Namespace+"/"+got.Name != test.want {
			t.Errorf("%s: %v, want %s", name, got, test.want)
		}
	}
}
