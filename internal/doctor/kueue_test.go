package doctor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/doctor"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// The gang grows with each launch, or stays as large as it was created: which, and what helps, differs by scheduler.
func TestWhatMakesNewWorkersWaitForTheirGang(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata/shows", "gang-floor-moves.yaml"))
	must(t, err)
	volcano := string(text)
	labelled := func(label string) string {
		return strings.Replace(volcano, "volcano.sh/queue-name: research", label, 1)
	}
	coscheduling := labelled(`ray.io/gang-scheduling-enabled: ""`)
	operator := "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: kuberay-operator}\nspec: {template: {spec: {containers: " +
		"[{name: operator, image: quay.io/kuberay/operator:v1.6.2, args: [--batch-scheduler=scheduler-plugins]}]}}}\n"
	inTree := func(manifest string) string {
		return strings.Replace(manifest, "  rayVersion:", "  enableInTreeAutoscaling: true\n  rayVersion:", 1)
	}
	for name, c := range map[string]struct{ manifest, field, fix string }{
		"Volcano":                                 {volcano, "spec.enableInTreeAutoscaling", "enableInTreeAutoscaling"},
		"Volcano, and the floor is kept":          {inTree(volcano), "", ""},
		"the RayCluster of a RayJob":              {labelled("volcano.sh/queue-name: q, ray.io/originated-from-crd: RayJob"), "", ""},
		"not scaled":                              {strings.Replace(volcano, "heliostat.dev/mode: managed", "heliostat.dev/mode: \"off\"", 1), "", ""},
		"KAI, with either value of the flag":      {inTree(labelled("kai.scheduler/queue: q")), "spec.workerGroupSpecs[0].minReplicas", "minReplicas to 1; "},
		"coscheduling, created above the minimum": {inTree(coscheduling) + operator, "spec.workerGroupSpecs[0].replicas", "replicas to 0"},
		"coscheduling, created at the minimum":    {strings.Replace(coscheduling, "replicas: 1", "replicas: 0", 1) + operator, "", ""},
		"KAI in two words, of the second operator": {inTree(labelled("a: b")) + strings.Replace(operator, "--batch-scheduler=scheduler-plugins", "", 1) +
			strings.Replace(operator, "=scheduler-plugins", ", kai-scheduler", 1), "spec.workerGroupSpecs[0].minReplicas", "minReplicas to 1; "},
		"coscheduling without the label":    {labelled("a: b") + operator, "", ""},
		"a live RayCluster of coscheduling": {strings.Replace(coscheduling, "  name: llm", "  name: llm\n  uid: u", 1) + operator, "", ""},
	} {
		c.manifest = strings.Replace(c.manifest, "volcano.sh/queue-name: q, ray", "volcano.sh/queue-name: q\n    ray", 1)
		read := parsed(t, c.manifest)
		findings := examine(t, read)
		at := slices.IndexFunc(findings, func(f doctor.Finding) bool { return f.Code == "gang-floor-moves" })
		switch {
		case c.field == "" && at >= 0:
			t.Errorf("%s: %+v", name, findings[at])
		case c.field != "" && (at < 0 || findings[at].Field != c.field || !strings.Contains(findings[at].Fix, c.fix)):
			t.Errorf("%s: got %+v, want it at %s", name, findings, c.field)
		}
	}
}

// Kueue before 0.19 admits 9 worker groups, and 17 since.
func TestMoreGroupsThanEveryKueueAdmitsAreAnError(t *testing.T) {
	for groups, want := range map[int]raydemand.Severity{9: "", 10: raydemand.Warning, 17: raydemand.Warning, 18: raydemand.Error} {
		all := objects(t, "testdata/shows/queued-groups-too-many.yaml")
		spec := all[0]["spec"].(map[string]any)
		first := spec["workerGroupSpecs"].([]any)[0].(map[string]any)
		var list []any
		for n := range groups {
			group := map[string]any{}
			for key, value := range first {
				group[key] = value
			}
			group["groupName"] = fmt.Sprintf("group-%d", n)
			list = append(list, group)
		}
		spec["workerGroupSpecs"] = list
		if f, _ := findingOf(examine(t, all), "queued-groups-too-many"); f.Severity != want {
			t.Errorf("%d groups: severity %q, want %q", groups, f.Severity, want)
		}
	}
}

// What Kueue's webhook refuses is not stored, so the fix reads the manifest and writes the corrected one.
func TestWhatKueueRefusesIsFixedInItsManifest(t *testing.T) {
	for _, f := range examine(t, objects(t, "testdata/shows/kueue-refuses.yaml")) {
		if f.Code == "kueue-refuses" && !strings.HasPrefix(f.Fix, "kubectl patch --local -f - -o yaml --type=merge -p ") {
			t.Errorf("fix: %s", f.Fix)
		}
	}
}

// Nothing changes the replicas of a queued RayCluster that is not elastic, so nothing orders GPUs without a bound.
func TestAGroupThatKueueHoldsNeedsNoBound(t *testing.T) {
	const queued = "labels: {kueue.x-k8s.io/queue-name: q}"
	const gpu = `{containers: [{name: c, image: i, resources: {limits: {cpu: 2, memory: 4Gi, nvidia.com/gpu: 1}}}]}`
	for _, c := range []struct {
		metadata, spec string
		unbounded      bool
	}{
		{"", "", true},
		{queued, "", false},
		{queued, "enableInTreeAutoscaling: true", true},
		{queued + ", annotations: {kueue.x-k8s.io/elastic-job: 'true'}", "", true},
	} {
		codes := codesOf(examine(t, parsed(t, fmt.Sprintf("{apiVersion: ray.io/v1, kind: RayCluster, "+
			"metadata: {name: a, %s}, spec: {headGroupSpec: {template: {spec: %s}}, workerGroupSpecs: [{groupName: g, "+
			"template: {spec: %s}}], %s}}", c.metadata, ofPod, gpu, c.spec))))
		if slices.Contains(codes, "gpu-group-unbounded") != c.unbounded {
			t.Errorf("{%s} and {%s}: %v, unbounded: want %v", c.metadata, c.spec, codes, c.unbounded)
		}
	}
}
