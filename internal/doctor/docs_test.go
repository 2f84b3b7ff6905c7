package doctor_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/doctor"
)

// Findings link to docs/reference/doctor.md, by code.
func TestThePageOfTheDoctorHasAnAnchorForEveryCodeAndNoOther(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, check := range doctor.Checks() {
		want = append(want, check.Code+" "+string(check.Severity))
	}
	for _, found := range regexp.MustCompile(`(?m)^### (\S+)\n\n\*(\w+)\.\* \S`).FindAllStringSubmatch(string(page), -1) {
		got = append(got, found[1]+" "+strings.ToLower(found[2]))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-source +docs):\n%s", diff)
	}
}

// A code that other parts of Heliostat tell of, too, has one meaning; what only the doctor knows has a code of its own.
func TestCodesAreOfOneStyle(t *testing.T) {
	for _, check := range doctor.Checks() {
		if !regexp.MustCompile(`^[a-z]+(-[a-z]+)+$`).MatchString(check.Code) {
			t.Errorf("%s is not like-this", check.Code)
		}
	}
}
