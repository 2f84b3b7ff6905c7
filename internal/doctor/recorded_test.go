package doctor_test

import (
	"encoding/json"
	"os"
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	var recording struct {
		Cluster map[string]any `json:"cluster"`
	}
	if err := yaml.Unmarshal(text, &recording); err != nil {
		t.Fatal(err)
	}
	if recording.Cluster == nil {
		return objects(t, path)
	}
	return []map[string]any{recording.Cluster}
}

// If the operator or the API server refused a recorded RayCluster, or `ray start` failed, there is a finding of
// severity error.
func TestWhatTheOperatorOrRayRefusesIsAnError(t *testing.T) {
	paths, err := filepath.Glob(recordedClusters)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var recording struct {
			Group    string `json:"group"`
			Operator struct {
				Error map[string]any `json:"error"`
			} `json:"operator"`
			RayStart struct {
				Error string `json:"error"`
			} `json:"rayStart"`
		}
		if err := yaml.Unmarshal(text, &recording); err != nil {
			t.Fatal(err)
		}
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
	for _, name := range []string{"gpu-limit-differs", "toleration-missing", "mig-strategy", "operator-concurrency"} {
		all = append(all, objects(t, "testdata/shows/"+name+".yaml")...)
	}
	want, err := json.Marshal(codesOf(examine(t, all)))
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(all)
	got, err := json.Marshal(codesOf(examine(t, all)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
}
