package printer

import (
	"encoding/json"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
)

// Moment writes when something was. As in kubectl, what describes one object has times, and tables have ages.
func Moment(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// Ago writes how long before now something was.
func Ago(at, now time.Time) string { return planner.Span(now.Sub(at).Seconds()) + " ago" }

// WriteExplanation writes an explanation, with a line for each detail.
func WriteExplanation(p *Page, e planner.Explanation) {
	p.Line("", e.About+": "+codeAndMessage(e.Code, e.Message))
	for _, d := range e.Details {
		p.Line("  ", d.About+": "+codeAndMessage(d.Code, d.Message))
	}
}

// writePolicy writes where the capacity policy is, what it says, and what becomes of each entry; nothing if there is
// none.
func writePolicy(p *Page, c *apiv1.CapacityPolicyState) {
	if c == nil {
		return
	}
	written, _ := json.Marshal(c.Policy) // it came as JSON
	p.Line("", "")
	p.Line("", "Capacity policy: "+c.Source)
	p.Line("  ", string(written))
	if c.Fault != "" {
		p.Line("  ", "cannot be read, so it wants nothing: "+c.Fault)
	}
	for i := range c.Warm {
		p.Line("  ", c.Warm[i].Name+": "+codeAndMessage(c.Warm[i].Reason.Code, c.Warm[i].Reason.Message))
	}
	for _, n := range c.WarmNodes {
		p.Line("  ", n.Name+": "+codeAndMessage(string(n.Code), n.Message))
	}
	for _, text := range NonEmpty(c.Idle, c.NotScaled) {
		p.Line("  ", text)
	}
}
