package doctor_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/internal/doctor"
)

const (
	recordedClusters = "../../pkg/nodepool/kube/decode/testdata/rayclusters/*.yaml"
	recordedNodes    = "../../pkg/nodepool/kube/decode/testdata/nodes/*.yaml"
)

// listed reads lines of the form "name: code code".
func listed(t *testing.T, path string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	found := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if name, codes, ok := strings.Cut(line, ":"); ok {
			found[name] = append([]string{}, strings.Fields(codes)...)
		}
	}
	return found
}

// The objects are RayClusters with the verdict of the real operator, and nodes that users posted. Every finding in the
// lists was checked by hand, so a change of a list is a new finding or a lost one.
func TestRecordedObjectsHaveTheListedFindings(t *testing.T) {
	for _, recorded := range []struct {
		pattern, list string
		most          int
	}{{recordedClusters, "testdata/rayclusters.txt", 98}, {recordedNodes, "testdata/nodes.txt", 49}} {
		paths, err := filepath.Glob(recorded.pattern)
		if err != nil || len(paths) < recorded.most {
			t.Fatalf("found %d files of %s, %v", len(paths), recorded.pattern, err)
		}
		got := map[string][]string{}
		for _, path := range paths {
			codes := slices.Compact(codesOf(examine(t, recordedObjects(t, path))))
			got[strings.TrimSuffix(filepath.Base(path), ".yaml")] = append([]string{}, codes...)
		}
		if diff := cmp.Diff(listed(t, recorded.list), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", recorded.list, diff)
		}
	}
}

// recordedObjects reads a node, or the RayCluster of a recording.
func recordedObjects(t *testing.T, path string) []map[string]any {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	var recording struct {
		Cluster map[string]any `json:"cluster"`
	}
	must(t, yaml.Unmarshal(text, &recording))
	if recording.Cluster == nil {
		return objects(t, path)
	}
	return []map[string]any{recording.Cluster}
}

// If the operator or the API server refused a recorded RayCluster, or `ray start` failed, there is a finding of
// severity error.
func TestWhatTheOperatorOrRayRefusesIsAnError(t *testing.T) {
	paths, err := filepath.Glob(recordedClusters)
	must(t, err)
	refused := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		must(t, err)
		var recording struct {
			Group    string `json:"group"`
			Operator struct {
				Error map[string]any `json:"error"`
			} `json:"operator"`
			RayStart struct {
				Error string `json:"error"`
			} `json:"rayStart"`
		}
		must(t, yaml.Unmarshal(text, &recording))
		// Nothing is wrong with a RayCluster that another controller manages.
		if len(recording.Operator.Error) == 0 && recording.RayStart.Error == "" || strings.Contains(path, "managed-by") {
			continue
		}
		refused++
		isError := func(f doctor.Finding) bool { return f.Severity == "error" }
		if found := examine(t, recordedObjects(t, path)); !slices.ContainsFunc(found, isError) {
			t.Errorf("%s: operator %v, ray start %q, and no error among %v", filepath.Base(path), recording.Operator.Error, recording.RayStart.Error, codesOf(found))
		}
	}
	if refused < 15 {
		t.Errorf("only %d were refused", refused)
	}
}

func TestEqualInputGivesEqualFindingsInAnyOrder(t *testing.T) {
	var all []map[string]any
	for _, name := range []string{"gpu-limit-differs", "toleration-missing", "mig-strategy"} {
		all = append(all, objects(t, "testdata/shows/"+name+".yaml")...)
	}
	want, err := json.Marshal(codesOf(examine(t, all)))
	must(t, err)
	slices.Reverse(all)
	got, err := json.Marshal(codesOf(examine(t, all)))
	must(t, err)
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
}

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

var updateSamples = flag.Bool("update-samples", false, "write testdata/kuberay-samples.txt")

// kubeRaySamples returns the folder of the samples of the KubeRay release on which this module depends.
func kubeRaySamples(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/ray-project/kuberay/ray-operator").Output()
	must(t, err)
	return filepath.Join(strings.TrimSpace(string(out)), "config", "samples")
}

// The samples are what users begin with. Each line of the list is one finding, and each was judged by hand: it is true
// of the sample, and whoever uses the sample is better off to know it. A sample without a line has no finding.
func TestKubeRaysOwnSamplesHaveTheListedFindings(t *testing.T) {
	const list = "testdata/kuberay-samples.txt"
	var got strings.Builder
	files, folder := 0, kubeRaySamples(t)
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" && filepath.Ext(path) != ".yml" {
			return err
		}
		files++
		name, err := filepath.Rel(folder, path)
		for _, f := range examine(t, objects(t, path)) {
			fmt.Fprintf(&got, "%s: %s %s %s %s\n", name, f.Severity, f.Code, f.Object, f.Field)
		}
		return err
	})
	if err != nil || files < 75 {
		t.Fatalf("%d samples, %v", files, err)
	}
	if *updateSamples {
		if err := os.WriteFile(list, []byte(got.String()), 0o644); err != nil { //nolint:gosec // a list for everybody
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(list)
	must(t, err)
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("judge each change, then go test ./internal/doctor -run Samples -update-samples (-want +got):\n%s", diff)
	}
}

// The commands for an object without a name change its manifest, and a shell can run them.
func TestFixesOfAnObjectWithoutANameChangeItsManifest(t *testing.T) {
	all := objects(t, "testdata/shows/gpu-limit-differs.yaml")[:1]
	metadata := all[0]["metadata"].(map[string]any)
	delete(metadata, "name")
	metadata["generateName"] = "llm-"
	for _, f := range examine(t, all) {
		if f.Object != "RayCluster/ml/llm-*" {
			t.Errorf("got %+v", f)
		}
		if got := strings.Join(shellArguments(t, f.Fix), " "); got != "create --edit -f -" {
			t.Errorf("%s calls %q", f.Fix, got)
		}
	}
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
