package snapshotfile

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// descriptiveKeys are keys that describe a snapshot file and are not part of the snapshot: what a case of
// testdata/cases expects, where it comes from, and notes about it.
var descriptiveKeys = []string{
	"assertedUpstream", "exact", "expect", "expectWithFallback", "kind", "note", "source", "topic",
}

// unknownFields returns a finding for each kind of unknown key.
func unknownFields(doc *fieldpath.Document, file string) []raydemand.Finding {
	var all []raydemand.Finding
	unknown, more := doc.Unknown()
	for _, u := range unknown {
		f := raydemand.Finding{
			Code:     model.FindingKeyUnknown,
			Severity: raydemand.Warning,
			Object:   file,
			Field:    u.Path.String(),
			Seen:     u.Value,
			Why:      "this key is unknown, so it has no effect",
			Fix:      "rename it to " + u.Near,
		}
		if u.Near == "" {
			f.Fix = "remove it; the keys here are " + strings.Join(u.Known, ", ")
		}
		all = append(all, f)
	}
	if more > 0 {
		all[len(all)-1].Why += fmt.Sprintf("; %d more keys are unknown", more)
	}
	return all
}
