package consolidation

import (
	"fmt"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// FindingPossible is the code of a suggestion: the work of a worker fits on others.
const FindingPossible = "consolidation-possible"

// Reason is the code of the reason for a drain, in metrics.
const Reason = "consolidation"

// mostShown bounds the suggestions for one RayCluster.
const mostShown = 3

// Findings returns the suggestions. Next says when the first of them that is allowed will be carried out, or what
// prevents it; empty if none is allowed, or if it is carried out now.
func Findings(
	moves []Move, cluster nodepool.ClusterKey, opted nodepool.Consolidate, currency, next string,
) []raydemand.Finding {
	var all []raydemand.Finding
	for i := range moves[:min(len(moves), mostShown)] {
		m := &moves[i]
		f := raydemand.Finding{Code: FindingPossible, Severity: raydemand.Info,
			Object: "RayCluster " + cluster.String(), Field: "metadata.annotations." + nodepool.ConsolidateAnnotation,
			Seen: string(opted), Why: m.Text(currency)}
		switch {
		case !opted.Allows(m.Needs):
			f.Fix = fmt.Sprintf("kubectl -n %s annotate raycluster %s --overwrite %s=%s", cluster.Namespace,
				cluster.Name, nodepool.ConsolidateAnnotation, m.Needs)
		case next != "":
			f.Fix = "Heliostat drains one worker at a time: " + next
		default:
			f.Fix = "Heliostat drains it now"
		}
		all = append(all, f)
	}
	return all
}

// Find returns the move of the same Ray node among moves; nil if there is none.
func Find(moves []Move, move Move) *Move {
	for i := range moves {
		if moves[i].Pod == move.Pod && moves[i].Node.ID == move.Node.ID {
			return &moves[i]
		}
	}
	return nil
}
