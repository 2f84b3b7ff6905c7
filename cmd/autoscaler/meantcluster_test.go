package main

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/cli"
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
