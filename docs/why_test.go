package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

const reasons = "docs/reference/reasons.md"

// For each code that users see when a RayCluster is not scaled, the page must say what to do.
func TestReasonsSaysWhatToDoAboutEveryCode(t *testing.T) {
	for _, title := range []string{
		"Why a RayCluster is not managed", "Why demand is not served", "Why a group has the size it has", "Why a request is in its state",
	} {
		for line := range strings.Lines(between(t, reasons, "\n## "+title+"\n", "\n## ")) {
			if !strings.HasPrefix(line, "| `") {
				continue
			}
			if cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | "); len(cells) != 3 || strings.TrimSpace(cells[2]) == "" {
				t.Errorf("%s: the row has no meaning or nothing to do: %s", title, line)
			}
		}
	}
}

func TestReasonsNamesListedEvents(t *testing.T) {
	var known []string
	for _, all := range listed(t) {
		known = append(known, all...)
	}
	for _, reason := range regexp.MustCompile("reason=(\\w+)|Event `(\\w+)`").FindAllStringSubmatch(read(t, reasons), -1) {
		if !slices.Contains(known, reason[1]+reason[2]) {
			t.Errorf("no Event has the reason %s", reason[1]+reason[2])
		}
	}
}
