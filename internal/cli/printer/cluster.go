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

// WriteFleet writes a line for each RayCluster of a namespace, or of all if it is empty.
func WriteFleet(p *Page, namespace string, list apiv1.ClusterList) {
	if len(list.Items) == 0 {
		p.WriteString("No RayClusters found" + onlyIn(namespace))
		return
	}
	t := newTable(p, "@NAMESPACE", "@NAME", "MODE", "#WORKERS", "#WAITING", "#UNMET", "#FINDINGS", "#DATA")
	divided := slices.ContainsFunc(list.Items, func(c apiv1.ClusterSummary) bool { return c.Shard != "" })
	if divided {
		t.Columns = append(t.Columns, columnOf("SHARD"))
	}
	t.Columns = append(t.Columns, columnOf("~STATUS"))
	for _, c := range list.Items {
		waiting, unmet := any(c.Waiting), any(countCell(c.Unmet, Bad))
		if c.DataAgeSeconds == nil { // Ray has never been read
			waiting, unmet = unknownCell, unknownCell
		}
		cells := []any{c.Namespace, c.Name, modeText(c.Mode, c.Frozen),
			fmt.Sprintf("%d/%d", c.Workers.Ready, c.Workers.Desired), waiting, unmet,
			countCell(c.Findings, Warn), ageText(c.DataAgeSeconds)}
		if divided {
			cells = append(cells, c.Shard)
		}
		t.Add(append(cells, stateOfSummary(c))...)
	}
	t.Write(p)
}

// onlyIn ends a sentence that says that nothing was found: it names the only namespace that was searched, if there is
// one.
func onlyIn(namespace string) string {
	if namespace == "" {
		return ".\n"
	}
	return " in namespace " + namespace + ". Omit -n to search all namespaces.\n"
}

// modeText returns the mode to show: a freeze takes precedence over every mode.
func modeText(mode apiv1.Mode, frozen bool) string {
	if frozen {
		return "frozen"
	}
	return string(mode)
}

// countCell highlights numbers other than 0.
func countCell(n int, s Style) Cell {
	if n == 0 {
		s = Plain
	}
	return Cell{Text: strconv.Itoa(n), Style: s}
}

func stateOfSummary(c apiv1.ClusterSummary) Cell {
	switch {
	case c.Error != "":
		return Cell{Text: c.Error, Style: Bad}
	case c.LastCycle == nil:
		return Cell{Text: "no decision yet", Style: Warn}
	case c.Frozen:
		return Cell{Text: "frozen", Style: Warn}
	case c.WaitingInShadow != "":
		return Cell{Text: "would launch for pending demand; see " + statusCommand(c), Style: Warn}
	case c.Unmet > 0:
		return Cell{Text: "demand is not served", Style: Warn}
	}
	return Cell{Text: "OK", Style: Good}
}

// statusCommand is the command that shows one RayCluster.
func statusCommand(c apiv1.ClusterSummary) string {
	return "autoscaler status " + c.Namespace + "/" + c.Name
}

// ageText writes how old something is, in seconds; - is unknown.
func ageText(seconds *float64) string {
	if seconds == nil {
		return unknownCell
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
		writeUnmet(p, unmetPlan(c.Unmet), c.OptIn == nil)
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
	t := newTable(p, "@GROUP", "#HAS", "#WANTS", "#MIN", "#MAX", "#READY", "#IDLE", "#STARTING", "#LEAVING", "~WHY")
	for _, g := range groups {
		wants := Cell{Text: strconv.Itoa(g.Desired)}
		if g.Desired != g.Current {
			wants.Style = Good
		}
		why := Cell{Text: reasonsOf(g)}
		if g.Closed != "" {
			why = Cell{Text: "closed: " + g.Closed, Style: Warn}
		}
		t.Add(g.Name, g.Current, wants, g.Min, most(g.Max), g.Ready, g.Idle, g.Starting, g.Leaving, why)
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
	t := newTable(p, "@GPUS OF A WORKER", "#DECLARED", "#DERIVED", "#REPORTED", "#RAY", "~NOTE")
	for _, g := range groups {
		n := g.NumGpus
		if !positive(n.Declared, n.Derived, n.Reported, n.Ray) {
			continue
		}
		note := Cell{Text: n.Sync.Why}
		if n.Mismatch {
			note = Cell{Text: strings.TrimSpace("mismatch; " + n.Sync.Why), Style: Warn}
		}
		t.Add(g.Name, amountText(n.Declared), amountText(n.Derived), amountText(n.Reported), amountText(n.Ray), note)
	}
	t.WriteApart(p)
}

func positive(amounts ...*raydemand.Amount) bool {
	for _, a := range amounts {
		if a != nil && *a > 0 {
			return true
		}
	}
	return false
}

func amountText(a *raydemand.Amount) string {
	if a == nil {
		return unknownCell
	}
	return a.String()
}

// unmetPlan returns a plan with only its unmet demand.
func unmetPlan(all []apiv1.Unmet) planner.Plan {
	var plan planner.Plan
	for _, u := range all {
		request := planner.UnmetRequest{
			Request: raydemand.Request{
				Bundle:    u.Resources,
				Count:     u.Count,
				Selectors: u.LabelSelectors,
				Slice:     u.Slice,
				Moving:    u.Moving,
			},
			AskedBy:  u.AskedBy,
			OverREST: u.OverREST,
			Reason:   u.Reason,
		}
		switch {
		case u.Gang != nil:
			plan.InfeasibleGangRequests = append(plan.InfeasibleGangRequests,
				planner.UnmetGang{Gang: *u.Gang, Reason: u.Reason})
		case u.Kind == apiv1.UnmetKindRequestResources:
			plan.InfeasibleRequestResources = append(plan.InfeasibleRequestResources, request)
		default:
			plan.InfeasibleRequests = append(plan.InfeasibleRequests, request)
		}
	}
	return plan
}

// mostShownChanges is how many changes are shown.
const mostShownChanges = 10

func writeClusterChanges(p *Page, changes []apiv1.Decision) {
	t := newTable(p, "#LAST CHANGES", "ACTION", "@GROUP", "REPLICAS", "~WHY")
	for _, c := range changes[:min(len(changes), mostShownChanges)] {
		replicas := ""
		if c.From != c.To {
			replicas = fmt.Sprintf("%d → %d", c.From, c.To)
		}
		why := c.Reason.Message
		if c.Action == "drain" && len(c.Pods) > 0 {
			why = strings.Join(c.Pods, ", ") + ": " + why // all other changes name their pods themselves
		}
		t.Add(Ago(c.At, p.Now()), c.Action, c.Group, replicas, why)
	}
	t.WriteApart(p)
}
