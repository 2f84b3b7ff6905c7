package requests

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// tooMany are the names of the requests for a RayCluster that do not count, and the finding about them.
func (w *readingWorld) tooMany(cluster string) (names []string, finding string) {
	c := nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: "ml", Name: cluster}}
	w.AddTo(&c)
	for i := range c.Owned {
		if r := &c.Owned[i]; r.TooMany {
			names = append(names, r.ID)
			if shown, _ := w.get("ml", r.ID); !shown.TooMany || r.Counts("", w.now) || shown.Current().Code != raydemand.CodeTooMany {
				w.t.Errorf("%s is shown as %+v", r.ID, shown)
			}
		}
	}
	for _, f := range c.Findings {
		finding += f.Code + ": " + f.Seen
	}
	return names, finding
}

// aged is a request for a RayCluster that was made so long after others, with a priority.
func aged(name, cluster string, after time.Duration, priority int64) *unstructured.Unstructured {
	object := storedRequest(name, "5", cluster)
	object.SetCreationTimestamp(metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(after)))
	object.Object["spec"].(map[string]any)["priority"] = priority
	return object
}

func TestOfANamespaceTheFirstByPriorityAgeAndNameCount(t *testing.T) {
	objects := []any{
		aged("urgent", "llm", time.Hour, 1), aged("old", "llm", 0, 0), aged("a-tie", "llm", time.Minute, 0), aged("b-tie", "llm", time.Minute, 0), aged("young", "llm", time.Hour, 0),
		aged("low", "llm", 0, -1),
	}
	for i := range nodepool.MaxRequests - 3 {
		objects = append(objects, aged(fmt.Sprintf("other-%03d", i), "other", time.Second, 0))
	}
	for seed := range uint64(5) { // a restart, and any other order of events, finds the same
		w := newReadingWorld(t)
		random := rand.New(rand.NewPCG(seed, 7))
		random.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
		listed := random.IntN(len(objects))
		_ = w.Replace(slices.Clone(objects[:listed]), "4")
		for _, object := range objects[listed:] {
			_ = w.Add(object)
		}
		names, finding := w.tooMany("llm")
		if diff := cmp.Diff([]string{"b-tie", "low", "young"}, names); diff != "" || finding != TooManyRequests+": 3 of 6 requests of owners do not count" {
			t.Fatalf("seed %d: too many (-want +got): %s; finding %q", seed, diff, finding)
		}
		if names, finding := w.tooMany("other"); names != nil || finding != "" {
			t.Errorf("of the other RayCluster %v are too many, finding %q", names, finding)
		}
		_ = w.Delete(objects[slices.IndexFunc(objects, func(o any) bool { return o.(*unstructured.Unstructured).GetName() == "urgent" })])
		if names, _ := w.tooMany("llm"); !slices.Equal(names, []string{"low", "young"}) {
			t.Errorf("with one gone, %v are too many", names)
		}
	}
}

func TestRequestsThatAreNotValidTakeNoPlace(t *testing.T) {
	w := newReadingWorld(t)
	var objects []any
	for i := range nodepool.MaxRequests - 1 {
		objects = append(objects, aged(fmt.Sprintf("a-%03d", i), "llm", 0, 0))
	}
	bad, going := aged("bad", "llm", 0, 9), aged("going", "llm", 0, 9)
	bad.Object["spec"].(map[string]any)["bundles"] = "none"
	going.SetDeletionTimestamp(new(metav1.Now()))
	leased := leasedRequest("5", w.now.Add(-time.Hour), 10, w.now.UTC().Format(metav1.RFC3339Micro))
	objects = append(objects, bad, going, leased, aged("z", "llm", 24*time.Hour, 0))
	_ = w.Replace(objects, "4")
	if names, _ := w.tooMany("llm"); !slices.Equal(names, []string{"z"}) {
		t.Errorf("%v are too many, want the youngest", names)
	}
	w.now = w.now.Add(11 * time.Second)
	if names, _ := w.tooMany("llm"); names != nil {
		t.Errorf("%v are too many, although a lease has ended", names)
	}
}

// An object that was stored before its kind had today's limits counts no more, and names the limit; it affects no other.
func TestAnObjectBeyondTheLimitsNamesTheLimit(t *testing.T) {
	bundle := func(fields map[string]any) []any { return []any{fields} }
	many := func(n int, value any) map[string]any {
		all := map[string]any{}
		for i := range n {
			all[fmt.Sprintf("name-%03d", i)] = value
		}
		return all
	}
	gpu := map[string]any{"resources": map[string]any{"GPU": int64(1)}}
	for want, bundles := range map[string][]any{
		"11 bundles, the limit is 10":                       slices.Repeat(bundle(gpu), 11),
		"9 resources in a bundle, the limit is 8":           bundle(map[string]any{"resources": many(9, int64(1))}),
		"5 label selectors of a bundle, the limit is 4":     bundle(map[string]any{"resources": gpu["resources"], "labelSelectors": slices.Repeat([]any{map[string]any{}}, 5)}),
		"17 labels in a selector, the limit is 16":          bundle(map[string]any{"resources": gpu["resources"], "labelSelectors": []any{many(17, "a")}}),
		"41 values of labels, the limit is 40":              bundle(map[string]any{"resources": gpu["resources"], "labelSelectors": []any{map[string]any{"zone": valuesOf(41)}}}),
		"1025 characters of resource names, labels and exp": bundle(map[string]any{"resources": map[string]any{strings.Repeat("é", 1025): int64(1)}}),
	} {
		object := storedRequest("a", "5", "llm")
		object.Object["spec"].(map[string]any)["bundles"] = bundles
		r := Decode(object)
		status := r.Current()
		if !strings.Contains(r.Unreadable, want) || len(r.Requests) > 0 || status.State != raydemand.RequestImpossible || !strings.Contains(status.Message, want) {
			t.Errorf("read as %q with %d bundles, status %+v, want %q", r.Unreadable, len(r.Requests), status, want)
		}
	}
	if r := Decode(largest(1)); r.Unreadable != "" || len(r.Requests) != raydemand.MaxOwnedBundles {
		t.Errorf("the largest request is read as %q with %d bundles", r.Unreadable, len(r.Requests))
	}
}

// valuesOf is an expression with so many values.
func valuesOf(n int) string {
	values := make([]string, n)
	for i := range values {
		values[i] = fmt.Sprint("v", i)
	}
	return "in(" + strings.Join(values, ",") + ")"
}

// largest is a request at all limits at once, like no other.
func largest(seed int) *unstructured.Unstructured {
	object := storedRequest(fmt.Sprintf("%063d", seed), fmt.Sprint(seed), "llm")
	var bundles []any
	text := raydemand.MaxOwnedText
	for i := range raydemand.MaxOwnedBundles {
		resources, selectors := map[string]any{}, []any{}
		for k := range raydemand.MaxOwnedResources {
			name := fmt.Sprintf("%d-%d-%d", seed, i, k)
			resources[name], text = int64(1), text-len(name)
		}
		for k := range raydemand.MaxOwnedSelectors {
			selectors = append(selectors, map[string]any{"k": fmt.Sprint(k)})
			text -= 2
		}
		bundles = append(bundles, map[string]any{"resources": resources, "labelSelectors": selectors, "slice": map[string]any{"memory": int64(1 << 30)}})
	}
	// What is left of the text goes into names of four bytes for each character.
	for i := 0; text > 0; i++ {
		resources := bundles[i].(map[string]any)["resources"].(map[string]any)
		name := slices.Sorted(maps.Keys(resources))[0]
		more := min(text, 256-len(name))
		delete(resources, name)
		resources[name+strings.Repeat("𝔊", more)], text = int64(1), text-more
	}
	spec := object.Object["spec"].(map[string]any)
	spec["bundles"], spec["owner"] = bundles, strings.Repeat("𝔊", 512)
	object.SetAnnotations(map[string]string{"heliostat.dev/trace": strings.Repeat("x", 200_000)})
	return object
}
