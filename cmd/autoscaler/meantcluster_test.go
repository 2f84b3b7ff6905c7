package main

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestTheRayClusterThatWasProbablyMeantIsNamed(t *testing.T) {
	newRemote(t)
	for _, args := range [][]string{
		{"status", "-n", "ml", "llmm"}, {"explain", "-n", "ml", "llmm", "--group", "gpu"}, {"shadow", "-n", "ml", "llmm"}, {"freeze", "-n", "ml", "llmm"}, {"manage", "-n", "ml", "llmm"},
		{"request", "-n", "ml", "llmm"}, {"requests", "-n", "ml", "llmm"}, {"plan", "-n", "ml", "llmm"},
	} {
		if code, _, errOut := command(t, "", append([]string{"autoscaler"}, args...)...); code != cli.ExitFailed || !strings.Contains(errOut, "; did you mean llm?\n") {
			t.Errorf("%q: exit %d, told %q", args, code, errOut)
		}
	}
	for argument, near := range map[string]string{"ml/llmm": "ml/llm", "default/llm": "ml/llm", "llm": "ml/llm"} {
		if _, _, errOut := command(t, "", "autoscaler", "status", argument); !strings.HasSuffix(errOut, "; did you mean "+near+"?\n") {
			t.Errorf("%s: told %q, want a hint at %s", argument, errOut, near)
		}
	}
	if _, _, errOut := command(t, "", "autoscaler", "status", "ml/other"); strings.Contains(errOut, "did you mean") {
		t.Errorf("told %q of a name that is like none", errOut)
	}
}

func TestOnlyWhatIsNearAndListedIsMeant(t *testing.T) {
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
		if got := nearCluster(nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, test.listed); got.Namespace+"/"+got.Name != test.want {
			t.Errorf("%s: %v, want %s", name, got, test.want)
		}
	}
}
