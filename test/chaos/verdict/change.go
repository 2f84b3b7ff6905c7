package verdict

import (
	"maps"
	"slices"
	"time"
)

// spec judges a change of a RayCluster.
func (j *Judge) spec(s Spec) {
	c := j.cluster(s.Cluster)
	before, known := c.groups, c.known
	c.groups, c.known = map[string]Group{}, true
	for _, group := range s.Groups {
		c.groups[group.Name] = group
	}
	if !known {
		return
	}
	ours := s.Writer == j.bounds.Manager
	c.lower(s.At, before, ours)
	if !ours {
		return
	}
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(c.groups)) {
		from, to := before[name], c.groups[name]
		if from.Replicas != to.Replicas || !slices.Equal(from.Delete, to.Delete) {
			changed = append(changed, name)
		}
	}
	if len(changed) == 0 {
		return
	}
	if slices.Contains(j.bounds.Shadow, c.name) {
		j.fail(s.At, Untouchable, c.name, "the groups %q were changed", changed)
	}
	for _, name := range changed {
		j.changed(s.At, c, before[name], c.groups[name])
	}
	j.flight(s.At, c, before)
}

// lower notes which groups somebody else lowered: of which the operator wants fewer pods than before, by a change that
// is not Heliostat's. Heliostat never changes limits, so their changes are of somebody else even if Heliostat is the
// last of several writers that are seen at once.
func (c *cluster) lower(at time.Time, before map[string]Group, ours bool) {
	for name, from := range before {
		to, there := c.groups[name]
		if ours {
			to.Replicas = from.Replicas
		}
		if !there || to.pods() < from.pods() {
			c.lowered[name] = at
		}
	}
}

// pods is how many pods the operator wants (KubeRay 1.6.2, ray-operator/controllers/ray/utils/util.go:
// GetWorkerGroupDesiredReplicas).
func (g Group) pods() int64 {
	switch {
	case g.Replicas < g.Min:
		return g.Min
	case g.Replicas > g.Max:
		return g.Max
	}
	return g.Replicas
}

// changed judges Heliostat's change of a group.
func (j *Judge) changed(at time.Time, c *cluster, from, to Group) {
	for _, pod := range to.Delete {
		if slices.Contains(from.Delete, pod) {
			continue
		}
		ended := j.sentWithoutNode(c, pod, at)
		c.named[pod] = naming{at: at, ended: ended, ending: c.latest.Workers[pod].Ending}
		since, busy := c.busySince[pod]
		if busy && at.Sub(since) > certain && at.Sub(c.latest.At) < certain && !c.named[pod].ending && !ended {
			j.fail(at, BusyRemoved, c.name, "pod %s of group %s is named, but is busy for %.1f s", pod, to.Name,
				at.Sub(since).Seconds())
		}
	}
	var stay []string // pods whose names are taken back: if they live, they are no launch
	for _, pod := range from.Delete {
		if naming, named := c.named[pod]; named && !slices.Contains(to.Delete, pod) {
			naming.takenBack = at
			c.named[pod] = naming
			stay = append(stay, pod)
		}
	}
	switch {
	case to.Replicas > from.Replicas:
		c.demands = kept(c.demands, at.Add(-j.bounds.Lag))
		c.raises = append(c.raises, raise{at: at, from: from, to: to, stay: stay,
			needed: max(to.Min, most(c.demands, to.Name))})
		j.settleRaises(at, c)
	case to.Replicas < from.Replicas:
		j.counts.Reductions++
		if to.Replicas < to.Min {
			j.fail(at, OutOfBounds, c.name, "group %s: %d → %d replicas, the minimum is %d", to.Name, from.Replicas,
				to.Replicas, to.Min)
		}
	}
}

// sentWithoutNode reports whether a patch that is seen now may have been sent while a pod's Ray node had ended: none is
// in it now, or it joined again within the second that a patch may take, or a fault held the patch up.
func (j *Judge) sentWithoutNode(c *cluster, pod string, now time.Time) bool {
	_, left := c.left[pod]
	joined, alive := c.joined[pod]
	return left && (!alive || !j.couldReact(c.name, joined, now))
}

// raise is a change to more replicas. It is a launch unless they are for pods that stay, because their names are taken
// back; crossed are those of them that the operator deleted all the same, because it had read the name. needed is how
// many were of use within the lag.
type raise struct {
	at            time.Time
	from, to      Group
	stay, crossed []string
	needed        int64
}

// settleRaises judges the raises that are certain by now. Ray may have started again in a pod whose name is taken back
// before the next state shows it.
func (j *Judge) settleRaises(now time.Time, c *cluster) {
	c.raises = slices.DeleteFunc(c.raises, func(r raise) bool {
		stay := slices.DeleteFunc(slices.Clone(r.stay), func(pod string) bool {
			_, lives := c.latest.Workers[pod]
			return !lives && !slices.Contains(r.crossed, pod)
		})
		within := r.to.Replicas <= r.to.Max
		switch {
		case within && r.to.Replicas <= r.from.Replicas+int64(len(stay)):
			return true
		case within && r.to.Replicas <= r.from.Replicas+int64(len(r.stay)) && now.Sub(r.at) <= certain:
			return false
		}
		j.launched(c, r)
		return true
	})
}

// launched judges a launch: within the maximum, and for work that was there.
func (j *Judge) launched(c *cluster, r raise) {
	j.counts.Launches++
	if r.to.Replicas > r.to.Max {
		j.fail(r.at, OutOfBounds, c.name, "group %s: %d → %d replicas, the maximum is %d", r.to.Name, r.from.Replicas,
			r.to.Replicas, r.to.Max)
	}
	if r.to.Replicas > r.needed {
		j.fail(r.at, LaunchedTwice, c.name, "group %s: %d → %d replicas, but at most %d were of use within %s",
			r.to.Name, r.from.Replicas, r.to.Replicas, r.needed, j.bounds.Lag)
	}
}

// flight judges how many pods are on their way after a launch. What the operator makes for a minimum is none.
func (j *Judge) flight(at time.Time, c *cluster, before map[string]Group) {
	var replicas, raised int64
	for name, group := range c.groups {
		replicas += group.Replicas
		raised += max(0, group.pods()-before[name].pods())
	}
	c.alive = kept(c.alive, at.Add(-j.bounds.Lag))
	if way := replicas - total(c.alive); raised > 0 && way > j.bounds.MaxInFlight {
		j.fail(at, InFlight, c.name, "%d replicas, of which %d are on their way: at most %d", replicas, way,
			j.bounds.MaxInFlight)
	}
}
