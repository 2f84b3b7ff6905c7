package capacity

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/raydemand"
)

const (
	// longestWarning bounds how long before its end a RayCluster is announced; a short time without work is announced
	// for a quarter of it.
	longestWarning = 15 * time.Minute
	// unseen is how long Ray may be unread before something may have run in between.
	unseen = 2 * time.Minute
	// lookAgain separates two looks at what lives in the cluster, which read whole tables of the GCS.
	lookAgain = time.Minute
	// fresh is how old the last look may be when the RayCluster ends.
	fresh = 5 * time.Second
)

// Warning is how long before its end a RayCluster is announced.
func Warning(after time.Duration) time.Duration { return min(after/4, longestWarning) }

// IdleClock measures for how long one RayCluster has been without work. Losing it only delays what waits for it.
type IdleClock struct {
	session     string
	since, seen time.Time
	// announced is when the end was announced; zero if it was not.
	announced time.Time
	// looked is when what lives in the cluster was last read, and unknown why that failed.
	looked  time.Time
	unknown string
	// held is what last lived in the cluster although it had no work.
	held string
}

// What the loop does next. Nothing: the text says why, and when there is a step. Look: read what lives in the cluster,
// and call Looked. Announce: announce the end. End: suspend the RayCluster.
const (
	Nothing = iota
	Look
	Announce
	End
)

// IdleStep is the next step.
type IdleStep struct {
	Do int
	// Since is when the time without work began.
	Since time.Time
	// Text explains the step to users.
	Text string
}

// Work returns what shows that a RayCluster has work, or that a user wants it; empty if nothing does.
func Work(v *observe.View) string {
	demand := &v.State.Demand
	switch {
	case len(demand.Requests)+len(demand.Gangs) > 0:
		return "demand waits"
	case len(demand.Constraint) > 0:
		return "request_resources holds capacity"
	}
	if requested := Requested(&v.Cluster, v.Now); requested != "" {
		return requested
	}
	if warm := wantsWarm(&v.Cluster, v.Now); warm != "" {
		return warm
	}
	for i := range v.State.Nodes {
		n := &v.State.Nodes[i]
		switch {
		case n.Status == raydemand.Dead || n.Status == raydemand.Idle:
		case n.Head:
			return "the head is in use"
		case n.Status != raydemand.Draining || !n.Available.Equal(n.Total):
			return "worker " + n.Instance + " is in use"
		}
	}
	return ""
}

// Requested returns which request over REST holds capacity of a RayCluster; empty if none does.
func Requested(cluster *nodepool.Cluster, now time.Time) string {
	if len(cluster.RequestResources) > 0 {
		return "a request over REST holds capacity"
	}
	for i := range cluster.Owned {
		if r := &cluster.Owned[i]; !r.Deleting && !r.Expired(now) {
			return fmt.Sprintf("request %s of %s holds capacity", r.ID, r.Owner)
		}
	}
	return ""
}

// wantsWarm says that the capacity policy keeps something warm now; empty if it does not.
func wantsWarm(cluster *nodepool.Cluster, now time.Time) string {
	if cluster.Policy != nil && cluster.Policy.KeepsAt(now) {
		return "its capacity policy keeps capacity warm now"
	}
	return ""
}

// Wanted returns what a suspended RayCluster is resumed for; empty if nothing wants it. A request that does not count
// would resume it for nothing.
func Wanted(cluster *nodepool.Cluster, now time.Time) string {
	if len(cluster.RequestResources) > 0 {
		return "a request over REST wants capacity"
	}
	for i := range cluster.Owned {
		if r := &cluster.Owned[i]; r.Counts(cluster.UID, now) {
			return fmt.Sprintf("request %s of %s wants capacity", r.ID, r.Owner)
		}
	}
	return wantsWarm(cluster, now)
}

// Prevented returns what keeps a RayCluster from ever being suspended; empty if nothing does.
func Prevented(cluster *nodepool.Cluster) string {
	switch {
	case cluster.Owner.Kind != "":
		return fmt.Sprintf("%s %s owns it", cluster.Owner.Kind, cluster.Owner.Name)
	case cluster.OwnedBy != "":
		return cluster.OwnedBy + " owns it"
	case cluster.Queue.Queued():
		return "Kueue queues it, and would start it again"
	}
	return cluster.Unknown()
}

// Observe notes one reading. doubt says why it does not prove that nothing runs; empty if it does.
func (c *IdleClock) Observe(v *observe.View, doubt string) {
	switch work := Work(v); {
	case doubt != "":
		return // unseen bounds how long a doubt may last
	case v.State.Session != c.session, work != "", v.Now.Sub(c.seen) > unseen:
		*c = IdleClock{session: v.State.Session, held: c.held}
		if c.since = v.Now; work != "" {
			c.held = ""
		}
	}
	c.seen = v.Now
}

// Next returns the next step for a RayCluster that is not suspended.
func (c *IdleClock) Next(v *observe.View, after time.Duration, doubt string) IdleStep {
	switch prevented, work := Prevented(&v.Cluster), Work(v); {
	case prevented != "":
		c.announced = time.Time{}
		return IdleStep{Text: "not suspended: " + prevented}
	case cmp.Or(doubt, work) != "":
		return IdleStep{Text: "not suspended: " + cmp.Or(doubt, work)}
	}
	now, end, warning := v.Now, c.since.Add(after), Warning(after)
	step := IdleStep{Since: c.since}
	if now.Before(end.Add(-warning)) {
		step.Text = fmt.Sprintf("suspended after %s without work; without work for %s", capacity.Duration(after),
			planner.Span(now.Sub(c.since).Seconds()))
		if c.held != "" {
			step.Text += ", since when " + c.held
		}
		return step
	}
	switch old := now.Sub(c.looked) >= lookAgain; {
	case (c.announced.IsZero() || c.unknown != "") && old:
		step.Do = Look
		return step
	case c.unknown != "":
		step.Text = "not suspended: what lives in it cannot be seen: " + c.unknown
		return step
	case c.announced.IsZero():
		c.announced, step.Do = now, Announce
	}
	if announced := c.announced.Add(warning); announced.After(end) {
		end = announced
	}
	step.Text = fmt.Sprintf("suspended at %s UTC: without work since %s", moment(end), moment(c.since))
	switch {
	case step.Do == Announce || now.Before(end):
	case now.Sub(c.looked) > fresh:
		step.Do = Look
	default:
		step.Do = End
	}
	return step
}

// Looked notes what lives in the cluster. Whatever does counts as work from now: time without work begins anew.
func (c *IdleClock) Looked(now time.Time, found raydemand.Occupants, err error) {
	c.looked, c.unknown = now, ""
	if err != nil {
		c.unknown, c.announced = err.Error(), time.Time{}
		return
	}
	what := [...]string{"placement groups were there", "actors were alive", "drivers were connected"}
	for i, living := range []raydemand.Living{found.PlacementGroups, found.Actors, found.Drivers} {
		if living.Count > 0 {
			held := what[i] + " (" + strings.Join(living.Names, ", ") + ")"
			*c = IdleClock{session: c.session, since: now, seen: c.seen, held: held}
		}
	}
}

func moment(at time.Time) string { return at.UTC().Format("2006-01-02 15:04") }
