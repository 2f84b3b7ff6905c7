package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/internal/doctor"
)

// doctorDir is a directory with one manifest for each finding.
const doctorDir = "../../internal/doctor/testdata"

func ill(code string) string { return filepath.Join(doctorDir, "shows", code+".yaml") }

func well(code string) string { return filepath.Join(doctorDir, "clean", code+".yaml") }

func TestDoctorEndsWithOneForErrorsOnly(t *testing.T) {
	for name, c := range map[string]struct {
		argv   []string
		exit   int
		errOut string
	}{
		"an error":         {[]string{"-f", ill("gpu-limit-differs")}, cli.ExitFailed, "autoscaler: 1 finding of level error\n"},
		"two errors":       {[]string{"-f", ill("gpu-limit-differs"), ill("devices-missing")}, cli.ExitFailed, "autoscaler: 2 findings of level error\n"},
		"a warning":        {[]string{"-f", ill("memory-limit-absent")}, cli.ExitOK, ""},
		"a hint":           {[]string{"-f", ill("head-takes-work")}, cli.ExitOK, ""},
		"nothing":          {[]string{"-f", well("gpu-limit-differs")}, cli.ExitOK, ""},
		"an error in JSON": {[]string{"-o", "json", "-f", ill("gpu-limit-differs")}, cli.ExitFailed, "autoscaler: 1 finding of level error\n"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := command(t, "", append([]string{"autoscaler", "doctor"}, c.argv...)...)
			if code != c.exit || errOut != c.errOut || out == "" {
				t.Errorf("exit %d, %q, %q", code, errOut, out)
			}
		})
	}
}

func TestDoctorKnowsResourcesAndPoolLabelsThatItIsTold(t *testing.T) {
	for _, c := range []struct {
		code, file string
		flags      []string
		found      bool
	}{
		{"gpu-resource-unknown", ill("gpu-resource-unknown"), nil, true},
		{"gpu-resource-unknown", ill("gpu-resource-unknown"), []string{"--resource", "tencent.com/qgpu-memory=vgpu"}, false},
		{"node-maximum-below-ours", ill("node-maximum-below-ours"), nil, true},
		{"node-maximum-below-ours", ill("node-maximum-below-ours"), []string{"--pool-label", "node.kubernetes.io/instance-type"}, false},
	} {
		_, out, errOut := command(t, "", append([]string{"autoscaler", "doctor", "-o", "json", "-f", c.file}, c.flags...)...)
		if found := strings.Contains(out, `"code": "`+c.code+`"`); found != c.found {
			t.Errorf("%s with %v: found %v, want %v; %s", c.code, c.flags, found, c.found, errOut)
		}
	}
}

// TestDoctorCountsDeclaredPools checks that doctor reports nothing about a group whose pods fit only on a declared
// pool.
func TestDoctorCountsDeclaredPools(t *testing.T) {
	pools := filepath.Join(t.TempDir(), "pools.yaml")
	shape := `pools: [{name: a100, maxNodes: 2, shape: {allocatable: {cpu: "96", memory: 900Gi, pods: "110", nvidia.com/gpu: "16"}, labels: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}}}]`
	must(t, os.WriteFile(pools, []byte(shape), 0o600))
	for _, c := range []struct {
		flags []string
		found bool
	}{{nil, true}, {[]string{"--pools", pools}, false}} {
		_, out, errOut := command(t, "", append([]string{"autoscaler", "doctor", "-o", "json", "-f", ill("group-no-node")}, c.flags...)...)
		if found := strings.Contains(out, `"code": "group-no-node"`); found != c.found {
			t.Errorf("with %v: found %v, want %v; %s%s", c.flags, found, c.found, out, errOut)
		}
	}
}

func TestDoctorRefusesBadInputWithTwo(t *testing.T) {
	for name, c := range map[string]struct {
		stdin string
		argv  []string
		want  string
	}{
		"no such file":              {"", []string{"-f", "gone.yaml"}, "opening manifests: open gone.yaml"},
		"nothing to look at":        {`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}`, []string{"-f", "-"}, "reading -: there is nothing to look at: want a RayCluster, or another kind that"},
		"a RayCluster and files":    {"", []string{"-f", well("gpu-limit-differs"), "ml/llm"}, "opening manifests: open ml/llm"},
		"a further file not there":  {"", []string{"-f", well("gpu-limit-differs"), "gone.yaml"}, "opening manifests: open gone.yaml"},
		"an empty file":             {"", []string{"-f", "-"}, "there is nothing to look at"},
		"pools that are none":       {"", []string{"--pools", "gone.yaml", "-f", well("gpu-limit-differs")}, "opening pools: open gone.yaml"},
		"not YAML":                  {"a: [", []string{"-f", "-"}, "reading manifests from standard input: reading document 1"},
		"a spec of another type":    {`{"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "llm"}, "spec": 7}`, []string{"-f", "-"}, "reading -: RayCluster/llm: spec is 7"},
		"an unknown output":         {"", []string{"-o", "xml", "-f", well("gpu-limit-differs")}, `"xml" for "-o, --output" flag: want table, wide, json or yaml`},
		"files and a namespace":     {"", []string{"-n", "ml", "-f", "-"}, "[filename namespace]"},
		"a name without namespace":  {"", []string{"llm"}, `RayCluster "llm": want NAMESPACE/NAME, or its namespace with -n`},
		"two namespaces":            {"", []string{"-n", "dev", "ml/llm"}, `RayCluster "ml/llm" is not in --namespace dev`},
		"three parts":               {"", []string{"a/b/c"}, `RayCluster "a/b/c": want NAME or NAMESPACE/NAME`},
		"a kind that is none":       {"", []string{"--resource", "a/b=huge", "-f", "-"}, `--resource "a/b=huge": want a name such as`},
		"two names":                 {"", []string{"-n", "ml", "a", "b"}, `unexpected argument "b"`},
		"a kubeconfig and the file": {"", []string{"--kubeconfig", "x", "-f", "-"}, "[filename kubeconfig]"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, errOut := command(t, c.stdin, append([]string{"autoscaler", "doctor"}, c.argv...)...)
			if code != cli.ExitBadInput || !strings.Contains(errOut, c.want) {
				t.Errorf("exit %d: %s", code, errOut)
			}
		})
	}
}

// A pipeline must not take a manifest for good because doctor did not recognize it.
func TestDoctorSaysWhatItDidNotExamine(t *testing.T) {
	manifest, err := os.ReadFile(well("gpu-limit-differs"))
	must(t, err)
	good := string(manifest)
	const others = "\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{apiVersion: v1, kind: Service, metadata: {name: a}}\n" +
		"---\n{apiVersion: v1, kind: Service, metadata: {name: b}}\n"
	for name, c := range map[string]struct {
		stdin string
		exit  int
		want  []string
	}{
		"other kinds":     {good + others, cli.ExitOK, []string{"Nothing found. Looked at 1 RayCluster. Did not examine: 1 ConfigMap, 2 Services.\n"}},
		"the same twice":  {good + "\n---\n" + good, cli.ExitOK, []string{"Nothing found. Looked at 2 RayClusters"}},
		"a misspelt kind": {good + "\n---\n" + strings.Replace(good, "kind: RayCluster", "kind: RayClsuter", 1), cli.ExitFailed, []string{"RayClsuter/ml/llm\n  error    kind-unknown\n", "document 2 of -", "1 error. Looked at 1 RayCluster.\n"}},
		"that kind alone": {strings.Replace(good, "kind: RayCluster", "kind: RayClsuter", 1), cli.ExitFailed, []string{"kind: RayClsuter", "want RayCluster", "1 error. Looked at no object.\n"}},
		"another version": {strings.Replace(good, "ray.io/v1", "ray.io/v9", 1), cli.ExitFailed, []string{"apiVersion: ray.io/v9", "1 error. Looked at no object.\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := command(t, c.stdin, "autoscaler", "doctor", "-f", "-")
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("want %q in:\n%s%s", want, out, errOut)
				}
			}
			if code != c.exit {
				t.Errorf("exit %d, want %d", code, c.exit)
			}
		})
	}
}

func TestDoctorWritesAllKeysOfEachFinding(t *testing.T) {
	_, out, _ := command(t, "", "autoscaler", "doctor", "-o", "json", "-f", ill("gpu-limit-differs"))
	var report struct{ Findings []map[string]string }
	if err := json.Unmarshal([]byte(out), &report); err != nil || len(report.Findings) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	want := map[string]string{
		"code": "gpu-limit-differs", "severity": "error", "object": "RayCluster/ml/llm",
		"field": `spec.workerGroupSpecs[0].template.spec.containers[0].resources.requests["nvidia.com/gpu"]`, "seen": "request 1, limit 2",
		"why":  "GPUs cannot be overcommitted, so request and limit must be equal; the API server refuses every pod of the group",
		"fix":  `kubectl edit raycluster llm -n ml  # set spec.workerGroupSpecs[0].template.spec.containers[0].resources.requests["nvidia.com/gpu"] to "2"`,
		"docs": "docs/reference/doctor.md#gpu-limit-differs",
	}
	if diff := cmp.Diff(want, report.Findings[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, out, _ := command(t, "", "autoscaler", "doctor", "-o", "json", "-f", well("gpu-limit-differs")); out != "{\n  \"findings\": []\n}\n" {
		t.Errorf("of nothing: %s", out)
	}
}

func TestDoctorWritesATableByObjectErrorsFirst(t *testing.T) {
	_, out, _ := command(t, "", "autoscaler", "doctor", "-f", ill("replicas-outside"), ill("devices-missing"))
	want := `Node/gpu-1
  error    devices-missing
           status.allocatable: nvidia.com/gpu: allocatable 7 of capacity 8: the others are unhealthy
           a device that the plugin has dropped stays away until the plugin restarts, even if its
           cause is gone
           kubectl delete pod -A -l app=nvidia-device-plugin-daemonset --field-selector spec.nodeName=gpu-1
           # with the plugin's Helm chart: -l app.kubernetes.io/name=nvidia-device-plugin

RayCluster/ml/llm
  warning  replicas-outside
           spec.workerGroupSpecs[0].replicas: replicas 9, minReplicas 0, maxReplicas 8
           the operator keeps the group at the nearer bound whatever replicas says, so the number is
           misleading
           kubectl edit raycluster llm -n ml
           # set spec.workerGroupSpecs[0].replicas to 8

1 error, 1 warning. Looked at 1 Node, 1 RayCluster.
`
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, out, _ = command(t, "", "autoscaler", "doctor", "-f", well("toleration-missing"), well("replicas-outside"))
	if want := "Nothing found. Looked at 1 Node, 2 RayClusters.\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

// One odd file does not end the examination of a folder: `doctor -f deploy/*.yaml`.
func TestDoctorExaminesTheFilesBesideAnOddOne(t *testing.T) {
	reports := filepath.Join(doctorDir, "reports/ray")
	variables := filepath.Join(t.TempDir(), "variables.yaml")
	must(t, os.WriteFile(variables, []byte("kind: RayCluster\nspec: {claimName: ${CLAIM}}"), 0o600))
	for name, c := range map[string]struct {
		odd  string
		exit int
		says string
	}{
		"variables":  {variables, cli.ExitFailed, "; examine it with a value for ${CLAIM}"},
		"a patch":    {filepath.Join(reports, "odd/19-kustomize-patch.txt"), cli.ExitFailed, "of type array"},
		"values":     {filepath.Join(reports, "odd/71-values.txt"), cli.ExitFailed, "kind is missing: want a Kubernetes object; values of Helm are none"},
		"a template": {filepath.Join(reports, "odd/72-template.txt"), cli.ExitFailed, "it is a template; examine what `helm template` prints"},
	} {
		code, out, errOut := command(t, "", "autoscaler", "doctor", "-f", c.odd, ill("gpu-limit-differs"))
		if code != c.exit || !strings.Contains(out, "gpu-limit-differs") || !strings.Contains(errOut, "Did not examine manifests from "+c.odd+": ") ||
			!strings.Contains(errOut, c.says) {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, errOut)
		}
	}
}

func TestDoctorSaysThatAKeyIsThereTwice(t *testing.T) {
	_, out, _ := command(t, "", "autoscaler", "doctor", "-f", filepath.Join(doctorDir, "reports/ray/73-dup-keys.yaml"))
	if !strings.Contains(out, `key "resources" is there twice, again in line 20`) {
		t.Error(out)
	}
	twice := `{"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "a"}, "spec": {"workerGroupSpecs": [null]}, "spec": {"workerGroupSpecs": [null, {"groupName": "gpu\u200b"}]}}`
	_, out, _ = command(t, twice, "autoscaler", "doctor", "-f", "-")
	for _, want := range []string{"key spec is there twice", "spec.workerGroupSpecs[0]: null", `"gpu\u200b"`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in %s", want, out)
		}
	}
}

// A RayCluster in an AppWrapper of CodeFlare is examined as one of its own.
func TestDoctorLooksIntoAppWrappers(t *testing.T) {
	_, out, _ := command(t, "", "autoscaler", "doctor", "-f", filepath.Join(doctorDir, "reports/ray/16-appwrapper.yaml"))
	if !strings.Contains(out, "RayCluster/ml/unit") || !strings.Contains(out, "gpu-not-whole") {
		t.Error(out)
	}
}

func TestDoctorSaysThatANamespaceHasNoRayCluster(t *testing.T) {
	input := doctor.Input{Objects: []doctor.Object{{Kind: "Node"}}}
	var there doctorFlags
	if got := there.missing(input); got != "No RayClusters found." {
		t.Errorf("it is said %q", got)
	}
	input.Objects = append(input.Objects, doctor.Object{Kind: "RayCluster"})
	if got := there.missing(input); got != "" {
		t.Errorf("with a RayCluster it is said %q", got)
	}
	var text strings.Builder
	report := printer.Doctor{Examined: doctor.Input{Objects: []doctor.Object{{Kind: "Node"}}}, Note: "No RayClusters found."}
	must(t, printer.Write(&text, "table", report, printer.WriteDoctor))
	if got := text.String(); got != "Nothing found. Looked at 1 Node. No RayClusters found.\n" {
		t.Errorf("the table says %q", got)
	}
}
