package printer

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
)

// Moment writes when something was. As in kubectl, what describes one object has times, and tables have ages.
func Moment(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// Ago writes how long before now something was.
func Ago(at, now time.Time) string { return planner.Span(now.Sub(at).Seconds()) + " ago" }

// WriteExplanation writes an explanation, with a line for each detail.
func WriteExplanation(out io.Writer, e planner.Explanation) error {
	var p Page
	p.Line("", e.About+": "+codeAndMessage(e.Code, e.Message))
	for _, d := range e.Details {
		p.Line("  ", d.About+": "+codeAndMessage(d.Code, d.Message))
	}
	_, err := io.WriteString(out, p.String())
	return err
}

// Frozen is the answer of freeze and unfreeze.
type Frozen struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Frozen    bool   `json:"frozen"`
}

// WriteFrozen says whether a cluster is frozen.
func WriteFrozen(out io.Writer, f Frozen) error {
	state := "frozen: nothing is written to it"
	if !f.Frozen {
		state = "not frozen"
	}
	_, err := fmt.Fprintf(out, "%s/%s is %s\n", f.Namespace, f.Name, state)
	return err
}

// Resumed says whether a cluster is suspended after it was resumed.
type Resumed struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Suspended bool   `json:"suspended"`
}

// WriteResumed says whether a cluster is suspended.
func WriteResumed(out io.Writer, r Resumed) error {
	state := "not suspended: the operator starts its head"
	if r.Suspended {
		state = "suspended"
	}
	_, err := fmt.Fprintf(out, "%s/%s is %s\n", r.Namespace, r.Name, state)
	return err
}

// Versions are the versions of client and server. Server is nil if none answered.
type Versions struct {
	Client apiv1.Build  `json:"client"`
	Server *apiv1.Build `json:"server,omitempty"`
}

// WriteVersions writes a line for client and server each.
func WriteVersions(out io.Writer, both Versions) error {
	if _, err := fmt.Fprintln(out, "client: "+BuildLine(both.Client)); err != nil || both.Server == nil {
		return err
	}
	_, err := fmt.Fprintln(out, "server: "+BuildLine(*both.Server))
	return err
}

// BuildLine writes "heliostat VERSION, revision REVISION (modified), go RELEASE".
func BuildLine(b apiv1.Build) string {
	line := "heliostat"
	if b.Version != "" {
		line += " " + b.Version
	}
	if b.Revision != "" {
		line += ", revision " + b.Revision
	}
	if b.Modified {
		line += " (modified)"
	}
	return line + ", " + b.Go
}

// Policy is the capacity policy of a cluster, and what becomes of it.
type Policy struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	apiv1.CapacityPolicyState
}

// WritePolicy writes where the policy is, what it says, and what becomes of each entry.
func WritePolicy(out io.Writer, p Policy) error {
	var text strings.Builder
	if p.Source == "" {
		fmt.Fprintf(&text, "%s/%s has no capacity policy\n", p.Namespace, p.Name)
	} else {
		written, err := json.Marshal(p.Policy)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s/%s: %s\n  %s\n", p.Namespace, p.Name, p.Source, written)
	}
	line := func(format string, arguments ...any) {
		fmt.Fprintln(&text, "  "+Printable(fmt.Sprintf(format, arguments...)))
	}
	if p.Fault != "" {
		line("cannot be read, so it wants nothing: %s", p.Fault)
	}
	for i := range p.Warm {
		w := &p.Warm[i]
		line("%s: %s: %s", w.Name, w.Reason.Code, w.Reason.Message)
	}
	for _, n := range p.WarmNodes {
		line("%s: %s: %s", n.Name, n.Code, n.Message)
	}
	if p.Idle != "" {
		line("idle: %s", p.Idle)
	}
	if p.NotScaled != "" {
		line("%s", p.NotScaled)
	}
	_, err := io.WriteString(out, text.String())
	return err
}
