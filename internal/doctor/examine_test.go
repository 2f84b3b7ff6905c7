package doctor_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/doctor"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// unmanifested are codes that no manifest shows: they report what the reader may not list.
var unmanifested = []string{"nodes-forbidden", "list-forbidden"}

// objects reads a file of testdata.
func objects(t *testing.T, path string) []map[string]any {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	found, _, err := decode.ReadObjects(strings.NewReader(string(text)))
	must(t, err)
	return found
}

func examine(t *testing.T, objects []map[string]any) []doctor.Finding {
	t.Helper()
	return doctor.Examine(input(t, objects))
}

func input(t *testing.T, objects []map[string]any) doctor.Input {
	t.Helper()
	read, err := doctor.Read(objects, sharing.Reader{}, nil)
	must(t, err)
	return read
}

// heading reads a line such as "# field: spec" at the beginning of a file.
func heading(t *testing.T, path, key string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	_, rest, found := strings.Cut(string(text), "# "+key+": ")
	value, _, _ := strings.Cut(rest, "\n")
	if !found && !strings.Contains(string(text), "# "+key+":\n") {
		t.Fatalf("%s has no line for its %s", path, key)
	}
	return value
}

func codesOf(findings []doctor.Finding) []string {
	var codes []string
	for _, f := range findings {
		codes = append(codes, f.Code)
	}
	return codes
}

func eachCode(t *testing.T, test func(t *testing.T, check doctor.Check)) {
	for _, check := range doctor.Checks() {
		if !slices.Contains(unmanifested, check.Code) {
			t.Run(check.Code, func(t *testing.T) { test(t, check) })
		}
	}
}

func TestEveryCheckFindsWhatItsManifestShows(t *testing.T) {
	eachCode(t, func(t *testing.T, check doctor.Check) {
		path := filepath.Join("testdata/shows", check.Code+".yaml")
		object, field := heading(t, path, "object"), heading(t, path, "field")
		findings := examine(t, objects(t, path))
		at := slices.IndexFunc(findings, func(f doctor.Finding) bool { return f.Code == check.Code && f.Object == object && f.Field == field })
		if at < 0 {
			t.Fatalf("want %s of %s at %s, got %+v", check.Code, object, field, findings)
		}
		switch f := findings[at]; {
		case f.Severity != check.Severity || f.Why == "" || f.Docs != "docs/reference/doctor.md#"+check.Code:
			t.Errorf("got %+v", f)
		case f.Fix == "" || strings.HasPrefix(f.Fix, " "):
			t.Errorf("no fix: %+v", f)
		}
	})
}

// A false finding is worse than none: the corrected manifest has no finding at all.
func TestCorrectManifestsHaveNoFindings(t *testing.T) {
	eachCode(t, func(t *testing.T, check doctor.Check) {
		for _, f := range examine(t, objects(t, filepath.Join("testdata/clean", check.Code+".yaml"))) {
			t.Errorf("found %+v", f)
		}
	})
}

func TestEveryFileOfTestdataBelongsToACheck(t *testing.T) {
	var codes []string
	for _, check := range doctor.Checks() {
		if slices.Contains(codes, check.Code) {
			t.Errorf("two checks have the code %s", check.Code)
		}
		codes = append(codes, check.Code)
	}
	files, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil || len(files) != 2*(len(codes)-len(unmanifested)) {
		t.Errorf("%d files for %d checks, %v", len(files), len(codes), err)
	}
	for _, file := range files {
		if code := strings.TrimSuffix(filepath.Base(file), ".yaml"); !slices.Contains(codes, code) {
			t.Errorf("%s belongs to no check", file)
		}
	}
}

// Findings link to docs/reference/doctor.md by code. The page has the checks in the order of the list.
func TestThePageHasEveryCheckWithItsSeverityAndNoOther(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/doctor.md")
	must(t, err)
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
// and serve report too has their sentence, and a code has one meaning everywhere.
func TestChecksAreOfOneStyle(t *testing.T) {
	for _, check := range doctor.Checks() {
		if strings.HasSuffix(check.Why, ".") || !regexp.MustCompile(`^[a-z]+(-[a-z]+)+$`).MatchString(check.Code) {
			t.Errorf("%s is not like-this, or says why with a full stop: %q", check.Code, check.Why)
		}
	}
}
