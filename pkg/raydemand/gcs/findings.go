package gcs

import (
	"cmp"
	"fmt"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Codes of findings about a Ray head.
const (
	// FindingTruncated means that the cluster can have more demand than the head reports.
	FindingTruncated = "demand-truncated"
	// FindingBadValue means that the head sent a value that is invalid or cannot be decoded.
	FindingBadValue = "ray-bad-value"
)

// maxFindings is the maximum number of findings of one State. A faulty head can send millions of bad entries.
const maxFindings = 20

// findings are the first maxFindings findings.
type findings []raydemand.Finding

func (f *findings) add(finding raydemand.Finding) {
	if len(*f) < maxFindings {
		*f = append(*f, finding)
	}
}

func (f *findings) badValue(object, field, seen, why string) {
	f.add(raydemand.Finding{
		Code: FindingBadValue, Severity: raydemand.Warning,
		Object: shortened(cmp.Or(object, "Ray head")), Field: shortened(field), Seen: shortened(seen), Why: why,
		Fix: "look at the head's GCS log; a value like this is a fault in Ray or in what answers at its address",
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

// shortened truncates text from a head so that it fits into a log line or an Event.
func shortened(text string) string {
	const most = 200
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "")
}
