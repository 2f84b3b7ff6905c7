package nodepool

import (
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool/departure"
)

// leavingByGroup finds the names among this cluster's workers. The operator deletes every pod that is named, including
// the head, another cluster's or a foreign pod (docs/reference/facts.md#named-pods), so other names are dropped here.
func (a *targetCalculation) leavingByGroup(names []string) map[string][]Worker {
	if len(names) == 0 {
		return nil
	}
	known := make(map[string]Worker, len(a.cluster.Workers))
	for _, w := range a.cluster.Workers {
		if w.Pod != a.cluster.Head.Pod {
			known[w.Pod] = w
		}
	}
	byGroup := map[string][]Worker{}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		w, ok := known[name]
		if name == "" || !ok {
			a.report(UnknownPod, "", name, "only workers of this RayCluster can be named for deletion",
				"plan again with the pods as they are now")
			continue
		}
		if _, listed := a.cluster.Group(w.Group); !listed {
			a.report(UnknownGroup, "spec.workerGroupSpecs", w.Group,
				"pod "+name+" stays: its group is not in the RayCluster", "delete the pod, or add the group again")
			continue
		}
		byGroup[w.Group] = append(byGroup[w.Group], w)
	}
	return byGroup
}

// departures drops the pods that were already named, keeps multi-host replicas whole, and counts the replicas that
// leave.
func (a *targetCalculation) departures(group *WorkerGroup, hosts int, leaving []Worker) ([]Worker, int) {
	fresh := slices.DeleteFunc(slices.Clone(leaving), func(w Worker) bool {
		return slices.Contains(group.WorkersToDelete, w.Pod)
	})
	if hosts == 1 {
		return fresh, len(fresh)
	}
	asked := map[string]int{}
	for _, w := range fresh {
		asked[w.Replica]++
	}
	whole := map[string]bool{}
	for _, replica := range slices.Sorted(maps.Keys(asked)) {
		if why := a.splits(group, replica, asked[replica]); why != "" {
			a.report(SplitReplica, groupField(group), replica, why, "remove all hosts of a replica together")
			continue
		}
		whole[replica] = true
	}
	fresh = slices.DeleteFunc(fresh, func(w Worker) bool { return !whole[w.Replica] })
	return fresh, len(whole)
}

// splits returns why a replica of which some hosts should leave cannot leave, or "" if all of them leave: if one host
// is named, the operator deletes all of them (docs/reference/facts.md#multi-host-replicas).
func (a *targetCalculation) splits(group *WorkerGroup, replica string, asked int) string {
	if replica == "" {
		return "a pod without the label ray.io/worker-group-replica-name belongs to no replica of a multi-host " +
			"group; the operator ignores its name"
	}
	var staying []string
	for _, w := range a.cluster.Workers {
		if w.Group == group.Name && w.Replica == replica && !slices.Contains(group.WorkersToDelete, w.Pod) {
			staying = append(staying, w.Pod)
		}
	}
	if len(staying) > asked {
		return "not every host was asked to leave; the replica has " + strings.Join(staying, ", ")
	}
	return ""
}

// MarkGivenBack marks the workers that are given back: they go, as if their machines did.
func (c *Cluster) MarkGivenBack() {
	if c.GiveBack == nil {
		return
	}
	notice := c.GiveBack.Notice()
	for i := range c.Workers {
		if w := &c.Workers[i]; c.GiveBack.Has(w.UID) {
			w.Going = departure.Earlier(w.Going, notice)
		}
	}
}

// EndGiveBack lets nothing follow from a reservation that is over.
func (c *Cluster) EndGiveBack() {
	c.GiveBack, c.GiveBackOver = nil, c.GiveBack
	for i := range c.Workers {
		if w := &c.Workers[i]; w.Going != nil && w.Going.Sign == departure.GivenBack {
			w.Going = nil
		}
	}
}

// SpreadGoing marks all hosts of a multi-host replica with what one of them shows: the work of a replica spans its
// hosts, and the operator deletes replicas whole. A warning does not spread, nor does the deletion of a single pod,
// which the operator repairs.
func (c *Cluster) SpreadGoing() {
	going := map[string]*departure.Notice{}
	for i := range c.Workers {
		if w := &c.Workers[i]; w.Replica != "" && w.Going != nil && w.Going.Certain && !w.Terminating && !w.Failed {
			key := w.Group + "/" + w.Replica
			notice := *w.Going
			notice.Besides = nil
			going[key] = departure.Earlier(going[key], &notice)
		}
	}
	if len(going) == 0 {
		return
	}
	for i := range c.Workers {
		w := &c.Workers[i]
		if notice := going[w.Group+"/"+w.Replica]; notice != nil && w.Replica != "" {
			w.Going = departure.Earlier(w.Going, notice)
		}
	}
}
