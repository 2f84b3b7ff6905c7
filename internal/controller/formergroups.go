package controller

import "heliostat.dev/heliostat/internal/controller/observation"

// forgetFormerGroups forgets groups that the RayCluster no longer has and that have no pods: otherwise, a group that is
// renamed again and again would take more memory each time. The shapes have an entry for each group.
func (r *record) forgetFormerGroups(v *observation.View) {
	if len(r.shapes) <= len(v.Cluster.Groups) {
		return
	}
	exists := make(map[string]bool, len(v.Cluster.Groups))
	for i := range v.Cluster.Groups {
		exists[v.Cluster.Groups[i].Name] = true
	}
	for i := range v.Members {
		exists[v.Members[i].Group] = true
	}
	gone := func(group string) bool { return !exists[group] }
	r.shapes.Forget(gone)
	r.breakers.Forget(gone)
	r.refusals.Forget(gone)
	r.provisions.Forget(gone)
	r.nodes.Forget(gone)
	r.reverts.Forget(gone)
	r.numGPUsWrites.Forget(gone)
}
