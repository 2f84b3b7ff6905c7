package verdict

import (
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
	named   map[string]bool
	lowered map[string]time.Time
	latest  State
	// busySince is since when a pod is busy without a break and without a drain.
	busySince map[string]time.Time
	demands   []demand
	alive     []demand // the workers that take part in Ray, or cannot any more
	reported  map[string]bool
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
	c.latest = s
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
	c.remember(s.At, units, alive, j.bounds.Lag)
	if j.phase == Rest {
		j.settled(s.At, c)
	}
}

// end judges the end of a worker.
func (j *Judge) end(e End) {
	c := j.cluster(e.Cluster)
	named := c.named[e.Pod]
	delete(c.busySince, e.Pod)
	delete(c.named, e.Pod)
	j.counts.Ends++
	if !e.Busy {
		return
	}
	j.counts.BusyEnds++
	why := ""
	switch {
	case e.Cause != Deleted:
	case named:
		why = "Heliostat named it"
	case e.At.Sub(c.lowered[e.Group]) > excuse:
		why = "it was not named, and no person lowered the group"
	}
	if why != "" {
		j.fail(e.At, BusyRemoved, e.Cluster, "pod %s of group %s ended with its work; %s", e.Pod, e.Group, why)
	}
}
