package rig

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// LargestBundles are the bundles of a ResourceRequest that take most memory: they are at all limits of its
// CustomResourceDefinition at once. Two seeds have no bundle in common.
func LargestBundles(seed int) []any {
	const wide = "𝔊" // a character of four bytes
	bundles := make([]any, raydemand.MaxOwnedBundles)
	text := raydemand.MaxOwnedText
	for i := range bundles {
		var selectors []any
		for k := range raydemand.MaxOwnedSelectors {
			selectors = append(selectors, map[string]any{"k": fmt.Sprint(k)})
			text -= 2
		}
		bundles[i] = map[string]any{"count": int64(1), "labelSelectors": selectors,
			"slice": map[string]any{"memory": int64(1 << 30)}}
	}
	names := raydemand.MaxOwnedBundles * raydemand.MaxOwnedResources
	for i := range bundles {
		resources := map[string]any{}
		for k := range raydemand.MaxOwnedResources {
			name := fmt.Sprintf("%d-%d-%d", seed, i, k)
			name += strings.Repeat(wide, max(0, text/names-len(name)))
			resources[name] = int64(1)
			text, names = text-len([]rune(name)), names-1
		}
		bundles[i].(map[string]any)["resources"] = resources
	}
	return bundles
}
