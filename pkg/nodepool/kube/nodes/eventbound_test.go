package nodes

import (
	"fmt"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// TestEventsAreBounded: those beyond the bound do not count, and there is room again when others expire.
func TestEventsAreBounded(t *testing.T) {
	p := listening()
	f := &feed{p: p, source: landing.FromClusterAutoscaler}
	p.feeds[f] = listed
	for i := range mostEvents {
		f.update(said(0, landing.FromClusterAutoscaler, "NotTriggerScaleUp", "Pod", fmt.Sprint("other-", i), "no"))
	}
	late := said(0, landing.FromClusterAutoscaler, "NotTriggerScaleUp", "Pod", "w", "max node group size reached")
	f.update(late)
	if refused, _, _ := heardOf(p); refused != "" || p.Used() != 1 {
		t.Errorf("refused %q with %v of the bound in use", refused, p.Used())
	}
	f.remove(said(0, landing.FromClusterAutoscaler, "NotTriggerScaleUp", "Pod", "other-0", "no"))
	f.update(late)
	if refused, _, _ := heardOf(p); refused == "" {
		t.Error("an Event does not count although there is room again")
	}
}
