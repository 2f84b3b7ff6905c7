package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const why = "docs/why-not-scaling.md"

// For each code that users see when a RayCluster is not scaled, the page must say what to do.
func TestWhyNotScalingSaysWhatToDoAboutEveryCode(t *testing.T) {
	for from, want := range map[string]struct {
		section string
		codes   []string
	}{
		"reasons of groups":   {"## A group takes no more", codes(t, "internal/planner/model/codes.go", "^Code")},
		"demand not served":   {"## The work cannot be served", codes(t, "internal/planner/model/plan.go", ".")},
		"modes":               {"## It may not write", append(codes(t, "internal/controller/mode/mode.go", "."), "PatchFailed")},
		"states of a request": {"## A request is not satisfied", append(codes(t, "pkg/raydemand/owned.go", "^Code"), "RequestExpired")},
	} {
		t.Run(from, func(t *testing.T) {
			slices.Sort(want.codes)
			if diff := cmp.Diff(want.codes, firstColumn(between(t, why, want.section+"\n", "\n## "))); diff != "" {
				t.Errorf("codes (-source +page):\n%s", diff)
			}
		})
	}
}

// ordinary are the Events of normal operation, and those of num-gpus, whose codes have a page of their own.
var ordinary = []string{"Capped", "Draining", "IdleAnnounced", "IdleDeleted", "IdleResumed", "Impossible", "NumGPUsRefused", "NumGPUsWritten", "ScaledDown", "ScaledUp", "Trying", "WorkerGoing", "WorkersReplaced"}

func TestWhyNotScalingNamesEventsOfProblems(t *testing.T) {
	page := read(t, why)
	for _, event := range codes(t, "internal/controller/event/reason.go", "") {
		if named := strings.Contains(page, "`"+event+"`"); named == slices.Contains(ordinary, event) {
			t.Errorf("Event %s: named %t", event, named)
		}
	}
}

func TestWhyNotScalingNamesListedCodes(t *testing.T) {
	var known []string
	for _, all := range listed(t) {
		known = append(known, all...)
	}
	page := read(t, why)
	for _, code := range firstColumn(page) {
		if !slices.Contains(known, code) {
			t.Errorf("%s is not a code", code)
		}
	}
	for _, reason := range regexp.MustCompile(`reason=(\w+)`).FindAllStringSubmatch(page, -1) {
		if !slices.Contains(known, reason[1]) {
			t.Errorf("no Event has the reason %s", reason[1])
		}
	}
}
