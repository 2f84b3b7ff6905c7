package outlook

import (
	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/planner"
)

// Needed returns how many workers of each group the demand needs: those that work, those on their way, those that the
// plan launches, and idle ones that a request keeps. Idle workers within their timeout, or below the minimum, are not
// needed.
func Needed(d *decision.Decision) map[string]int {
	needed := make(map[string]int, len(d.Snapshot.Groups))
	for i := range d.Snapshot.Groups {
		needed[d.Snapshot.Groups[i].Name] = 0
	}
	var stopped map[string]bool
	for _, t := range d.Plan.Terminate {
		if stopped == nil {
			stopped = map[string]bool{}
		}
		stopped[t.Pod] = true
	}
	for i := range d.Snapshot.Nodes {
		n := &d.Snapshot.Nodes[i]
		if _, known := needed[n.Group]; !known {
			continue
		}
		if n.State == planner.Running || n.State == planner.Pending && !stopped[n.Pod] {
			needed[n.Group]++
		}
	}
	for group, pods := range d.Plan.Launch {
		if _, known := needed[group]; known {
			needed[group] += pods
		}
	}
	// Nobody needs pods on their way to be free, and a forecast must not feed on itself.
	for i := range d.Plan.Warm {
		w := &d.Plan.Warm[i]
		if n, known := needed[w.Group]; known {
			needed[w.Group] = max(0, n-int(w.Coming+w.Launching)*hostsOf(d, w.Group))
		}
	}
	for _, r := range d.Plan.Requests {
		for _, g := range r.Groups {
			if n, known := needed[g.Name]; known && int64(n) < g.Pods {
				needed[g.Name] = int(g.Pods)
			}
		}
	}
	return needed
}

// hostsOf returns how many pods a replica of a group has.
func hostsOf(d *decision.Decision, group string) int {
	for i := range d.Snapshot.Groups {
		if d.Snapshot.Groups[i].Name == group {
			return max(d.Snapshot.Groups[i].NumOfHosts, 1)
		}
	}
	return 1
}
