package reasons

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/placing"
)

// topologyReason explains why a choice of a gang is not served although each of its bundles could be, if they did not
// have to share a label. Bundles that the gang already holds make nothing impossible: if they were lost, the gang could
// be placed elsewhere.
func (w *Writer) topologyReason(
	g *fleet.Gang,
	o fleet.Option,
	bundles int,
	given []int64,
	reason model.Reason,
) model.Reason {
	label := g.TopologyLabel
	open := w.Domains(&placing.Ledger{Classes: w.Base}, g)
	all := w.Topology(label).Domains(func(int) bool { return true })
	groups := w.consider(o.Items, given, label, open...)
	reasons := phrase.List(w.sentences(groups))
	because := func(code, format string, args ...any) model.Reason {
		return model.Reason{Code: code, Message: fmt.Sprintf(format, args...)}
	}
	if code, text, trying := w.openDomains(g, o, given); text != "" && (trying || !w.possibleWithin(o, open)) {
		return because(code, "%s", text)
	}
	switch {
	case len(all) == 0:
		return because(model.Impossible, "no node and no group has the gang's topology label %s; set it in "+
			"the labels of a group, or take it from a label of its Kubernetes nodes with --topology-label", label)
	case !w.possibleWithin(o, all):
		return because(model.Impossible,
			"no value of label %s has nodes or groups for every bundle: %s", label, reasons)
	case len(open) == 0:
		return because(model.Capped, "the nodes that hold the gang's other bundles lack its topology label %s", label)
	case !w.possibleWithin(o, open):
		return because(model.Capped, "its other bundles are on %s, where no node and no group can hold the rest: %s",
			w.valuesOf(open, label), reasons)
	case g.Held:
		return because(cmp.Or(w.codeOf(groups.could, given), model.Capped),
			"its other bundles are on %s, which has no room for the remaining %d: %s",
			w.valuesOf(open, label), bundles, reasons)
	}
	return because(reason.Code, "no value of label %s has room for all %d bundles: %s", label, bundles, reason.Message)
}

// valuesOf returns domains as text: rack=1.
func (w *Writer) valuesOf(domains []fleet.Domain, label string) string {
	var values []string
	for _, d := range domains {
		set := slices.Index(d.Of, d.Value)
		values = append(values, label+"="+w.Sets[set][label])
	}
	return strings.Join(values, ", ")
}
