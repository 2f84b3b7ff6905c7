package requests

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/raydemand"
)

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
