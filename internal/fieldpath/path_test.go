package fieldpath

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPathHasFormsForPeopleAndKinds(t *testing.T) {
	path := NewPath("spec", "workerGroupSpecs").Index(1).Key("limits", "nvidia.com/gpu", "a~b")
	if got, want := path.String(), `spec.workerGroupSpecs[1].limits["nvidia.com/gpu"].a~b`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := path.Kind(), ".spec.workerGroupSpecs[].limits.nvidia.com/gpu.a~b"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var got []string
	for _, prefix := range NewPath("spec", "groups").Index(0).Prefixes() {
		got = append(got, prefix.String())
	}
	if diff := cmp.Diff([]string{"spec", "spec.groups", "spec.groups[0]"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestPathsShareTheirBeginningAndDoNotChangeEachOther(t *testing.T) {
	list := NewPath("spec", "groups")
	first, second := list.Index(0).Key("name"), list.Index(1)
	if list.String() != "spec.groups" || first.String() != "spec.groups[0].name" || second.String() != "spec.groups[1]" {
		t.Errorf("got %s, %s, %s", list, first, second)
	}
	if root := (Path{}); first.Parent().Parent() != list || root.Parent() != root {
		t.Error("the parent of a path is another one")
	}
	if _, isIndex := first.LastIndex(); isIndex || first.LastKey() != "name" {
		t.Errorf("%s ends with %q", first, first.LastKey())
	}
	if i, isIndex := second.LastIndex(); !isIndex || i != 1 {
		t.Errorf("%s ends with %d", second, i)
	}
}

// keys returns each key and index of the path.
func (p Path) keys() (all []any) {
	for _, s := range p.steps() {
		all = append(all, s.key, s.index, s.isIndex)
	}
	return all
}

func TestParseReadsWhatStringWrites(t *testing.T) {
	for _, path := range []Path{
		{}, NewPath("spec", "replicas"), NewPath("spec", "groups").Index(12).Key("name"), NewPath("a").Index(0).Index(1),
		NewPath("metadata", "labels", "nvidia.com/gpu.product", "x"), NewPath("a]b", `"`, "c[0]"), NewPath("a", "b.c").Index(3),
	} {
		if got, ok := Parse(path.String()); !ok || !slices.Equal(got.keys(), path.keys()) {
			t.Errorf("%s: got %s, %t", path, got, ok)
		}
	}
	for _, text := range []string{".", "a.", ".a", "a..b", "a[", "a[x]", "a[-1]", "a[0", `a["b]`, `a["b"`, "a[0]b", "a[0].", "a.[0]"} {
		if got, ok := Parse(text); ok {
			t.Errorf("%s: got %s, want no path", text, got)
		}
	}
}
