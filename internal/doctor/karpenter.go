package doctor

import (
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// The defaults of a NodePool, which the API server sets (karpenter v1.14.1, pkg/apis/v1/nodepool.go, nodeclaim.go).
const (
	consolidatesAll = "WhenEmptyOrUnderutilized"
	expiresAfter    = "720h"
	never           = "Never"
)

// consolidationUnguarded reports NodePools of which Karpenter empties nodes that hold pods. Static ones keep theirs.
func consolidationUnguarded(x *inventory, o *Object, report reporter) {
	disruption := o.Root().Get("spec", "disruption")
	policy := disruption.Get("consolidationPolicy")
	if policy.Text() == "WhenEmpty" || disruption.Text("consolidateAfter") == never ||
		o.Root().Has("spec", "replicas") ||
		slices.ContainsFunc(disruption.Items("budgets"), allowsNoConsolidation) {
		return
	}
	reportUnguarded(x, o.Name, report, occurrence{Path: policy.Path(), Seen: orDefault(policy, consolidatesAll),
		Fix: set(policy.Path(), "WhenEmpty").Hint("or guard working pods: serve with " +
			"--protect-busy (chart value protectBusy: true), and nodes that are not full are still emptied when idle")})
}

// allowsNoConsolidation reports whether a budget always allows no node to be consolidated.
func allowsNoConsolidation(budget fieldpath.Value) bool {
	reasons := budget.TextList("reasons")
	none := slices.Contains([]string{"0", "0%"}, budget.Text("nodes"))
	return none && !budget.Has("schedule") && (len(reasons) == 0 || slices.Contains(reasons, "Underutilized"))
}

// expiryUnguarded reports NodePools whose nodes end at an age.
func expiryUnguarded(x *inventory, o *Object, report reporter) {
	template := o.Root().Get("spec", "template", "spec")
	age := template.Get("expireAfter")
	if age.Text() == never {
		return
	}
	grace := ""
	if text := template.Text("terminationGracePeriod"); text != "" {
		grace = ", terminationGracePeriod " + text
	}
	reportUnguarded(x, o.Name, report, occurrence{Path: age.Path(), Seen: orDefault(age, expiresAfter) + grace,
		Fix: edit("guard working pods: serve with --protect-busy (chart value protectBusy: true); Karpenter " +
			"replaces all nodes of the pool if you change expireAfter, and evicts their pods")})
}

func orDefault(v fieldpath.Value, standard string) string {
	if !v.Has() {
		return "not set, which is " + standard
	}
	return v.String()
}

// reportUnguarded reports an occurrence if pods that may be on nodes of the NodePool have no guard.
func reportUnguarded(x *inventory, nodePool string, report reporter, found occurrence) {
	var bare []rayGroup
	for _, g := range x.Groups {
		if mayHavePods(g) && x.mayServe(nodePool, g) && x.unguarded(g) {
			bare = append(bare, g)
		}
	}
	if len(bare) > 0 {
		found.More = "pods of " + groupsText(bare) + " may run there and have no guard"
		report(found)
	}
}

// mayHavePods reports whether the group may have a pod at all.
func mayHavePods(g rayGroup) bool {
	return g.Workers == nil || g.Workers.Max > 0 && !g.Workers.Suspended
}

// groupsText names one group, and counts the others.
func groupsText(groups []rayGroup) string {
	text := "group " + groups[0].Name + " of " + groups[0].Of.String()
	if others := len(groups) - 1; others > 0 {
		text += fmt.Sprintf(" and %d more", others)
	}
	return text
}

// unguarded reports whether nothing keeps Karpenter from evicting the working pods of a group, or of a head: its head
// runs without a guard. The annotation of its pod template guards it, and so does a pod of the RayCluster that
// Heliostat has guarded: it guards all of a managed RayCluster, and its head always.
func (x *inventory) unguarded(g rayGroup) bool {
	cluster := g.Of.Cluster
	ours := cluster.Head.Guard.DoNotDisrupt == nodepool.MarkedByUs ||
		slices.ContainsFunc(cluster.Workers, func(w nodepool.Worker) bool {
			return w.Guard.DoNotDisrupt == nodepool.MarkedByUs
		})
	ofHead := g.Workers == nil && cluster.Head.Guard.DoNotDisrupt == nodepool.MarkedByUser
	template := g.Text("template", "metadata", "annotations", nodepool.DoNotDisruptAnnotation)
	if ours || ofHead || template == nodepool.DoNotDisrupt {
		return false
	}
	head := x.headPod(g.Of)
	return head != nil && head.Root().Text("status", "phase") == "Running"
}

// budgetBlocks reports a PodDisruptionBudget over pods of Ray if Kubernetes compares it with the scale of their
// RayCluster: each value but a whole number in minAvailable.
func budgetBlocks(x *inventory, o *Object, report reporter) {
	limit, none := o.Root().Get("spec", "maxUnavailable"), []string{"0", "0%"}
	if !limit.Has() {
		limit, none = o.Root().Get("spec", "minAvailable"), []string{"100%"}
		if !strings.HasSuffix(limit.Text(), "%") {
			return
		}
	}
	groups := x.selected(o, o.Root().Get("spec", "selector"))
	if len(groups) == 0 {
		return
	}
	found := occurrence{Path: limit.Path(), Seen: limit.String(), More: "it selects pods of " + groupsText(groups),
		Fix: edit("select heads alone, with their number in minAvailable; busy workers are guarded by serve " +
			"--protect-busy (chart value protectBusy: true)")}
	if slices.Contains(none, limit.String()) {
		found.Severity = raydemand.Info // no eviction is what the value asks for
	}
	report(found)
}
