package decode

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// truth is what holds for a recorded node. Values are any: a number, a map, a text, or "unknown" and "none". What
// X_from says is text cannot be derived from the object, so unknown is right there too.
type truth map[string]any

// nodeFixtures are nodes as people posted them, each with what is true of it in a comment at its top.
func nodeFixtures(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("testdata/nodes/*.yaml")
	if err != nil || len(paths) != 49 {
		t.Fatalf("found %d nodes, %v; want 49", len(paths), err)
	}
	found := map[string]string{}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimSuffix(filepath.Base(path), ".yaml")] = string(raw)
	}
	return found
}

func truthOf(t *testing.T, fixture string) truth {
	t.Helper()
	_, comment, found := strings.Cut(fixture, "# expect:\n")
	if !found {
		t.Fatal("nothing is expected")
	}
	var text strings.Builder
	for line := range strings.Lines(comment) {
		rest, isComment := strings.CutPrefix(line, "#   ")
		if !isComment {
			break
		}
		text.WriteString(rest)
	}
	var expect truth
	if err := yaml.Unmarshal([]byte(text.String()), &expect); err != nil {
		t.Fatal(err)
	}
	return expect
}

// unknowable: the truth is unknown itself, or known from the text beside the object alone.
func (e truth) unknowable(key string) bool { return e[key] == "unknown" || e[key+"_from"] == "text" }

func (e truth) number(key string) (int64, bool) {
	n, ok := e[key].(float64)
	return int64(n), ok
}

func (e truth) counts(key string) map[string]int64 {
	values, ok := e[key].(map[string]any)
	if !ok {
		return nil
	}
	counts := map[string]int64{}
	for name, n := range values {
		counts[name] = int64(n.(float64))
	}
	return counts
}

// Unknown is right where the node cannot prove it, a wrong number never is.
func TestRecordedNodesAreUnderstood(t *testing.T) {
	for name, fixture := range nodeFixtures(t) {
		t.Run(name, func(t *testing.T) {
			objects, err := nodesOf(strings.NewReader(fixture))
			if err != nil || len(objects) != 1 {
				t.Fatalf("%d nodes, %v", len(objects), err)
			}
			got, want := sharing.Reader{}.Read(objects[0]), truthOf(t, fixture)
			want.checkTexts(t, got)
			want.checkNumber(t, "cards", got.Cards)
			want.checkNumber(t, "replicas", got.Replicas)
			want.checkNumber(t, "card_memory_mib", got.CardMemoryMiB)
			want.checkCounts(t, "units", got.Units)
			want.checkCounts(t, "memory_mib", got.MemoryMiB)
			if perCard := want.counts("per_card"); perCard != nil && !want.unknowable("cards") || got.UnitsPerCard != nil && want["units"] != "unknown" && perCard != nil {
				if diff := cmp.Diff(perCard, got.UnitsPerCard); diff != "" {
					t.Errorf("units per card (-true +read):\n%s", diff)
				}
			}
			want.checkProblem(t, got)
		})
	}
}

func (e truth) checkTexts(t *testing.T, got sharing.GPUs) {
	t.Helper()
	for key, value := range map[string]string{
		"product": text(got.Product), "kind": string(got.Kind), "isolation": string(got.Isolation), "profile": text(got.Profile), "pool": text(got.Pool),
	} {
		want, given := e[key].(string)
		switch {
		case !given || value == want || want == "none" && key == "pool" && value == "unknown":
		case (value == "unknown" || value == want+" (unproven)") && (e.unknowable(key) || key == "isolation" && e.unknowable("kind")):
		default:
			t.Errorf("%s is %s, true is %s", key, value, want)
		}
	}
}

func text(value *string) string {
	if value == nil {
		return "unknown"
	}
	return *value
}

// overcommitted registers are no memory of a card.
func (e truth) checkNumber(t *testing.T, key string, got *int64) {
	t.Helper()
	want, given := e.number(key)
	from, _ := e[key+"_from"].(string)
	switch {
	case got == nil && (!given || e.unknowable(key) || strings.Contains(from, "overcommitted")):
	case got == nil:
		t.Errorf("%s is unknown, true is %d", key, want)
	case e[key] == "unknown":
		t.Errorf("%s is %d, the node does not say", key, *got)
	case given && *got != want:
		t.Errorf("%s is %d, true is %d", key, *got, want)
	}
}

func (e truth) checkCounts(t *testing.T, key string, got map[string]int64) {
	t.Helper()
	if e[key] == "unknown" && got != nil {
		t.Errorf("%s are %v, the node does not say", key, got)
	}
	if want := e.counts(key); want != nil {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-true +read):\n%s", key, diff)
		}
	}
}

func (e truth) checkProblem(t *testing.T, got sharing.GPUs) {
	t.Helper()
	if (e["problem"] == "none") != (len(got.Problems) == 0) {
		t.Errorf("problems are %v, true is: %v", got.Problems, e["problem"])
	}
}

// What is read of each recorded node, in one line: a change of the reading shows here, whatever the test above
// tolerates.
func TestWhatIsReadOfRecordedNodesStays(t *testing.T) {
	const golden = "testdata/nodes.txt"
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(readings(t), "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", golden, diff)
	}
}

func readings(t *testing.T) string {
	t.Helper()
	var lines strings.Builder
	fixtures := nodeFixtures(t)
	for _, name := range slices.Sorted(maps.Keys(fixtures)) {
		objects, err := nodesOf(strings.NewReader(fixtures[name]))
		if err != nil {
			t.Fatal(err)
		}
		gpus := sharing.Reader{}.Read(objects[0])
		fmt.Fprintf(&lines, "%s: %s %s, cards %s, units %v, MiB %v, %s, problems %v\n",
			name, gpus.Kind, text(gpus.Product), number(gpus.Cards), gpus.Units, gpus.MemoryMiB, gpus.Isolation, gpus.Problems)
	}
	return lines.String()
}

func number(value *int64) string {
	if value == nil {
		return "unknown"
	}
	return fmt.Sprint(*value)
}

// Whatever a file holds, it is refused or read, never a panic; and what shares a device never passes for isolated.
func FuzzNodesAreReadOrRefused(f *testing.F) {
	paths, err := filepath.Glob("testdata/nodes/*.yaml")
	if err != nil || len(paths) == 0 {
		f.Fatalf("found %d nodes, %v", len(paths), err)
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(raw))
	}
	f.Fuzz(func(t *testing.T, manifest string) {
		nodes, err := nodesOf(strings.NewReader(manifest))
		if err != nil {
			return
		}
		for _, node := range nodes {
			gpus := sharing.Reader{}.Read(node)
			if shared := gpus.Kind == "time-sliced" || gpus.Kind == "mps"; shared && gpus.Isolation == "hardware" {
				t.Errorf("%s passes for isolated: %+v", gpus.Kind, gpus)
			}
			for _, problem := range gpus.Problems {
				if problem.Code == "" || problem.Message == "" {
					t.Errorf("a problem without code or message: %+v", gpus.Problems)
				}
			}
		}
		if pools := landing.Observed((sharing.Reader{}), nodes); len(pools) > len(nodes) {
			t.Errorf("%d pools of %d nodes", len(pools), len(nodes))
		}
	})
}

func TestAnErrorNamesTheFieldOfTheNode(t *testing.T) {
	for field, object := range map[string]map[string]any{
		"metadata.labels is a string: want an object, each value of which is a text": {
			"metadata": map[string]any{"labels": "x"}},
		"spec.taints is a number: want a list": {"spec": map[string]any{"taints": int64(1)},
			"status": map[string]any{"allocatable": map[string]any{"cpu": "-1"}}},
	} {
		if _, _, err := Read(object); err == nil || err.Error() != "reading node: "+field {
			t.Errorf("got %v, want %s", err, field)
		}
	}
}
