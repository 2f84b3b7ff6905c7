package fieldpath

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// group is a worker group as the API server returns it, with some fields of wrong types.
func group() map[string]any {
	return map[string]any{
		"groupName": "a100", "replicas": int64(3), "suspend": "no", "maxReplicas": float64(math.MaxUint64),
		"numOfHosts": 1.5, "labels": map[string]any{"zone": "a", "b": 7, "a": true}, "rayStartParams": "num-gpus",
		"containers": []any{map[string]any{"name": "ray"}, "sidecar"}, "workersToDelete": []any{"w-1", nil},
	}
}

func TestValueReportsWhatHasAnotherTypeAndReadsTheRest(t *testing.T) {
	var faults []string
	v := Of(map[string]any{"spec": group()}, func(f Fault) { faults = append(faults, f.Error()) }).Object("spec")
	if n, ok := v.Whole("replicas"); n != 3 || !ok {
		t.Errorf("got %d, %t", n, ok)
	}
	if v.Text("groupName") != "a100" || v.Text("absent") != "" || v.Has("absent") || v.Get("labels", "zone").String() != "a" {
		t.Error("texts read wrongly")
	}
	v.Flag("suspend")
	v.Int32("maxReplicas")
	v.Whole("numOfHosts")
	if diff := cmp.Diff(map[string]string{"zone": "a"}, v.Texts("labels")); diff != "" {
		t.Error(diff)
	}
	if v.Object("rayStartParams").Has("num-gpus") {
		t.Error("a text has members")
	}
	if got := v.Objects("containers"); len(got) != 2 || got[0].Text("name") != "ray" || got[1].Has() {
		t.Errorf("got %v", got)
	}
	if got := v.TextList("workersToDelete"); !slices.Equal(got, []string{"w-1"}) {
		t.Errorf("got %q", got)
	}
	want := []string{
		"spec.suspend: \"no\": want true or false",
		"spec.maxReplicas: 1.8446744073709552e+19: want a number between -2147483648 and 2147483647",
		"spec.numOfHosts: 1.5: want a whole number",
		"spec.labels.a: true: want a string",
		"spec.labels.b: 7: want a string",
		"spec.rayStartParams: \"num-gpus\": want an object",
		"spec.containers[1]: \"sidecar\": want an object",
		"spec.workersToDelete[1]: null: want a string",
	}
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestValueWithoutFunctionForFaultsIsSilent(t *testing.T) {
	v := Of(group(), nil)
	if v.Flag("suspend") || v.Keys("rayStartParams") != nil || len(v.Items("labels")) != 0 || v.Has("groupName", "x") {
		t.Error("values of other types read as something")
	}
	if got, want := v.Path("labels", "x.y").String(), `labels["x.y"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := v.Items("containers")[1].Path().String(); got != "containers[1]" {
		t.Errorf("got %s", got)
	}
	if got := Of(0.5, nil).String() + Of(int64(7), nil).String() + Of(nil, nil).String(); got != "0.57" {
		t.Errorf("got %s", got)
	}
	if got, want := v.Get("containers").Items()[0].String(), `{"name":"ray"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestExcerptCutsBetweenRunes(t *testing.T) {
	for text, want := range map[string]string{"short": "short", "ééééé": "éé…", "\xff\xff\xff\xff\xff\xff": "…"} {
		if got := Excerpt(text, 5); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := Excerpt(strings.Repeat("a", 100), 60); len(got) != 60+len("…") {
		t.Errorf("got %d bytes", len(got))
	}
}

func TestFindFollowsAPathAsFarAsThereAreObjectsAndLists(t *testing.T) {
	v := Of(map[string]any{"a": []any{map[string]any{"b": "c"}}}, nil)
	list := NewPath("a")
	if found, there := v.Find(list.Index(0).Key("b")); !there || found.Text() != "c" {
		t.Errorf("found %v", found)
	}
	if found, there := v.Find(list.Index(0).Key("absent")); !there || found.Has() {
		t.Errorf("found %v", found)
	}
	for _, path := range []Path{list.Index(1), list.Key("-"), list.Index(0).Key("b", "c")} {
		if _, there := v.Find(path); there {
			t.Errorf("%s is there", path)
		}
	}
}
