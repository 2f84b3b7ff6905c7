package manifests

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/internal/fieldpath"
)

// mostShown is how many bytes of a value an error shows.
const mostShown = 60

// objectsOf returns the objects of one kind under a key of the file: an array, an object with items as kubectl prints
// it, or one object.
func objectsOf(raw json.RawMessage, key, kind string) ([]map[string]any, error) {
	if raw == nil {
		return nil, nil
	}
	want := "want " + kind + " objects as the API prints them: a list, or an object with items"
	var items []map[string]any
	decode := func(into any) error { return json.NewDecoder(bytes.NewReader(raw)).Decode(into) }
	if err := decode(&items); err != nil {
		list := struct {
			Kind  string          `json:"kind"`
			Items json.RawMessage `json:"items"`
		}{}
		if err := decode(&list); err != nil {
			return nil, fmt.Errorf("%s: %s: %s", key, fieldpath.Excerpt(string(raw), mostShown), want)
		}
		if list.Kind == kind {
			one := map[string]any{}
			return []map[string]any{one}, decode(&one)
		}
		if list.Items == nil {
			return nil, fmt.Errorf("%s: an object without items: %s", key, want)
		}
		if err := json.Unmarshal(list.Items, &items); err != nil {
			return nil, fmt.Errorf("%s.items: %s: %s", key, fieldpath.Excerpt(string(list.Items), mostShown), want)
		}
	}
	seen := map[string]int{}
	for i, item := range items {
		if is := item["kind"]; item == nil || is != nil && is != kind {
			return nil, fmt.Errorf("%s[%d]: kind is %s: %s", key, i, fieldpath.Shown(is), want)
		}
		object := unstructured.Unstructured{Object: item}
		if object.GetName() == "" {
			continue // an excerpt without a name is an object of its own
		}
		name := cmp.Or(object.GetNamespace(), anyNamespace) + "/" + object.GetName()
		if first, twice := seen[name]; twice {
			return nil, fmt.Errorf("%s[%d]: metadata.name is %q, as in %s[%d]: want each object once", key, i,
				object.GetName(), key, first)
		}
		seen[name] = i
	}
	return items, nil
}
