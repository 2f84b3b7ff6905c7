package doctor_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/doctor"
)

// Findings link to docs/reference/doctor.md by code. The page has the checks in the order of the list.
func TestThePageHasEveryCheckWithItsSeverityAndNoOther(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, check := range doctor.Checks() {
		want = append(want, check.Code+" "+string(check.Severity))
	}
	for _, found := range regexp.MustCompile("(?m)^\\| <a id=\"(\\S+)\"></a>`\\S+` \\| (\\w+) \\| \\S").FindAllStringSubmatch(string(page), -1) {
		got = append(got, found[1]+" "+found[2])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-source +docs):\n%s", diff)
	}
}

// A check says why a fault matters, as a sentence that follows the field: lower-case, without a full stop. What plans
// and serve report too has their sentence.
func TestEveryCheckSaysWhyAFaultMatters(t *testing.T) {
	for _, check := range doctor.Checks() {
		if strings.HasSuffix(check.Why, ".") {
			t.Errorf("%s: because %q", check.Code, check.Why)
		}
	}
}

// A code that other parts of Heliostat report, too, has one meaning. What only the doctor finds has its own code.
func TestCodesAreOfOneStyle(t *testing.T) {
	for _, check := range doctor.Checks() {
		if !regexp.MustCompile(`^[a-z]+(-[a-z]+)+$`).MatchString(check.Code) {
			t.Errorf("%s is not like-this", check.Code)
		}
	}
}
