package scenario

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
)

// Outcome writes the decisions of a plan, with codes and sentences: one line for each group's reason, each pod to stop,
// each unserved demand, each owned request, each entry of warm capacity and each finding.
func Outcome(p *model.Plan) []string {
	var lines []string
	for i := range p.Groups {
		lines = append(lines, groupOutcome(&p.Groups[i])...)
	}
	for _, t := range p.Terminate {
		line := fmt.Sprintf("stop %s of %s %s", quote(t.Pod), quote(t.Group), t.Reason)
		if t.Busy {
			line += " busy"
		}
		lines = append(lines, with(line, t.Message))
	}
	unmet := func(kind string, requests []model.UnmetRequest) {
		for i := range requests {
			u := &requests[i]
			line := kind + requestText(&u.Request)
			if u.AskedBy != "" {
				line += " of " + u.AskedBy
			}
			lines = append(lines, with(line+" "+u.Reason.Code, u.Reason.Message))
		}
	}
	unmet("unmet ", p.InfeasibleRequests)
	for i := range p.InfeasibleGangRequests {
		u := &p.InfeasibleGangRequests[i]
		lines = append(lines, with("unmet "+gangText(&u.Gang)+" "+u.Reason.Code, u.Reason.Message))
	}
	unmet("unmet request_resources ", p.InfeasibleRequestResources)
	for i := range p.Requests {
		lines = append(lines, requestOutcome(&p.Requests[i]))
	}
	for i := range p.Warm {
		lines = append(lines, warmOutcome(&p.Warm[i]))
	}
	for _, f := range p.Findings {
		lines = append(lines, with("finding "+f.Code, strings.TrimSpace(f.Object+" "+f.Field)))
	}
	if p.Price != nil {
		lines = append(lines, fmt.Sprintf("price %.6g", *p.Price))
	}
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return lines
}

// groupOutcome writes the group's size next to its first reason.
func groupOutcome(g *model.GroupPlan) []string {
	size := fmt.Sprintf("%s stays %d", quote(g.Name), g.Current)
	if g.Current != g.Desired {
		size = fmt.Sprintf("%s %d → %d", quote(g.Name), g.Current, g.Desired)
	}
	if g.Held > 0 {
		size += fmt.Sprintf(" held %d", g.Held)
	}
	if g.BelowMin > 0 {
		size += fmt.Sprintf(" below-min %d", g.BelowMin)
	}
	if len(g.Reasons) == 0 {
		return []string{size}
	}
	var lines []string
	for i, r := range g.Reasons {
		if i > 0 {
			size = quote(g.Name)
		}
		lines = append(lines, with(size+" "+r.Code, r.Message))
	}
	return lines
}

func requestOutcome(r *model.RequestPlan) string {
	name := "owned " + quote(r.ID)
	if r.Plain {
		name = "keep"
	}
	line := fmt.Sprintf("%s %s, %d asked, %d served, %d waiting, %s",
		name, r.State, r.Asked, r.Served, r.Waiting, r.Reason.Code)
	return with(line, r.Reason.Message)
}

func with(line, message string) string {
	if message == "" {
		return line
	}
	return line + ": " + message
}
