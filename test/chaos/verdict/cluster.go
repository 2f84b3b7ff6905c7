package verdict

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// certain is how long a worker must have been busy before a patch that names it, because the patch was decided before
// it is seen here.
const certain = time.Second

// excuse is how long after somebody else lowered the maximum or the replicas of a group the operator may delete busy
// workers of its own choice.
const excuse = 30 * time.Second

// cluster is what a judge knows of a RayCluster.
type cluster struct {
	name   string
	groups map[string]Group
	known  bool // groups is from a Spec
	// named are the pods that Heliostat named for deletion. lowered is when somebody else lowered a group.
	named   map[string]naming
	lowered map[string]time.Time
	// joined is when the Ray node that a pod has now joined. left is when the last one ended, for a minute.
	joined, left map[string]time.Time
	latest       State
	used         map[string]int64 // how many workers of each group were of use in the latest state
	// busySince is since when a pod is busy without a break and without a drain.
	busySince map[string]time.Time
	raises    []raise // those that are not judged yet
	demands   []demand
	alive     []demand // the workers that take part in Ray, or cannot any more
	reported  map[string]bool
}

// naming is when Heliostat named a pod, and whether the pod's Ray node had ended when the patch was sent, or the pod
// was being deleted. takenBack is when it took the name back, or zero.
type naming struct {
	at        time.Time
	ended     bool
	ending    bool
	takenBack time.Time
}

// demand is how many workers of each group were of use at a moment.
type demand struct {
	at    time.Time
	units map[string]int64
}

// remember adds a demand and the workers that live, and forgets those older than the lag.
func (c *cluster) remember(at time.Time, units, alive map[string]int64, lag time.Duration) {
	c.demands = kept(append(c.demands, demand{at, units}), at.Add(-lag))
	c.alive = kept(append(c.alive, demand{at, alive}), at.Add(-lag))
}

// withSpent adds to a demand the pods that can take no work, which still count as replicas. A head answers only those
// that have work until they end.
func (c *cluster) withSpent(demand map[string]int64) map[string]int64 {
	units := maps.Clone(c.latest.Spent)
	if units == nil {
		return demand
	}
	for group, n := range demand {
		units[group] += n
	}
	for _, w := range c.latest.Workers {
		if w.Busy && (w.Draining || w.Ending) {
			units[w.Group]-- // the demand has it too
		}
	}
	return units
}

// kept drops what is older than a time, but keeps the last before it, which was still true then.
func kept(demands []demand, from time.Time) []demand {
	first := 0
	for first+1 < len(demands) && demands[first+1].at.Before(from) {
		first++
	}
	return slices.Delete(demands, 0, first)
}

// most is the largest demand of a group within the lag.
func most(demands []demand, group string) int64 {
	var most int64
	for _, d := range demands {
		most = max(most, d.units[group])
	}
	return most
}

// total is the largest demand of all groups together within the lag.
func total(demands []demand) int64 {
	var total int64
	for _, d := range demands {
		var sum int64
		for _, n := range d.units {
			sum += n
		}
		total = max(total, sum)
	}
	return total
}

// restore forgets what the storage has forgotten. What Heliostat or others had lowered may be as it was before, and the
// operator acts on it.
func (c *cluster) restore(at time.Time) {
	c.known = false
	clear(c.named)
	for name := range c.groups {
		c.lowered[name] = at
	}
}

// state judges a state, and remembers what of it justifies launches: busy workers, work that waits, and pods that are
// of no use any more but still count as replicas.
func (j *Judge) state(s State) {
	c := j.cluster(s.Cluster)
	c.join(s)
	c.latest = s
	j.settleRaises(s.At, c)
	units, alive := map[string]int64{}, map[string]int64{}
	maps.Copy(units, s.Waiting)
	for group, n := range s.Spent {
		units[group] += n
		alive[group] += n
	}
	for pod, w := range s.Workers {
		if w.Draining {
			delete(c.busySince, pod) // it is among those that are spent
			continue
		}
		alive[w.Group]++
		if !w.Busy {
			delete(c.busySince, pod)
			continue
		}
		units[w.Group]++
		if c.busySince[pod].IsZero() {
			c.busySince[pod] = s.At
		}
	}
	maps.DeleteFunc(c.busySince, func(pod string, _ time.Time) bool { _, lives := s.Workers[pod]; return !lives })
	c.used = units
	c.remember(s.At, units, alive, j.bounds.Lag)
	if j.phase == Rest {
		j.settled(s.At, c)
	}
}

// join notes which pods have a Ray node that they did not have in the state before.
func (c *cluster) join(s State) {
	for pod := range s.Workers {
		if _, before := c.latest.Workers[pod]; !before {
			c.joined[pod] = s.At
		}
	}
	for pod := range c.joined {
		if _, lives := s.Workers[pod]; !lives {
			c.left[pod] = s.At
			delete(c.joined, pod)
		}
	}
	maps.DeleteFunc(c.left, func(_ string, at time.Time) bool { return s.At.Sub(at) > time.Minute })
}

// end judges the end of a worker.
func (j *Judge) end(e End) {
	c := j.cluster(e.Cluster)
	j.spend(c, e)
	naming, named := c.named[e.Pod]
	named = named && !naming.ending
	joined := c.joined[e.Pod]
	read := named && !naming.takenBack.IsZero() && e.Cause == Deleted &&
		e.At.Sub(j.readUntil(naming.takenBack, e.At)) <= certain // the operator had read the name
	for i := range c.raises {
		if r := &c.raises[i]; read && slices.Contains(r.stay, e.Pod) {
			r.crossed = append(r.crossed, e.Pod)
		}
	}
	delete(c.busySince, e.Pod)
	delete(c.named, e.Pod)
	j.counts.Ends++
	if !e.Busy {
		return
	}
	j.counts.BusyEnds++
	if e.Cause != Deleted {
		j.counts.MachineEnds++
	}
	why := ""
	switch {
	case e.Cause != Deleted, read:
	case named && naming.takenBack.IsZero() && (!naming.ended || joined.IsZero()):
		why = "Heliostat named it"
	case named && naming.takenBack.IsZero():
		if j.couldReact(e.Cluster, later(joined, naming.at), e.At) {
			why = fmt.Sprintf("Heliostat named it, and left its name for %.1f s after it had joined again",
				e.At.Sub(later(joined, naming.at)).Seconds())
		}
	case e.At.Sub(c.lowered[e.Group]) > excuse:
		why = "it was not named, and no person lowered the group"
	}
	if why != "" {
		j.fail(e.At, BusyRemoved, e.Cluster, "pod %s of group %s ended with its work; %s", e.Pod, e.Group, why)
	}
}

// readUntil is until when the operator may read what was true until then: one that stands still finds all that happened
// meanwhile in its watches, and begins with the oldest.
func (j *Judge) readUntil(at, now time.Time) time.Time {
	s := j.standstill
	switch {
	case s.At.IsZero() || at.Before(s.At):
		return at
	case s.Ended.IsZero(): // it has just ended, because an operator that stands still does nothing
		return now
	}
	return later(at, s.Ended)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// spend remembers that the pod of a Ray node that ends still counts as a replica, for less time than lies between two
// states if its pod goes with its machine. In the last state, its work runs; now the work waits.
func (j *Judge) spend(c *cluster, e End) {
	if w, lives := c.latest.Workers[e.Pod]; !lives || w.Draining {
		return
	}
	units := maps.Clone(c.used)
	units[e.Group]++
	c.remember(e.At, units, c.alive[len(c.alive)-1].units, j.bounds.Lag)
}

// hinder keeps the hindrances of the last minute.
func (j *Judge) hinder(h Hindered) {
	i := slices.IndexFunc(j.hindrances, func(b Hindered) bool { return b.At.Equal(h.At) && b.Cluster == h.Cluster })
	if i >= 0 {
		j.hindrances[i] = h
	} else {
		j.hindrances = append(j.hindrances, h)
	}
	j.hindrances = slices.DeleteFunc(j.hindrances,
		func(b Hindered) bool {
			return !b.Ended.IsZero() && max(h.At.Sub(b.Ended), h.Ended.Sub(b.Ended)) > time.Minute
		})
}

// couldReact reports whether Heliostat had the time for a reading and a patch, without a fault that prevents one of
// them. After such a fault it pauses for at most as long again, because each pause is twice the last one.
func (j *Judge) couldReact(cluster string, from, to time.Time) bool {
	hindrances := slices.Clone(j.hindrances)
	slices.SortFunc(hindrances, func(a, b Hindered) int { return a.At.Compare(b.At) })
	for _, h := range hindrances {
		if h.Cluster != "" && h.Cluster != cluster {
			continue
		}
		if h.At.Sub(from) > certain {
			break
		}
		if h.Ended.IsZero() {
			return false
		}
		if over := h.Ended.Add(h.Ended.Sub(h.At) + certain); over.After(from) {
			from = over
		}
	}
	return to.Sub(from) > certain
}
