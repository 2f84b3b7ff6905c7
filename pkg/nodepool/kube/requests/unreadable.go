package requests

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// unreadable says which field of a spec cannot be read, and what would be right, after the whole spec failed with err.
func unreadable(spec any, err error) string {
	fields, isObject := spec.(map[string]any)
	if !isObject {
		return fmt.Sprintf("spec: %s: want an object", shown(spec))
	}
	bundles, _ := fields["bundles"].([]any)
	for i, bundle := range bundles {
		if why := unreadableBundle(bundle); why != "" {
			return fmt.Sprintf("spec.bundles[%d]%s", i, why)
		}
	}
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return decode.Short(err.Error())
	}
	name := wrong.Field[strings.LastIndex(wrong.Field, ".")+1:] // without the embedded types before it
	return fmt.Sprintf("spec.%s: %s: want %s", name, shown(fields[name]), fieldpath.WantType(wrong.Type))
}

// unreadableBundle says which field of a bundle cannot be read; empty if all can.
func unreadableBundle(bundle any) string {
	fields, isObject := bundle.(map[string]any)
	if !isObject {
		return fmt.Sprintf(": %s: want an object with resources", shown(bundle))
	}
	resources, isObject := fields["resources"].(map[string]any)
	if !isObject && fields["resources"] != nil {
		return fmt.Sprintf(`.resources: %s: want an object such as {"GPU": 1}`, shown(fields["resources"]))
	}
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		if decodeExactly(resources[name], new(raydemand.Amount)) != nil {
			return fmt.Sprintf(".resources.%s: %s: want a number below 10^14, such as 0.5",
				fieldpath.Excerpt(name, mostShown), shown(resources[name]))
		}
	}
	err := decodeExactly(bundle, new(raydemand.Request))
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &wrong) && fields[wrong.Field] != nil:
		return fmt.Sprintf(".%s: %s: want %s", wrong.Field, shown(fields[wrong.Field]), fieldpath.WantType(wrong.Type))
	}
	return ": " + decode.Short(err.Error())
}

// decodeExactly decodes a value exactly, without floats.
func decodeExactly(value, into any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// mostShown bounds in bytes what a text shows of a name or a value.
const mostShown = 40

// shown is the beginning of a value in JSON.
func shown(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%T", value)
	}
	return fieldpath.Excerpt(string(text), mostShown)
}
