package doctor_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/doctor"
)

// printed is a finding with the patch in its fix.
type printed struct {
	doctor.Finding
	patch string
}

// printedPatches returns the findings that a patch fixes. It leaves out patches with a command behind them, which
// deletes the head.
func printedPatches(t *testing.T, all []map[string]any) []printed {
	t.Helper()
	var found []printed
	for _, f := range examine(t, all) {
		if _, after, _ := strings.Cut(f.Fix, " && "); after != "" || !strings.HasPrefix(f.Fix, "kubectl patch ") {
			continue
		}
		if patch := jsonPatch(shellArguments(t, f.Fix)); patch != "" {
			found = append(found, printed{f, patch})
		}
	}
	return found
}

// You may run fixes in any order, and leave some out. In every case only the fields that the patches name change, the
// finding of each accepted patch is gone, and running doctor again and again leaves nothing to fix.
func TestFixesWorkInAnyOrderAndCombination(t *testing.T) {
	files, err := filepath.Glob("testdata/shows/*.yaml")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range append(files, "testdata/together.yaml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			original := objects(t, file)
			first := printedPatches(t, original)
			seeds := uint64(3)
			if file == "testdata/together.yaml" {
				seeds = 12
			}
			for seed := range seeds {
				random := rand.New(rand.NewPCG(seed, 7))
				all := original
				for range 2 {
					all = composed(t, random, all)
				}
				if seed > 0 {
					continue
				}
				if left := rounds(t, random, all); len(left) > 0 && len(first) > 0 {
					t.Errorf("seed %d leaves %s of %s: %s", seed, left[0].Code, left[0].Object, left[0].Fix)
				}
			}
		})
	}
}

// rounds runs all fixes until there are none, and returns those that remain after four rounds.
func rounds(t *testing.T, random *rand.Rand, all []map[string]any) []printed {
	t.Helper()
	for range 4 {
		patches := printedPatches(t, all)
		if len(patches) == 0 {
			return nil
		}
		random.Shuffle(len(patches), func(i, j int) { patches[i], patches[j] = patches[j], patches[i] })
		for _, p := range patches {
			all, _ = patched(t, all, p.Object, p.patch)
		}
	}
	return printedPatches(t, all)
}

// composed runs some of the fixes in a random order.
func composed(t *testing.T, random *rand.Rand, all []map[string]any) []map[string]any {
	t.Helper()
	patches := printedPatches(t, all)
	random.Shuffle(len(patches), func(i, j int) { patches[i], patches[j] = patches[j], patches[i] })
	patches = patches[:random.IntN(len(patches)+1)]
	fixed := all
	var accepted []printed
	for _, p := range patches {
		next, err := patched(t, fixed, p.Object, p.patch)
		if err == nil {
			accepted = append(accepted, p)
		}
		fixed = next
	}
	for i, before := range all {
		named := namedBy(t, before, accepted)
		for _, path := range changed(leaves(before), leaves(fixed[i])) {
			if !slices.ContainsFunc(named, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) {
				t.Errorf("%s changed, and no patch names it: %q", path, named)
			}
		}
	}
	after := examine(t, fixed)
	for _, p := range accepted {
		if at := slices.IndexFunc(after, func(f doctor.Finding) bool {
			return f.Code == p.Code && f.Object == p.Object && f.Field == p.Field && f.Seen == p.Seen
		}); at >= 0 {
			t.Errorf("%s was accepted and leaves %+v", p.Fix, after[at])
		}
	}
	return fixed
}

// namedBy returns the paths that the patches of an object write, with the names of list elements for their indexes.
func namedBy(t *testing.T, object map[string]any, accepted []printed) []string {
	t.Helper()
	var named []string
	for _, p := range accepted {
		if p.Object != nameOf(object) {
			continue
		}
		var ops []struct{ Op, Path, From string }
		if err := json.Unmarshal([]byte(p.patch), &ops); err != nil {
			t.Fatal(err)
		}
		for _, op := range ops {
			if op.Op == "test" {
				continue
			}
			for _, path := range []string{op.Path, op.From} {
				if path != "" {
					named = append(named, byName(object, steps(path)))
				}
			}
		}
	}
	return named
}

// byName writes a path with the names of list elements.
func byName(value any, path []string) string {
	if len(path) == 0 {
		return ""
	}
	switch v := value.(type) {
	case map[string]any:
		return "/" + path[0] + byName(v[path[0]], path[1:])
	case []any:
		var i int
		if _, err := fmt.Sscan(path[0], &i); err == nil && i < len(v) {
			return "/" + entryName(v, i) + byName(v[i], path[1:])
		}
	}
	return ""
}

// entryName returns the name of a list element, or its index if it has no name. Groups have their index: some patches
// change their names.
func entryName(list []any, at int) string {
	fields, _ := list[at].(map[string]any)
	if name, ok := fields["name"].(string); ok {
		return name
	}
	return fmt.Sprint(at)
}

// leaves returns all values of an object by path.
func leaves(value any) map[string]string {
	all := map[string]string{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for key, inner := range v {
				walk(path+"/"+key, inner)
			}
		case []any:
			for i, inner := range v {
				walk(path+"/"+entryName(v, i), inner)
			}
		default:
			all[path] += fmt.Sprint(v)
		}
	}
	walk("", value)
	return all
}

func changed(before, after map[string]string) []string {
	var paths []string
	for path, value := range before {
		if now, there := after[path]; !there || now != value {
			paths = append(paths, path)
		}
	}
	for path := range after {
		if _, there := before[path]; !there {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}
