package doctor_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var updateReports = flag.Bool("update-reports", false, "write testdata/reports.txt")

// The objects are from reports and published files of Ray and KubeRay users. Each line was judged by hand against the
// sources of Ray, KubeRay and Kubernetes; a finding that is still missing is a comment in the list.
func TestReportsOfUsersHaveTheListedFindings(t *testing.T) {
	const list = "testdata/reports.txt"
	paths, err := filepath.Glob("testdata/reports/ray/*.yaml")
	if err != nil || len(paths) < 90 {
		t.Fatalf("found %d files, %v", len(paths), err)
	}
	want, err := os.ReadFile(list)
	if err != nil && !*updateReports {
		t.Fatal(err)
	}
	var got strings.Builder
	for line := range strings.Lines(string(want)) {
		if strings.HasPrefix(line, "#") {
			got.WriteString(line)
		}
	}
	for _, path := range paths {
		codes := slices.Compact(codesOf(examine(t, objects(t, path))))
		fmt.Fprintln(&got, strings.TrimSpace(strings.TrimSuffix(filepath.Base(path), ".yaml")+": "+strings.Join(codes, " ")))
	}
	if *updateReports {
		if err := os.WriteFile(list, []byte(got.String()), 0o644); err != nil { //nolint:gosec // a list for everybody
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("judge each change, then go test ./internal/doctor -run Reports -update-reports (-want +got):\n%s", diff)
	}
}
