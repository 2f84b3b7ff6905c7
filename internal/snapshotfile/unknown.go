package snapshotfile

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// remarks are the keys of a snapshot file that describe it and are not part of it: what a case of
// testdata/cases expects, where it comes from, and what is to be known about it.
var remarks = []string{"assertedUpstream", "exact", "expect", "expectWithFallback", "kind", "note", "source", "topic"}

// unknownFields returns a finding for each kind of unknown key.
func unknownFields(doc *fieldpath.Document, file string) []raydemand.Finding {
	var all []raydemand.Finding
	unknown, more := doc.Unknown()
	for _, u := range unknown {
		f := raydemand.Finding{
			Code: model.FindingKeyUnknown, Severity: raydemand.Warning, Object: file, Field: u.Path.String(), Seen: u.Value,
			Why: "no key of this name is read, so it changes nothing", Fix: "write " + u.Near,
		}
		if u.Count > 1 {
			f.Why += fmt.Sprintf("; %d more have it", u.Count-1)
		}
		if u.Near == "" {
			f.Fix = "leave it out; the keys here are " + strings.Join(u.Known, ", ")
		}
		all = append(all, f)
	}
	if more > 0 {
		all = append(all, raydemand.Finding{Code: model.FindingKeyUnknown, Severity: raydemand.Warning, Object: file,
			Why: fmt.Sprintf("%d more keys are not read", more), Fix: "mend those above first"})
	}
	return all
}
