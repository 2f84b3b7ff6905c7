package verdict

import (
	"maps"
	"slices"
	"time"
)

// settled judges that all work is served that can be, and that no worker stays without a reason.
func (j *Judge) settled(at time.Time, c *cluster) {
	if slices.Contains(j.bounds.Shadow, c.name) || !c.known {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.groups)) {
		j.settledGroup(at, c, c.groups[name])
	}
}

func (j *Judge) settledGroup(at time.Time, c *cluster, group Group) {
	busy, idle := c.latest.count(group.Name)
	waiting, smallest := c.latest.Waiting[group.Name], max(1, c.latest.Smallest[group.Name])
	want := max(group.Min, busy)
	switch {
	case waiting > 0 && busy+smallest <= group.Max:
		j.once(at, c, Unserved, group.Name, "group %s: %d wait, at least %d together; %d are busy, at most %d",
			group.Name, waiting, smallest, busy, group.Max)
	case idle > 0 && busy+idle > group.Min:
		j.once(at, c, Superfluous, group.Name, "group %s: %d busy and %d idle workers, the minimum is %d", group.Name,
			busy, idle, group.Min)
	case group.Replicas != want:
		j.once(at, c, Superfluous, group.Name, "group %s: %d replicas, want %d", group.Name, group.Replicas, want)
	}
}

// count counts the workers of a group that do not drain.
func (s State) count(group string) (busy, idle int64) {
	for _, w := range s.Workers {
		switch {
		case w.Group != group || w.Draining:
		case w.Busy:
			busy++
		default:
			idle++
		}
	}
	return busy, idle
}

// once reports a violation once in a phase.
func (j *Judge) once(at time.Time, c *cluster, rule Rule, group, format string, values ...any) {
	if key := string(rule) + "/" + group; !c.reported[key] {
		c.reported[key] = true
		j.fail(at, rule, c.name, format, values...)
	}
}
