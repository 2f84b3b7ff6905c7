package printer

import (
	"cmp"
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// WriteOptIn writes what would follow if Heliostat scaled a cluster.
func WriteOptIn(p *Page, c apiv1.Cluster) {
	p.Line("", fmt.Sprintf("%s/%s: %s (%s)", c.Namespace, c.Name, modeText(c.Mode, c.Frozen), c.ModeReason))
	switch {
	case c.OptIn == nil && c.Mode == nodepool.Managed:
		p.Line("", "Heliostat scales it already.")
	case c.LastCycle == nil:
		p.Line("", "There is no decision about it yet, so it is unknown what Heliostat would do.")
	case c.OptIn != nil:
		writeOptInTo(p, c)
	}
}

func writeOptInTo(p *Page, c apiv1.Cluster) {
	if c.Mode == nodepool.Off || c.Error != "" {
		p.Line(
			"",
			"It is unknown what Heliostat would do: "+cmp.Or(
				c.Error,
				"Ray's state is not read while the mode is off; let it plan first with `autoscaler unmanage`",
			)+".",
		)
	} else {
		p.Line("", "When it is managed, Heliostat will:")
		for _, change := range c.OptIn.Changes {
			p.Line("  ", changeText(change))
		}
		if len(c.OptIn.Changes) == 0 {
			p.Line("  ", "change nothing now")
		}
	}
	if c.OptIn.Autoscaler != "" {
		p.Line("", "The head: "+c.OptIn.Autoscaler+".")
	}
	if c.OptIn.Patch != "" {
		broken := strings.NewReplacer(" '{", " \\\n    '{", " && ", " \\\n    && ") // the shell joins such lines
		p.WriteString("  " + broken.Replace(Printable(c.OptIn.Patch)) + "\n")
	}
	if c.OptIn.Obstacle != nil {
		p.Line("",
			fmt.Sprintf("The annotation is not enough (%s): %s", c.OptIn.Obstacle.Code, c.OptIn.Obstacle.Message))
	}
}

func changeText(change apiv1.WouldChange) string {
	what := fmt.Sprintf("%s %s × %s", change.Action, change.Count, change.Group)
	if pods := change.Pods; len(pods) > 0 {
		names := strings.Join(pods[:min(len(pods), mostStops)], ", ")
		if more := len(pods) - mostStops; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		what += " (" + names + ")"
	}
	switch change.Action {
	case "numGpus":
		what = fmt.Sprintf("write num-gpus %s to group %s", change.Count, change.Group)
	case "shrink":
		what = fmt.Sprintf("shrink group %s by up to %s", change.Group, change.Count)
	}
	return what + ": " + change.Reason
}
