package printer

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

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
func WriteFleet(namespace string, as Look) func(io.Writer, apiv1.ClusterList) error {
	return func(out io.Writer, list apiv1.ClusterList) error {
		if len(list.Items) == 0 && !as.Begun() {
			_, err := io.WriteString(out, "No RayClusters found"+onlyIn(namespace))
			return err
		}
		t := Table{
			Look: as,
			Columns: []Column{Name("NAMESPACE"), Name("NAME"), Text("MODE"),
				Number("WORKERS"), Number("WAITING"), Number("UNMET"), Number("FINDINGS"),
				Number("DATA")},
		}
		divided := slices.ContainsFunc(list.Items, func(c apiv1.ClusterSummary) bool { return c.Shard != "" })
		if divided {
			t.Columns = append(t.Columns, Text("SHARD"))
		}
		t.Columns = append(t.Columns, Prose("STATUS"))
		for _, c := range list.Items {
			waiting, unmet := Cell{Text: strconv.FormatInt(c.Waiting, 10)}, countCell(c.Unmet, Bad)
			if c.DataAgeSeconds == nil { // Ray has never been read
				waiting, unmet = Cell{Text: unknownCell}, Cell{Text: unknownCell}
			}
			cells := []Cell{{Text: c.Namespace}, {Text: c.Name}, {Text: modeText(c.Mode, c.Frozen)},
				{Text: fmt.Sprintf("%d/%d", c.Workers.Ready, c.Workers.Desired)}, waiting, unmet,
				countCell(c.Findings, Warn), {Text: ageText(c.DataAgeSeconds)}}
			if divided {
				cells = append(cells, Cell{Text: c.Shard})
			}
			t.Add(append(cells, stateOfSummary(c))...)
		}
		var p Page
		t.Write(&p)
		_, err := io.WriteString(out, p.String())
		return err
	}
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
func WriteCluster(as Look, now func() time.Time) func(io.Writer, apiv1.Cluster) error {
	return func(out io.Writer, c apiv1.Cluster) error {
		var p Page
		writeClusterHead(&p, c)
		writeClusterGroups(&p, c.Groups, as)
		writeClusterGPUs(&p, c.Groups, as)
		writeDepartures(&p, c.Departures, as)
		writeArrivals(&p, c, as, now())
		writeGuards(&p, c)
		p.Line("", "")
		if c.DataAgeSeconds == nil {
			p.Line("", "Demand: unknown, because Ray has not been read yet")
		} else {
			writeDemand(&p, c.Summary, c.OptIn == nil)
			writeUnmet(&p, unmetPlan(c.Unmet), c.OptIn == nil)
		}
		writeFindings(&p, c.Findings)
		writeClusterChanges(&p, c.Decisions, as, now())
		_, err := io.WriteString(out, p.String())
		return err
	}
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

func writeClusterGroups(p *Page, groups []apiv1.Group, as Look) {
	p.Line("", "")
	if len(groups) == 0 {
		p.Line("", "No worker groups.")
		return
	}
	t := Table{
		Look: as,
		Columns: []Column{Name("GROUP"), Number("HAS"), Number("WANTS"), Number("MIN"),
			Number("MAX"), Number("READY"), Number("IDLE"), Number("STARTING"),
			Number("LEAVING"), Prose("WHY")},
	}
	for _, g := range groups {
		wants := Cell{Text: strconv.Itoa(g.Desired)}
		if g.Desired != g.Current {
			wants.Style = Good
		}
		why := Cell{Text: reasonsOf(g)}
		if g.Closed != "" {
			why = Cell{Text: "closed: " + g.Closed, Style: Warn}
		}
		t.Add(Cell{Text: g.Name}, numberCell(g.Current), wants, numberCell(g.Min), most(g.Max),
			numberCell(g.Ready), numberCell(g.Idle), numberCell(g.Starting), numberCell(g.Leaving), why)
	}
	t.Write(p)
}

func numberCell(n int) Cell { return Cell{Text: strconv.Itoa(n)} }

// most formats a maximum; KubeRay writes the largest number if there is none.
func most(n int) Cell {
	if n >= 1<<31-1 {
		return Cell{Text: "none"}
	}
	return numberCell(n)
}

func reasonsOf(g apiv1.Group) string {
	texts := make([]string, 0, len(g.Reasons))
	for _, r := range g.Reasons {
		texts = append(texts, r.Message)
	}
	return strings.Join(texts, "; ")
}

// writeClusterGPUs shows how many GPUs a worker has according to each source, for groups with any GPUs.
func writeClusterGPUs(p *Page, groups []apiv1.Group, as Look) {
	t := Table{
		Look: as,
		Columns: []Column{Name("GPUS OF A WORKER"), Number("DECLARED"), Number("DERIVED"),
			Number("REPORTED"), Number("RAY"), Prose("NOTE")},
	}
	for _, g := range groups {
		n := g.NumGpus
		if !positive(n.Declared, n.Derived, n.Reported, n.Ray) {
			continue
		}
		note := Cell{Text: n.Sync.Why}
		if n.Mismatch {
			note = Cell{Text: strings.TrimSpace("mismatch; " + n.Sync.Why), Style: Warn}
		}
		t.Add(Cell{Text: g.Name}, amountCell(n.Declared), amountCell(n.Derived), amountCell(n.Reported),
			amountCell(n.Ray), note)
	}
	if !t.Empty() {
		p.Line("", "")
		t.Write(p)
	}
}

func positive(amounts ...*raydemand.Amount) bool {
	for _, a := range amounts {
		if a != nil && *a > 0 {
			return true
		}
	}
	return false
}

func amountCell(a *raydemand.Amount) Cell {
	if a == nil {
		return Cell{Text: unknownCell}
	}
	return Cell{Text: a.String()}
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
			AskedBy: u.AskedBy,
			Reason:  u.Reason,
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

func writeClusterChanges(p *Page, changes []apiv1.Decision, as Look, now time.Time) {
	if len(changes) == 0 {
		return
	}
	p.Line("", "")
	t := Table{
		Look: as,
		Columns: []Column{Number("LAST CHANGES"), Text("ACTION"), Name("GROUP"),
			Text("REPLICAS"), Prose("WHY")},
	}
	for _, c := range changes[:min(len(changes), mostShownChanges)] {
		replicas := ""
		if c.From != c.To {
			replicas = fmt.Sprintf("%d → %d", c.From, c.To)
		}
		why := c.Reason.Message
		if c.Action == "drain" && len(c.Pods) > 0 {
			why = strings.Join(c.Pods, ", ") + ": " + why // all other changes name their pods themselves
		}
		t.Add(Cells(Ago(c.At, now), c.Action, c.Group, replicas, why)...)
	}
	t.Write(p)
}
