package doctor_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"heliostat.dev/heliostat/internal/doctor"
	"heliostat.dev/heliostat/internal/fieldpath"
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
		for _, f := range examine(t, objects(t, filepath.Join("testdata/shows", check.Code+".yaml"))) {
			all := objects(t, filepath.Join("testdata/shows", check.Code+".yaml"))
			if f.Code != check.Code || !fixed(t, all, f) {
				continue
			}
			tried++
			for _, after := range examine(t, all) {
				if after.Code == f.Code && after.Object == f.Object && after.Field == f.Field {
					t.Errorf("%s\nleaves %+v", f.Fix, after)
				}
			}
		}
	})
	if tried < 30 {
		t.Errorf("only %d fixes were tried", tried)
	}
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
			f, found := findingOf(examine(t, all), "sidecar-beside-us")
			if !found || !fixed(t, all, f) {
				t.Fatalf("found %+v", f)
			}
			if codes := codesOf(examine(t, all)); slices.Contains(codes, f.Code) {
				t.Errorf("%s leaves %v", f.Fix, codes)
			}
		})
	}
}

// fixed carries out the changes that a fix names in the objects. It returns false if there are none.
func fixed(t *testing.T, all []map[string]any, f doctor.Finding) (done bool) {
	t.Helper()
	at := slices.IndexFunc(all, func(fields map[string]any) bool { return nameOf(fields) == f.Object })
	words := shellArguments(t, f.Fix)
	if i := slices.Index(words, "--type=merge"); i > 0 && at >= 0 && words[1] == strings.ToLower(all[at]["kind"].(string)) {
		text, err := json.Marshal(all[at])
		must(t, err)
		text, err = jsonpatch.MergePatch(text, []byte(words[i+2]))
		must(t, err)
		all[at] = map[string]any{}
		must(t, utiljson.Unmarshal(text, &all[at]))
		return !strings.Contains(f.Fix, " && ")
	}
	_, changes, _ := strings.Cut(f.Fix, "  # ")
	for change := range strings.SplitSeq(changes, "; ") {
		path, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(change, "remove "), "set "), " to ")
		field, ok := fieldpath.Parse(path)
		ok = ok && strings.Contains(path, ".") && !strings.Contains(path, " ")
		var to any
		isSet := strings.HasPrefix(change, "set ") && ok && utiljson.Unmarshal([]byte(value), &to) == nil
		if words[0] == "edit" && at >= 0 && (isSet || ok && change == "remove "+field.String()) {
			put(all[at], field.Prefixes(), to)
			done = true
		}
	}
	return done
}

// put gives a field below an object or list a value, and returns that.
func put(above any, path []fieldpath.Path, to any) any {
	if len(path) == 0 {
		return to
	}
	if i, isIndex := path[0].LastIndex(); isIndex {
		list, _ := above.([]any)
		if i == len(list) {
			list = append(list, nil)
		}
		if list[i] = put(list[i], path[1:], to); list[i] == nil {
			list = slices.Delete(list, i, i+1)
		}
		return list
	}
	fields, _ := above.(map[string]any)
	if fields == nil {
		fields = map[string]any{}
	}
	key := path[0].LastKey()
	if fields[key] = put(fields[key], path[1:], to); fields[key] == nil {
		delete(fields, key)
	}
	return fields
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

// patched applies a JSON patch to a copy of the object.
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
