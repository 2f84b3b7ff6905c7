package kueue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// workloads are the Workloads of one job, also those that are finished.
type workloads []*workload

// pending returns the newest unfinished Workload without quota, admitted the newest one with quota; nil for none.
func (all workloads) pending() *workload {
	return all.newest(func(w *workload) bool { return w.unfinished() && !w.reserved })
}

func (all workloads) admitted() *workload {
	return all.newest(func(w *workload) bool { return w.unfinished() && w.reserved })
}

func (all workloads) newest(which func(*workload) bool) *workload {
	var found *workload
	for _, w := range all {
		if which(w) && (found == nil || w.newer(found)) {
			found = w
		}
	}
	return found
}

// quota says what the Workloads of a job and its queue mean for its groups. queue is nil if it is unknown.
func (all workloads) quota(
	cluster *nodepool.Cluster, queue *quotaHolder, most func(flavored) (raydemand.Amount, string), others othersUse,
	now time.Time,
) *nodepool.Quota {
	q := &nodepool.Quota{}
	if w := all.pending(); w != nil {
		q.Elastic = w.elastic()
		q.Pending = &nodepool.PendingWorkload{
			Name: w.Metadata.Name, Version: fmt.Sprintf("%s/%d", w.Metadata.UID, w.Metadata.Generation),
			Pods: w.podsOf(cluster), Message: w.message, Judged: w.judged,
			Preempting: strings.Contains(w.message, preempting),
		}
	}
	w := all.admitted()
	if w == nil {
		return q
	}
	q.Elastic = w.elastic() && (q.Pending == nil || q.Elastic)
	q.Admitted, q.Granted = true, w.podsOf(cluster)
	if queue == nil {
		name := cmp.Or(w.Status.Admission.ClusterQueue, "of unknown name")
		q.Unbounded = fmt.Sprintf("ClusterQueue %s cannot be read", name)
	} else {
		q.Bounds, q.Unbounded = all.bounds(cluster, w, queue, most, others, now)
	}
	return q
}

// setOf returns the name that Kueue gives to the pods of a group.
func setOf(group string) string { return strings.ToLower(group) }

// podsOf counts the pods of each group.
func (w *workload) podsOf(cluster *nodepool.Cluster) map[string]int {
	pods := make(map[string]int, len(cluster.Groups))
	for i := range cluster.Groups {
		name := cluster.Groups[i].Name
		pods[name] = int(w.pods(setOf(name)))
	}
	return pods
}

// bounds returns how much of each resource the pods of groups may have together: the quota, less what other Workloads
// and the head have of it. Kueue assigns one flavor to a group and resource when it admits the group. unknown says why
// the quota is not known; empty if it is.
func (all workloads) bounds(
	cluster *nodepool.Cluster, admitted *workload, queue *quotaHolder,
	most func(flavored) (raydemand.Amount, string), others othersUse, now time.Time,
) (bounds []landing.Quota, unknown string) {
	takes := map[flavored]map[string]raydemand.Amount{}
	sets := map[string]bool{}
	for i := range cluster.Groups {
		g := &cluster.Groups[i]
		sets[setOf(g.Name)] = true
		for name, flavor := range admitted.flavorsOf(setOf(g.Name)) {
			amount := cmp.Or(admitted.each(setOf(g.Name), name), g.Pod.Requests[name])
			if name == string(corev1.ResourcePods) {
				amount = raydemand.One // no pod requests it, and each takes one (v0.19.0, pkg/scheduler/flavorassigner)
			}
			if amount > 0 {
				of := flavored{flavor, name}
				if takes[of] == nil {
					takes[of] = map[string]raydemand.Amount{}
				}
				takes[of][g.Name] = amount
			}
		}
	}
	for _, of := range slices.SortedFunc(maps.Keys(takes), compareFlavored) {
		if _, known := queue.quotas[of]; !known {
			continue
		}
		limit, why := most(of)
		if why != "" {
			return nil, why
		}
		head := admitted.uses(of.flavor, of.resource, func(set string) bool { return !sets[set] })
		theirs := others.update(of, queue.reserved[of], all, now)
		bounds = append(bounds, landing.Quota{
			Name:     fmt.Sprintf("flavor %s of ClusterQueue %s", of.flavor, queue.name),
			Resource: of.resource,
			Amount:   max(0, limit-theirs-head),
			PodTakes: takes[of],
		})
	}
	return bounds, ""
}

// flavorsOf returns the flavor of each resource of a set of pods.
func (w *workload) flavorsOf(set string) map[string]string {
	for _, a := range w.Status.Admission.PodSetAssignments {
		if a.Name == set {
			return a.Flavors
		}
	}
	return nil
}

func compareFlavored(a, b flavored) int {
	return cmp.Or(cmp.Compare(a.flavor, b.flavor), cmp.Compare(a.resource, b.resource))
}
