package doctor

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// budgetBlocks reports PodDisruptionBudgets over pods of Ray for which Kubernetes needs the scale of their RayCluster.
func budgetBlocks(x *inventory, report reporter) {
	for _, o := range x.ByKind["PodDisruptionBudget"] {
		limit, relative := relativeLimit(o)
		if !relative || counted(o) {
			continue
		}
		groups := x.selected(o, o.Root().Get("spec", "selector"))
		if len(groups) == 0 {
			continue
		}
		found := occurrence{
			Object: o, Path: limit.Path(), Seen: limit.String(),
			More: "it selects pods of " + groupsText(groups), Fix: wholeMinimum(o, limit, groups),
		}
		if asksForNone(limit) {
			found.Severity = raydemand.Info // it is what the value asks for
		}
		report(found)
	}
}

// relativeLimit returns the field of a budget that Kubernetes compares with the scale of the pods' controllers: each
// but a whole number in minAvailable.
func relativeLimit(o *Object) (limit fieldpath.Value, relative bool) {
	spec := o.Root().Get("spec")
	if most := spec.Get("maxUnavailable"); most.Has() {
		return most, true
	}
	least := spec.Get("minAvailable")
	return least, strings.HasSuffix(least.Text(), "%")
}

// asksForNone reports whether the limit allows no eviction.
func asksForNone(limit fieldpath.Value) bool {
	if limit.Path().LastKey() == "minAvailable" {
		return limit.String() == "100%"
	}
	return limit.String() == "0" || limit.String() == "0%"
}

// counted reports whether the status shows that Kubernetes knows the scale after all: the CRD of RayClusters may have
// one some day.
func counted(o *Object) bool {
	status := o.Root().Get("status")
	pods, _ := status.Whole("expectedPods")
	return pods > 0 && slices.ContainsFunc(status.Items("conditions"), func(c fieldpath.Value) bool {
		return c.Text("type") == "DisruptionAllowed" && c.Text("reason") != "SyncFailed"
	})
}

// wholeMinimum returns the fix that keeps the heads that a budget selects. How many workers there are changes, so for
// them no whole number is right.
func wholeMinimum(o *Object, limit fieldpath.Value, groups []rayGroup) fix {
	heads := int64(0)
	for _, g := range groups {
		if g.Workers == nil && g.Of.Kind == "RayCluster" {
			heads++
		}
	}
	if int(heads) < len(groups) {
		return edit(o, "select heads alone, with a whole number in minAvailable; busy workers are guarded by "+
			"serve --protect-busy (chart value protectBusy: true)")
	}
	least := o.Root().Path("spec", "minAvailable")
	repair := patch(o, remove(limit.Path()), add(least, heads))
	if limit.Path().LastKey() == "minAvailable" {
		repair = patch(o, replace(least, heads))
	}
	return repair.Hint("this is the number of heads that it selects: none of them is evicted, and with a smaller " +
		"number some may be")
}
