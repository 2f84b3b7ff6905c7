package gcs

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Codes of the findings about a Ray head.
const (
	// FindingTruncated says that more demand may wait than the head tells.
	FindingTruncated = "demand-truncated"
	// FindingBadValue says that the head sent something that cannot be true or read.
	FindingBadValue = "ray-bad-value"
	// FindingMissingMethod says that the head's version lacks a method we would use.
	FindingMissingMethod = "ray-method-missing"
)

// maxFindings bounds what one reading keeps: a lying head may send millions of bad entries.
const maxFindings = 20

// findings collects at most maxFindings and counts the rest.
type findings struct {
	kept []raydemand.Finding
	more int
}

func (f *findings) add(finding raydemand.Finding) {
	if len(f.kept) >= maxFindings {
		f.more++
		return
	}
	f.kept = append(f.kept, finding)
}

func (f *findings) list() []raydemand.Finding {
	if f.more == 0 {
		return f.kept
	}
	return append(f.kept, raydemand.Finding{
		Code: FindingBadValue, Severity: raydemand.Warning,
		Seen: fmt.Sprintf("%d more findings about this Ray head", f.more),
		Why:  "only the first ones are listed",
	})
}

func (f *findings) badValue(object, field, seen, why string) {
	if object == "" {
		object = "Ray head"
	}
	f.add(raydemand.Finding{
		Code: FindingBadValue, Severity: raydemand.Warning,
		Object: shortened(object), Field: shortened(field), Seen: shortened(seen), Why: why,
		Fix: "look at the head's GCS log; a value like this is a fault in Ray or in what answers at its address",
	})
}

func (f *findings) missingMethod(method, why string) {
	f.add(raydemand.Finding{
		Code: FindingMissingMethod, Severity: raydemand.Warning, Object: "Ray head", Field: method,
		Seen: "UNIMPLEMENTED", Why: why, Fix: "upgrade Ray to 2.40 or later",
	})
}

func (f *findings) truncated(shapes, gangs int) {
	f.add(raydemand.Finding{
		Code: FindingTruncated, Severity: raydemand.Warning, Object: "Ray head", Field: "pending_resource_requests",
		Seen: fmt.Sprintf("%d shapes, %d placement groups", shapes, gangs),
		Why: "each raylet reports at most 100 shapes and the head at most 1000 placement groups: " +
			"more may wait, and nothing is scaled for what does not show",
		Fix: "give tasks equal resource requests (a memory request per task makes every task a shape of its own; " +
			"so does every order of in(a,b,c)), " +
			"or set RAY_max_resource_shapes_per_load_report to a higher number on all pods of the cluster",
	})
}

// shortened cuts what a head sends to a length that fits a log line and an Event.
func shortened(text string) string { return shortenedTo(200, text) }

func shortenedTo(most int, text string) string {
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "")
}
