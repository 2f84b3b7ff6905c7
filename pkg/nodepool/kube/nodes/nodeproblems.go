package nodes

import (
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// reportNodeProblems reports nodes with cards of which too little is known, if a group's pods would use them: one
// finding for each code and node.
func reportNodeProblems(report *decode.Report, cluster *nodepool.Cluster, shapes []*shapeFits, view *nodeView) {
	for _, shape := range shapes {
		for _, problem := range shape.problems {
			same := func(f raydemand.Finding) bool { return f.Code == problem.Code && f.Object == problem.Object }
			if !slices.ContainsFunc(report.All, same) {
				report.All = append(report.All, problem)
			}
		}
	}
	for _, node := range view.unrecorded {
		uses := func(g nodepool.WorkerGroup) bool { return g.Pod.WouldUse(node) }
		if f, matters := landing.NodeProblem(node.Name, *node.Use.Unrecorded); matters &&
			slices.ContainsFunc(cluster.Groups, uses) {
			f.Seen += landing.OneOf(len(view.unrecorded))
			report.All = append(report.All, f)
			return
		}
	}
}
