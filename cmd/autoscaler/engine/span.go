package engine

import (
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/telemetry"
)

// notable reports whether a cycle changed something or failed.
func notable(d *addon.Decision) bool {
	return len(d.Actions) > 0 || d.Err != "" || rayFailed(d)
}

// cycleReport returns the span's contents for a decision of a cycle that lasted from begun to ended. If the RayCluster
// could not be read, the decision is that of an earlier cycle, and this one only observed.
func cycleReport(d *addon.Decision, begun, ended time.Time) telemetry.CycleReport {
	t := telemetry.CycleReport{
		Cycle:        measurementsOf(d),
		Export:       notable(d),
		At:           d.At,
		GrowthWanted: d.GrowthWanted,
		Observed:     d.Observed,
		Planned:      d.Planned,
		Waited:       d.Waited,
		Mode:         string(d.Mode),
		Err:          d.Err,
	}
	if d.ObserveFailed {
		t.At, t.Observed, t.Planned, t.Waited = begun, ended.Sub(begun), 0, 0
		return t
	}
	t.Applied = max(0, d.Took-d.Observed-d.Waited-d.Planned)
	if t.Err == "" && rayFailed(d) {
		t.Err = d.RayErr
	}
	for _, g := range d.Snapshot.Groups {
		if g.CoolingSeconds > 0 {
			if t.Cooling == nil {
				t.Cooling = map[string]string{}
			}
			t.Cooling[g.Name] = g.Closed
		}
	}
	for _, a := range d.Actions {
		t.Actions = append(t.Actions, a.Kind+"-"+a.Result)
		t.Reasons = append(t.Reasons, reasonOf(d, a))
	}
	slices.Sort(t.Reasons)
	t.Reasons = slices.Compact(t.Reasons)
	return t
}
