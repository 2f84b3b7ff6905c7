package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestOnlyCyclesThatDidSomethingOrFailedAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*addon.Decision)
		want   bool
	}{
		"at rest":                   {func(*addon.Decision) {}, false},
		"a patch":                   {func(d *addon.Decision) { d.Actions = d.Recent }, true},
		"a patch that failed":       {func(d *addon.Decision) { d.Err = "patching RayCluster: timeout" }, true},
		"a head that is silent":     {func(d *addon.Decision) { d.RayErr = "deadline exceeded" }, true},
		"a head that nobody called": {func(d *addon.Decision) { d.RayErr, d.Mode = "mode is off", nodepool.Off }, false},
	} {
		d := decided()
		d.RayErr = ""
		c.change(d)
		if got := telemetry.Notable(d); got != c.want {
			t.Errorf("%s: told %v, want %v", name, got, c.want)
		}
	}
}

// scaling returns a decision that has been carried out while a group is in cooldown.
func scaling() *addon.Decision {
	d := decided()
	d.RayErr = ""
	d.Snapshot.Groups = []planner.Group{{Name: "gpu", CoolingSeconds: 30}}
	d.Plan.Groups[0].Reasons = []planner.Reason{{Code: planner.CodeLaunch}}
	d.Plan.Terminate = []planner.Termination{{Pod: "a", Reason: "idle"}}
	d.Actions = slices.Clone(d.Recent)
	return d
}

// cycleItself ignores the field that TestADecisionIsMeasured checks.
var cycleItself = cmpopts.IgnoreFields(telemetry.CycleReport{}, "Cycle")

func TestASpanTellsThePartsOfItsCycle(t *testing.T) {
	d := scaling()
	d.Observed, d.Planned, d.Waited, d.Snapshot.Groups[0].Closed = time.Millisecond, 500*time.Microsecond, 200*time.Microsecond, "no node"
	want := telemetry.CycleReport{
		Export: true, At: d.At, Observed: time.Millisecond, Planned: 500 * time.Microsecond, Waited: 200 * time.Microsecond, Applied: 1300 * time.Microsecond, Mode: "managed",
		Cooling: map[string]string{"gpu": "no node"},
		Actions: []string{"patch-ok", "drain-refused", "patch-ok", "patch-ok"}, Reasons: []string{"idle", "launch"},
	}
	if diff := cmp.Diff(want, telemetry.ReportOf(d, d.At, d.At), cycleItself); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	d.ObserveFailed, d.Err, d.Actions = true, "observing: forbidden", nil
	begun := d.At.Add(time.Minute)
	want = telemetry.CycleReport{Export: true, At: begun, Observed: time.Second, Mode: "managed", Err: "observing: forbidden"}
	if diff := cmp.Diff(want, telemetry.ReportOf(d, begun, begun.Add(time.Second)), cycleItself); diff != "" {
		t.Errorf("told of a cycle that saw nothing (-want +got):\n%s", diff)
	}
}
