package doctor

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/fieldpath"
)

// cluster is a RayCluster with one group.
func cluster() *Object {
	group := map[string]any{"groupName": "a100", "replicas": int64(3), "tolerations": []any{"a", "b", "c"}}
	return &Object{Kind: "RayCluster", Namespace: "ml", Name: "llm", Fields: map[string]any{
		"spec": map[string]any{"workerGroupSpecs": []any{group}},
	}}
}

var first = fieldpath.NewPath("spec", "workerGroupSpecs").Index(0)

func TestFixIsACommandThatTestsWhatItChanges(t *testing.T) {
	o := cluster()
	const tests = `{"op":"test","path":"/spec/workerGroupSpecs/0/groupName","value":"a100"},`
	for want, f := range map[string]fix{
		`kubectl patch raycluster llm -n ml --type=json -p '[` + tests +
			`{"op":"test","path":"/spec/workerGroupSpecs/0/replicas","value":3},` +
			`{"op":"replace","path":"/spec/workerGroupSpecs/0/replicas","value":1}]'`: patch(o, set(o, first.Key("replicas"), 1)),
		`kubectl patch raycluster llm -n ml --type=json -p '[` + tests +
			`{"op":"test","path":"/spec/workerGroupSpecs/0/resources","value":null},` +
			`{"op":"add","path":"/spec/workerGroupSpecs/0/resources","value":{"GPU":"1"}}]' && true  # a; b`: patch(o,
			set(o, first.Key("resources", "GPU"), "1")).Then("true").Hint("a").Hint("b"),
		`kubectl patch raycluster llm -n ml --type=json -p '[` + tests +
			`{"op":"add","path":"/spec/workerGroupSpecs/0/tolerations/-","value":"d"}]'`: patch(o,
			set(o, first.Key("tolerations").Index(3), "d")),
		`kubectl edit raycluster llm -n ml  # why`: edit(o, "why"),
	} {
		if got := f.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// merged merges fixes by the codes of their findings.
func merged(fixes map[string]*fix) {
	codes := slices.Sorted(maps.Keys(fixes))
	all := make([]occurrence, len(codes))
	for i, code := range codes {
		all[i] = occurrence{by: Check{Code: code}, Fix: *fixes[code]}
	}
	mergeFixes(all)
	for i, code := range codes {
		*fixes[code] = all[i].Fix
	}
}

func TestMergeJoinsPatchesThatCreateTheSameObject(t *testing.T) {
	o := cluster()
	gpu := patch(o, set(o, first.Key("resources", "GPU"), "1"))
	cpu := patch(o, set(o, first.Key("resources", "CPU"), "4"))
	other := patch(o, replace(first.Key("replicas"), 1))
	merged(map[string]*fix{"gpu": &gpu, "cpu": &cpu, "other": &other})
	const both = `"value":{"CPU":"4","GPU":"1"}}]'  # this patch also fixes `
	if got := gpu.String(); !strings.HasSuffix(got, both+"cpu") {
		t.Errorf("got %s", got)
	}
	if got := cpu.String(); !strings.HasSuffix(got, both+"gpu") {
		t.Errorf("got %s", got)
	}
	if got := other.String(); strings.Contains(got, "#") || strings.Contains(got, "resources") {
		t.Errorf("got %s", got)
	}
}

func TestMergeRemovesElementsFromTheEndOfAList(t *testing.T) {
	o := cluster()
	list := first.Key("tolerations")
	a, c := patch(o, remove(list.Index(0))), patch(o, remove(list.Index(2)))
	change := patch(o, replace(list.Index(1), "x"))
	merged(map[string]*fix{"a": &a, "c": &c, "change": &change})
	_, got, _ := strings.Cut(a.String(), `{"op":"replace"`)
	const path = `"path":"/spec/workerGroupSpecs/0/tolerations/`
	want := `,` + path + `1","value":"x"},{"op":"remove",` + path + `2"},{"op":"remove",` + path + `0"}]'`
	if !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestQuoteMakesOneWordForAShell(t *testing.T) {
	for text, want := range map[string]string{
		"llm": "llm", "spec.nodeName=gpu-1": "spec.nodeName=gpu-1", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'",
	} {
		if got := quote(text); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
