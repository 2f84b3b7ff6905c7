package main

import (
	"encoding/json"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/planner"
)

func TestAKeyThatIsNotReadIsAWarningAndAFinding(t *testing.T) {
	const input = `{"groups": [{"name": "cpu", "resources": {"CPU": 4}, "minReplica": 2}]}`
	const told = "standard input: groups[0].minReplica: 2: this key is unknown, so it has no effect; rename it to minReplicas"
	const warning = "autoscaler: warning: " + told + "\n"
	code, out, errOut := command(t, input, "autoscaler", "plan", "--snapshot", "-")
	var plan planner.Plan
	if err := json.Unmarshal([]byte(out), &plan); err != nil || code != cli.ExitOK || errOut != warning {
		t.Fatalf("exit %d (%v), told %q, want %q", code, err, errOut, warning)
	}
	if len(plan.Findings) != 1 || plan.Findings[0].Code != planner.FindingKeyUnknown {
		t.Errorf("findings %+v, want the one of the key", plan.Findings)
	}
	code, out, errOut = command(t, input, "autoscaler", "plan", "--snapshot", "-", "-o", "text")
	if text := strings.Join(strings.Fields(out), " "); code != cli.ExitOK || errOut != "" || !strings.Contains(text, "Findings warning key-unknown standard input groups[0].minReplica: 2 this key is unknown") {
		t.Errorf("exit %d, told %q and\n%s", code, errOut, out)
	}
	if code, _, errOut := command(t, input, "autoscaler", "explain", "--snapshot", "-", "--group", "cpu"); code != cli.ExitOK || errOut != warning {
		t.Errorf("explain: exit %d, told %q", code, errOut)
	}
	if code, _, errOut := command(t, `{"rayCluster": `+manifest+`, "takenat": "2026-01-31T12:00:00Z"}`, "autoscaler", "plan", "--snapshot", "-"); code != cli.ExitOK || !strings.Contains(errOut, "rename it to takenAt") {
		t.Errorf("with a manifest: exit %d, told %q", code, errOut)
	}
}

func TestTheCasesOfRayAndKubeRayAreReadWithoutAWarning(t *testing.T) {
	for _, file := range caseFiles(t) {
		if code, _, errOut := command(t, "", "autoscaler", "plan", "--snapshot", file); code != cli.ExitOK || errOut != "" {
			t.Errorf("%s: exit %d, told %s", file, code, errOut)
		}
	}
}
