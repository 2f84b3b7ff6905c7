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

func TestTheLargestRequestIsRead(t *testing.T) {
	if r := Decode(largest(1)); r.Unreadable != "" || len(r.Requests) != raydemand.MaxOwnedBundles {
		t.Errorf("it is read as %q with %d bundles", r.Unreadable, len(r.Requests))
	}
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
