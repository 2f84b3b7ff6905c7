package doctor_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"heliostat.dev/heliostat/internal/doctor"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
)

// shellArguments runs the command in a shell and returns the arguments that kubectl gets.
func shellArguments(t *testing.T, command string) []string {
	t.Helper()
	out, err := exec.Command("sh", "-c", `kubectl() { printf '%s\n' "$@"; exit 0; }; autoscaler() { exit 0; }; `+command).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// jsonPatch returns the patch in a command such as kubectl patch raycluster llm -n ml --type=json -p '[…]', or "".
func jsonPatch(arguments []string) string {
	if at := slices.Index(arguments, "-p"); at > 0 && arguments[0] == "patch" && slices.Contains(arguments, "--type=json") {
		return arguments[at+1]
	}
	return ""
}

func TestAShellCanReadEveryFix(t *testing.T) {
	eachCode(t, func(t *testing.T, check doctor.Check) {
		for _, f := range examine(t, objects(t, filepath.Join("testdata/shows", check.Code+".yaml"))) {
			if words := shellArguments(t, f.Fix); strings.HasPrefix(f.Fix, "kubectl") && len(words) < 2 {
				t.Errorf("%s: kubectl gets %q", f.Fix, words)
			}
		}
	})
}

// A fix must remove its finding.
func TestAFixRemovesItsFinding(t *testing.T) {
	tried := 0
	eachCode(t, func(t *testing.T, check doctor.Check) {
		all := objects(t, filepath.Join("testdata/shows", check.Code+".yaml"))
		for _, f := range examine(t, all) {
			fixed, done := all, false
			for command := range strings.SplitSeq(f.Fix, " && ") {
				words := shellArguments(t, command)
				if patch := jsonPatch(words); patch != "" {
					fixed, done = applied(t, fixed, patchedBy(t, fixed, words, f.Object), patch), true
				}
				if words[0] == "delete" && !strings.Contains(command, " -l ") {
					fixed, done = without(fixed, words[2]), true
				}
			}
			if f.Code != check.Code || !done {
				continue
			}
			tried++
			for _, after := range examine(t, fixed) {
				if after.Code == f.Code && after.Object == f.Object && after.Field == f.Field {
					t.Errorf("%s\nleaves %+v", f.Fix, after)
				}
			}
		}
	})
	if tried < 40 {
		t.Errorf("only %d fixes were tried", tried)
	}
}

// You may run fixes in any order, and leave some out. What an accepted patch fixes is gone, and doctor, run again and
// again, leaves nothing to fix.
func TestFixesWorkInAnyOrderAndCombination(t *testing.T) {
	for seed := range uint64(12) {
		random, all, rounds := rand.New(rand.NewPCG(seed, 7)), objects(t, "testdata/together.yaml"), 0
		left := printedPatches(t, all)
		if len(left) < 8 {
			t.Fatalf("only %d patches", len(left))
		}
		for ; len(left) > 0 && rounds < 5; rounds++ {
			random.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
			if rounds == 0 {
				left = left[:1+random.IntN(len(left))]
			}
			var accepted []doctor.Finding
			for _, f := range left {
				next, err := patched(t, all, f.Object, jsonPatch(shellArguments(t, f.Fix)))
				if all = next; err == nil {
					accepted = append(accepted, f)
				}
			}
			left = printedPatches(t, all)
			for _, after := range left {
				for _, f := range accepted {
					if after.Code == f.Code && after.Object == f.Object && after.Field == f.Field && after.Seen == f.Seen {
						t.Errorf("seed %d: %s was accepted and leaves %+v", seed, f.Fix, after)
					}
				}
			}
		}
		if len(left) > 0 {
			t.Errorf("seed %d: %d rounds leave %s", seed, rounds, left[0].Fix)
		}
	}
}

// printedPatches returns the findings that a patch of their object fixes alone: with a command behind it, such as one
// that deletes the head, it does not.
func printedPatches(t *testing.T, all []map[string]any) []doctor.Finding {
	t.Helper()
	return slices.DeleteFunc(examine(t, all), func(f doctor.Finding) bool {
		return !strings.HasPrefix(f.Fix, "kubectl patch ") || strings.Contains(f.Fix, " && ") ||
			jsonPatch(shellArguments(t, f.Fix)) == ""
	})
}

// A manifest has no head pod, so the patch alone must remove the finding.
func TestAManifestWhoseHeadGetsAnotherAutoscalerIsPatched(t *testing.T) {
	for name, options := range map[string]any{
		"no options":        nil,
		"another image":     map[string]any{"version": "v2", "image": "rayproject/ray:2.52.0"},
		"another command":   map[string]any{"command": []any{"scale"}, "args": []any{"up"}},
		"only the argument": map[string]any{"image": "registry.example/heliostat:v1", "args": []any{"infinity"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := objects(t, "testdata/shows/sidecar-beside-us.yaml")
			withoutHead("/spec/autoscalerOptions", options)(t, all)
			found := 0
			for _, f := range examine(t, all) {
				if f.Code != "sidecar-beside-us" {
					continue
				}
				found++
				fixed := applied(t, all, f.Object, jsonPatch(shellArguments(t, f.Fix)))
				if codes := codesOf(examine(t, fixed)); slices.Contains(codes, f.Code) {
					t.Errorf("%s leaves %v", f.Fix, codes)
				}
			}
			if found != 1 {
				t.Errorf("found %d times, want once", found)
			}
		})
	}
}

// patchedBy returns the object that a command patches: the manifest of the finding, or any stored object.
func patchedBy(t *testing.T, all []map[string]any, words []string, finding string) string {
	t.Helper()
	if slices.Contains(words, "--local") {
		return finding
	}
	for _, fields := range all {
		object := strings.Split(nameOf(fields), "/")
		namespace := len(object) < 3 || slices.Contains(words, object[1])
		if strings.ToLower(object[0]) == words[1] && object[len(object)-1] == words[2] && namespace {
			return nameOf(fields)
		}
	}
	t.Fatalf("%q patches no object", words)
	return ""
}

// without removes the pod, or another object except a RayCluster, of that name.
func without(all []map[string]any, name string) []map[string]any {
	return slices.DeleteFunc(slices.Clone(all), func(fields map[string]any) bool {
		return fields["kind"] != "RayCluster" && fields["metadata"].(map[string]any)["name"] == name
	})
}

// parsed reads objects in YAML.
func parsed(t *testing.T, text string) []map[string]any {
	t.Helper()
	all, _, err := decode.ReadObjects(strings.NewReader(text))
	must(t, err)
	return all
}

const ofPod = `{containers: [{name: c, image: i, resources: {limits: {cpu: 2, memory: 4Gi}}}]}`

// A RayCluster under another name is one fault, not one more for a RayCluster that is missing.
func TestAMisspeltFieldIsNotMissing(t *testing.T) {
	for kind, spec := range map[string]string{"RayService": "rayClusterSpec", "RayJob": "entrypoint: b, rayClusterConfig"} {
		all := parsed(t, "{apiVersion: ray.io/v1, kind: "+kind+", metadata: {name: a}, spec: {"+spec+
			": {headGroupSpec: {rayStartParams: {num-cpus: '0'}, template: {spec: "+ofPod+"}}}}}")
		if codes := codesOf(examine(t, all)); !slices.Equal(codes, []string{"field-misspelt"}) {
			t.Errorf("%s: found %v", kind, codes)
		}
	}
}

// The fields are those of published examples of RayServices and RayJobs.
func TestWhatTheOperatorRefusesNamesItsField(t *testing.T) {
	cluster := "{headGroupSpec: {template: {spec: " + ofPod + "}, headService: {metadata: {name: s, labels: {a: b}}}}}"
	for spec, field := range map[string]string{
		"RayService, metadata: {name: a}, spec: {rayClusterConfig: " + cluster + "}":                                                         "spec.rayClusterConfig.headGroupSpec.headService.metadata.name",
		"RayJob, metadata: {name: a}, spec: {ttlSecondsAfterFinished: 60, rayClusterSpec: " + cluster + "}":                                  "spec.ttlSecondsAfterFinished",
		"RayJob, metadata: {name: a}, spec: {ttlSecondsAfterFinished: 60, shutdownAfterJobFinishes: false, rayClusterSpec: " + cluster + "}": "spec.ttlSecondsAfterFinished",
		"RayCronJob, metadata: {name: a}, spec: {schedule: '* * * * *', jobTemplate: {ttlSecondsAfterFinished: 60, rayClusterSpec: " +
			cluster + "}}": "spec.jobTemplate.ttlSecondsAfterFinished",
	} {
		if f, _ := findingOf(examine(t, parsed(t, "{apiVersion: ray.io/v1, kind: "+spec+"}")), "operator-refuses"); f.Field != field {
			t.Errorf("%s: %+v, want %s", spec, f, field)
		}
	}
	all := parsed(t, "{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: 'a-${ID}'}, spec: {entrypoint: b, rayClusterSpec: "+
		cluster+"}}")
	found := examine(t, all)
	if i := slices.IndexFunc(found, func(f doctor.Finding) bool { return f.Code == "operator-refuses" }); i < 0 ||
		found[i].Seen != "a-${ID}" || !strings.Contains(found[i].Fix, "give ${ID} its value") {
		t.Errorf("a name with a variable: %+v", found)
	}
}

// applied applies the patch to a copy of the object, as the API server does.
func applied(t *testing.T, all []map[string]any, object, patch string) []map[string]any {
	t.Helper()
	fixed, err := patched(t, all, object, patch)
	if err != nil {
		t.Fatalf("%s: %v", patch, err)
	}
	return fixed
}

// patched is like applied, but returns the API server's error.
func patched(t *testing.T, all []map[string]any, object, patch string) ([]map[string]any, error) {
	t.Helper()
	operations, err := jsonpatch.DecodePatch([]byte(patch))
	if err != nil {
		t.Fatalf("%s: %v", patch, err)
	}
	fixed := slices.Clone(all)
	for i, fields := range all {
		if nameOf(fields) != object {
			continue
		}
		text, err := json.Marshal(fields)
		must(t, err)
		if text, err = operations.Apply(text); err != nil {
			return all, fmt.Errorf("patching %s: %w", object, err)
		}
		fixed[i] = map[string]any{}
		must(t, utiljson.Unmarshal(text, &fixed[i]))
	}
	return fixed, nil
}

// nameOf returns Kind/namespace/name.
func nameOf(fields map[string]any) string {
	metadata := fields["metadata"].(map[string]any)
	if metadata["namespace"] == nil {
		return fmt.Sprint(fields["kind"], "/", metadata["name"])
	}
	return fmt.Sprint(fields["kind"], "/", metadata["namespace"], "/", metadata["name"])
}

// The shell keeps the quotes of an expanded variable, and eval removes them (kuberay #3756).
func TestAnOwnCommandGetsEvalForTheOperatorsText(t *testing.T) {
	all := objects(t, "testdata/shows/start-command-unknown.yaml")
	group := all[0]["spec"].(map[string]any)["workerGroupSpecs"].([]any)[0].(map[string]any)
	group["rayStartParams"] = map[string]any{"resources": `'{"a": 1}'`}
	container := group["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	container["command"] = []any{"/bin/bash", "-lc", "--"}
	container["args"] = []any{"ulimit -n 65536; $KUBERAY_GEN_RAY_START_CMD"}
	findings := examine(t, all)
	if got := codesOf(findings); !slices.Equal(got, []string{"ray-start-fails"}) {
		t.Fatalf("got %v, want ray-start-fails", got)
	}
	if want := `eval "$KUBERAY_GEN_RAY_START_CMD" removes them`; !strings.Contains(findings[0].Fix, want) {
		t.Errorf("the fix is %s, want %s", findings[0].Fix, want)
	}
}
