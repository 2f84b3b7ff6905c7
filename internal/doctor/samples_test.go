package doctor_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var updateSamples = flag.Bool("update-samples", false, "write testdata/kuberay-samples.txt")

// kubeRaySamples returns the folder of the samples of the KubeRay release on which this module depends.
func kubeRaySamples(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/ray-project/kuberay/ray-operator").Output()
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("judge each change, then go test ./internal/doctor -run Samples -update-samples (-want +got):\n%s", diff)
	}
}

// Every RayCluster, RayJob, RayService and RayCronJob among the samples is read, whether it has a name or gets one.
func TestEveryKindOfKubeRaysSamplesIsRead(t *testing.T) {
	for file, want := range map[string]string{
		"ray-cronjob.sample.yaml":                                           "RayCronJob/raycronjob-sample",
		"ray-job.kueue-toy-sample.yaml":                                     "RayJob/rayjob-sample-*",
		"pytorch-text-classifier/ray-job.pytorch-distributed-training.yaml": "RayJob/pytorch-text-classifier-*",
	} {
		found := input(t, objects(t, filepath.Join(kubeRaySamples(t), file)))
		read := false
		for _, o := range found.Objects {
			read = read || o.String() == want && o.Cluster != nil
		}
		if !read {
			t.Errorf("%s has no %s with a RayCluster", file, want)
		}
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
		words := shellArguments(t, f.Fix)
		if got := strings.Join(words[:6], " "); got != "patch --local -f - -o yaml" {
			t.Errorf("%s begins with %q", f.Fix, got)
		}
		if jsonPatch(words) == "" {
			t.Errorf("%s has no patch", f.Fix)
		}
	}
}
