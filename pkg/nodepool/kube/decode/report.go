package decode

import (
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// distinct removes repeated findings, so that a field that is read twice is reported once.
func distinct(list []raydemand.Finding) []raydemand.Finding {
	seen := make(map[raydemand.Finding]bool, len(list))
	return slices.DeleteFunc(list, func(f raydemand.Finding) bool {
		again := seen[f]
		seen[f] = true
		return again
	})
}

// Report collects the findings about one object.
type Report struct {
	Object string
	All    []raydemand.Finding
	// Unreadable is set if typed clients cannot decode the object.
	Unreadable bool
}

// Add adds a finding about a field of the object.
func (f *Report) Add(severity raydemand.Severity, code, field, seen, why, fix string) {
	f.All = append(f.All, raydemand.Finding{
		Code: code, Severity: severity, Object: f.Object, Field: Short(field), Seen: Short(seen), Why: why, Fix: fix,
	})
}

// Short cuts a long text: an annotation alone can have 256 KiB.
func Short(text string) string {
	const most = 100
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + fmt.Sprintf("… (%d bytes)", len(text))
}

// MostOfOneCode is how many findings with the same code one RayCluster can have.
const MostOfOneCode = 20

// Limit keeps at most MostOfOneCode findings of each code; the last one says how many more there are.
func Limit(all []raydemand.Finding) []raydemand.Finding {
	counts, last := map[string]int{}, map[string]int{}
	var kept []raydemand.Finding
	for _, f := range all {
		counts[f.Code]++
		if counts[f.Code] <= MostOfOneCode {
			last[f.Code] = len(kept)
			kept = append(kept, f)
		}
	}
	for code, at := range last {
		if more := counts[code] - MostOfOneCode; more > 0 {
			kept[at].Why += fmt.Sprintf("; %d more of this kind are not listed", more)
		}
	}
	return kept
}

// ErrorsSince reports whether an error was added after the first mark findings.
func (f *Report) ErrorsSince(mark int) bool {
	return slices.ContainsFunc(f.All[mark:], func(x raydemand.Finding) bool { return x.Severity == raydemand.Error })
}
