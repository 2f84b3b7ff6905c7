package printer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// NotRead says that Ray's state of a RayCluster has not been read, or is old; "" if it is current.
func NotRead(c apiv1.Cluster) string {
	why := ""
	if c.Error != "" {
		why = ": " + c.Error
	}
	switch {
	case c.DataAgeSeconds == nil:
		return fmt.Sprintf("the state of Ray in %s/%s has not been read yet%s", c.Namespace, c.Name, why)
	case c.Error != "":
		return fmt.Sprintf("the state of Ray in %s/%s was last read %s ago, so this answer is that old%s", c.Namespace,
			c.Name, ageText(c.DataAgeSeconds), why)
	}
	return ""
}

// WriteFleet writes a line for each RayCluster.
func WriteFleet(p *Page, list apiv1.ClusterList) {
	if len(list.Items) == 0 {
		p.Line("", "No RayClusters found: there are none, or none in namespaces where you may list them.")
		return
	}
	t := newTable("NAMESPACE", "NAME", "MODE", "WORKERS", "WAITING", "UNMET", "FINDINGS", "DATA", "SHARD*", "STATUS")
	for _, c := range list.Items {
		waiting, unmet := any(c.Waiting), any(c.Unmet)
		if c.DataAgeSeconds == nil { // Ray has never been read
			waiting, unmet = "", ""
		}
		t.Add(c.Namespace, c.Name, modeText(c.Mode, c.Frozen), fmt.Sprintf("%d/%d", c.Workers.Ready, c.Workers.Desired),
			waiting, unmet, c.Findings, ageText(c.DataAgeSeconds), c.Shard, stateOfSummary(c))
	}
	t.Write(p)
}

// modeText returns the mode to show: a freeze takes precedence over every mode.
func modeText(mode apiv1.Mode, frozen bool) string {
	if frozen {
		return "frozen"
	}
	return string(mode)
}

func stateOfSummary(c apiv1.ClusterSummary) string {
	switch {
	case c.Error != "":
		return c.Error
	case c.LastCycle == nil:
		return "no decision yet"
	case c.Frozen:
		return "frozen"
	case c.WaitingInShadow != "":
		return "would launch for pending demand; see autoscaler status " + c.Namespace + "/" + c.Name
	case c.Unmet > 0:
		return "demand is not served"
	}
	return "OK"
}

// ageText writes how old something is; "" is unknown.
func ageText(seconds *float64) string {
	if seconds == nil {
		return ""
	}
	return planner.Span(*seconds)
}

// WriteCluster writes one cluster for people: its state, groups, GPUs, demand, findings and changes.
func WriteCluster(p *Page, c apiv1.Cluster) {
	writeClusterHead(p, c)
	writeClusterGroups(p, c.Groups)
	writeClusterGPUs(p, c.Groups)
	writeDepartures(p, c.Departures)
	writeArrivals(p, c)
	writePolicy(p, c.CapacityPolicy)
	p.Line("", "")
	if c.DataAgeSeconds == nil {
		p.Line("", "Demand: unknown, because Ray has not been read yet")
	} else {
		writeDemand(p, c.Summary, c.OptIn == nil)
		writeUnmet(p, c.Unmet, nil, c.OptIn == nil)
	}
	writeFindings(p, c.Findings)
	writeClusterChanges(p, c.Decisions)
}

func writeClusterHead(p *Page, c apiv1.Cluster) {
	p.Line("", fmt.Sprintf("%s/%s: %s (%s)", c.Namespace, c.Name, modeText(c.Mode, c.Frozen), c.ModeReason))
	last := "no decision yet"
	if c.LastCycle != nil {
		last = fmt.Sprintf("last decision %s, which took %s", Moment(*c.LastCycle), planner.Span(c.CycleSeconds))
	}
	age := "unknown"
	if c.DataAgeSeconds != nil {
		age = ageText(c.DataAgeSeconds) + " old"
	}
	p.Line("  ", last+"; Ray's state is "+age)
	if c.Shard != "" {
		p.Line("  ", "decided by shard "+c.Shard)
	}
	if c.OptIn != nil && c.ScaledBy != "" {
		p.Line("  ", "ASKED is what "+c.ScaledBy+" wants, the last writer of the worker groups")
	}
	frozen := ""
	if c.Frozen {
		frozen = "Heliostat writes nothing until it is unfrozen"
	}
	for _, note := range []struct{ what, text string }{
		{"frozen", frozen}, {"paused", c.Paused}, {"error", c.Error}, {"waiting", waitingInShadow(c.OptIn)},
	} {
		if note.text != "" {
			p.Line("  ", note.what+": "+note.text)
		}
	}
}

// waitingInShadow says what Heliostat would launch for pending demand of a RayCluster that it does not scale, and how
// to enable that; it is empty if there is nothing to say.
func waitingInShadow(optIn *apiv1.OptIn) string {
	if optIn == nil || optIn.Waiting == "" {
		return ""
	}
	return optIn.Waiting + "; " + optIn.Allow
}

func writeClusterGroups(p *Page, groups []apiv1.Group) {
	p.Line("", "")
	if len(groups) == 0 {
		p.Line("", "No worker groups.")
		return
	}
	t := newTable("GROUP", "HAS", "WANTS", "ASKED", "MIN", "MAX", "READY", "IDLE", "STARTING", "LEAVING", "WHY")
	for _, g := range groups {
		why := reasonsOf(g)
		if g.Closed != "" {
			why = "closed: " + g.Closed
		}
		t.Add(g.Name, g.Current, g.Desired, g.Asked, g.Min, most(g.Max), g.Ready, g.Idle, g.Starting, g.Leaving, why)
	}
	t.Write(p)
}

// most formats a maximum; KubeRay writes the largest number if there is none.
func most(n int) string {
	if n >= 1<<31-1 {
		return "none"
	}
	return strconv.Itoa(n)
}

func reasonsOf(g apiv1.Group) string {
	texts := make([]string, 0, len(g.Reasons))
	for _, r := range g.Reasons {
		texts = append(texts, r.Message)
	}
	return strings.Join(texts, "; ")
}

// writeClusterGPUs shows how many GPUs a worker has according to each source, for groups with any GPUs.
func writeClusterGPUs(p *Page, groups []apiv1.Group) {
	t := newTable("GPUS OF A WORKER", "DECLARED", "DERIVED", "REPORTED", "RAY", "NOTE")
	for _, g := range groups {
		n := g.NumGpus
		if !positive(n.Declared, n.Derived, n.Reported, n.Ray) {
			continue
		}
		note := n.Sync.Why
		if n.Mismatch {
			note = strings.Join(NonEmpty("mismatch", note), "; ")
		}
		t.Add(g.Name, known(n.Declared), known(n.Derived), known(n.Reported), known(n.Ray), note)
	}
	t.WriteApart(p)
}

func positive(amounts ...*raydemand.Amount) bool {
	return slices.ContainsFunc(amounts, func(a *raydemand.Amount) bool { return a != nil && *a > 0 })
}

const mostShownChanges = 10

func writeClusterChanges(p *Page, changes []apiv1.Decision) {
	t := newTable("LAST CHANGES", "ACTION", "GROUP", "REPLICAS", "WHY")
	for _, c := range changes[:min(len(changes), mostShownChanges)] {
		replicas := ""
		if c.From != c.To {
			replicas = fmt.Sprintf("%d → %d", c.From, c.To)
		}
		why := c.Reason.Message
		if c.Action == "drain" && len(c.Pods) > 0 {
			why = strings.Join(c.Pods, ", ") + ": " + why // all other changes name their pods themselves
		}
		t.Add(Ago(c.At, p.Now), c.Action, c.Group, replicas, why)
	}
	t.WriteApart(p)
}
