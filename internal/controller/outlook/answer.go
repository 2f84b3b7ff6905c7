package outlook

import (
	"maps"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/membership"
	"heliostat.dev/heliostat/internal/forecast"
	"heliostat.dev/heliostat/internal/planner"
)

// Answer is what would be worth keeping ready of one RayCluster.
type Answer struct {
	// From and To are when the history begins and ends; both are zero if there is none.
	From, To time.Time
	// NotStored says why the history is lost when the process ends; empty if it is stored.
	NotStored string
	Groups    []Group
}

// Group is the answer about one worker group.
type Group struct {
	Name string
	// Needed is how many workers the demand needs now, Ready how many have joined Ray.
	Needed, Ready int
	// Start is how long its workers take to start. StartAssumed: it is not known yet.
	Start        time.Duration
	StartAssumed bool
	Costs        forecast.Costs
	// Priced: the costs are in the currency of the group's price, and not in hours of a worker.
	Priced bool
	forecast.Forecast
	Choice forecast.Choice
}

// assumedStart is how long workers take of which none has been seen to start.
const assumedStart = 5 * time.Minute

// choicesLast is how long the choice of a quantile lasts: it costs a replay of a week.
const choicesLast = time.Hour

// Of answers about the RayCluster of a decision.
func (o *Outlook) Of(d *decision.Decision, now time.Time) Answer {
	needed := Needed(d)
	c, a := o.begin(d)
	c.answering.Lock()
	defer c.answering.Unlock()
	for i := range d.Snapshot.Groups {
		g := &d.Snapshot.Groups[i]
		group := groupOf(d, g)
		group.Needed = needed[g.Name]
		model := modelOf(d, g, group.Start)
		series, read := o.series(c, g.Name)
		group.Choice = c.choose(g.Name, series, choice{of: model, costs: group.Costs, read: read}, now)
		group.Forecast = series.Keep(now, model, group.Choice)
		if model.Max == 0 && group.Workers > 0 {
			group.Workers, group.Why = 0, "its maxReplicas is 0"
		}
		a.Groups = append(a.Groups, group)
	}
	if len(c.choices) > len(a.Groups) { // of groups that are gone
		maps.DeleteFunc(c.choices, func(name string, _ choice) bool {
			return !slices.ContainsFunc(a.Groups, func(g Group) bool { return g.Name == name })
		})
	}
	return a
}

// begin returns what is remembered of a RayCluster, and an answer without groups.
func (o *Outlook) begin(d *decision.Decision) (*cluster, Answer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := Answer{NotStored: o.why, Groups: make([]Group, 0, len(d.Snapshot.Groups))}
	c := o.clusters[d.Cluster]
	if c == nil {
		c = &cluster{choices: map[string]choice{}}
	}
	if c.generated && a.NotStored == "" {
		a.NotStored = "the RayCluster belongs to a " + d.Kube.Owner.Kind + ", so its name does not come again"
	}
	a.From, a.To = c.history.Seen()
	return c, a
}

// series returns that of a group. Forecasts take too long to hold the lock, for which decisions wait.
func (o *Outlook) series(c *cluster, group string) (s forecast.Series, read bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return c.history.Series(group), c.read
}

// choose returns the choice for a group, which lasts for a while if it comes from the same.
func (c *cluster) choose(name string, series forecast.Series, from choice, now time.Time) forecast.Choice {
	kept, known := c.choices[name]
	if known && kept.of == from.of && kept.costs == from.costs && kept.read == from.read && now.Before(kept.until) {
		return kept.Choice
	}
	from.until, from.Choice = now.Add(choicesLast), series.Choose(from.of, from.costs)
	c.choices[name] = from
	return from.Choice
}

func groupOf(d *decision.Decision, g *planner.Group) Group {
	group := Group{Name: g.Name, Start: assumedStart, StartAssumed: true}
	if g.StartSeconds != nil {
		group.Start, group.StartAssumed = time.Duration(*g.StartSeconds*float64(time.Second)), false
	} else if whole := d.Kube.StartTimes[g.Name].Whole; len(whole) > 0 { // no worker had to wait for a node
		sorted := slices.Sorted(slices.Values(whole))
		group.Start, group.StartAssumed = time.Duration(sorted[len(sorted)/2])*time.Second, false
	}
	price := 0.0
	if g.Price != nil {
		price = *g.Price
	}
	group.Priced = price > 0
	group.Costs = forecast.CostsOf(price, d.Snapshot.Policy.WaitingCost)
	for i := range d.Snapshot.Nodes {
		n := &d.Snapshot.Nodes[i]
		if n.Group == g.Name && (n.State == planner.Running || n.State == planner.Idle) {
			group.Ready++
		}
	}
	return group
}

// modelOf returns the group as the model of a replay knows it, in pods.
func modelOf(d *decision.Decision, g *planner.Group, start time.Duration) forecast.Group {
	hosts := max(g.NumOfHosts, 1)
	return forecast.Group{
		Start:       start,
		IdleTimeout: membership.IdleTimeout(d.Kube, g.Name),
		Min:         clipped(g.Min) * hosts,
		Max:         clipped(g.Max) * hosts,
	}
}

// clipped bounds what the model multiplies.
func clipped(replicas int) int { return min(max(replicas, 0), forecast.MostWorkers) }
