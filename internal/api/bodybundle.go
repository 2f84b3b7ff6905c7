package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// requestedBundle decodes an entry of bundles. If resources or slice is an object, then resources, slice and count have
// their meaning in this API; otherwise the entry is a plain bundle, in which they are Ray resources with these names.
func (d *decoder) requestedBundle(path fieldpath.Path) (apiv1.BundleRequest, error) {
	entry := apiv1.BundleRequest{Bundle: raydemand.Bundle{}, Count: 1}
	special := map[string]json.RawMessage{}
	bundle, err := d.bundleWith(path, func(name string) (bool, error) {
		if name != "resources" && name != "slice" && name != "count" {
			return false, nil
		}
		raw, err := d.raw()
		special[name] = raw
		return true, err
	})
	if err != nil {
		return entry, err
	}
	entry.Bundle = bundle
	isObject := func(name string) bool { return strings.HasPrefix(string(special[name]), "{") }
	isPlain := !isObject("resources") && !isObject("slice")
	for _, name := range []string{"resources", "slice", "count"} {
		raw, given := special[name]
		switch at := path.Key(name); {
		case !given:
		case name == "slice" && isObject(name):
			entry.Slice = d.slice(at, raw)
		case name == "resources" && isObject(name):
			d.nested(raw, func(inner *decoder) {
				more, _ := inner.bundle(at)
				entry.Bundle.Add(more)
			})
		case name == "count" && !isPlain:
			entry.Count = d.count(at, raw)
		default:
			d.nested(raw, func(inner *decoder) {
				if amount, _ := inner.amount(at); amount > 0 {
					entry.Bundle[name] = amount
				}
			})
		}
	}
	return entry, nil
}

// slice decodes a slice requirement and records its fault.
func (d *decoder) slice(path fieldpath.Path, raw json.RawMessage) *raydemand.SliceRequirement {
	slice, err := raydemand.ParseSliceRequirement(raw)
	var bad *raydemand.SliceError
	if errors.As(err, &bad) {
		if bad.Field != "" {
			path = path.Key(bad.Field)
		}
		d.fault(path, bad.Value, bad.Want)
	}
	return slice
}

func (d *decoder) count(path fieldpath.Path, raw json.RawMessage) int64 {
	var count int64
	if err := json.Unmarshal(raw, &count); err != nil || count < 1 || count > maxCPUs {
		d.fault(path, string(raw), fmt.Sprintf("a whole number from 1 to %d", maxCPUs))
		return 1
	}
	return count
}

func (d *decoder) bundle(path fieldpath.Path) (raydemand.Bundle, error) {
	return d.bundleWith(path, func(string) (bool, error) { return false, nil })
}

// bundleWith decodes a bundle. It asks special first for each member, which reports whether it has decoded the value.
func (d *decoder) bundleWith(path fieldpath.Path, special func(name string) (bool, error)) (raydemand.Bundle, error) {
	bundle, names := raydemand.Bundle{}, 0
	err := d.object(path, func(name string, at fieldpath.Path) error {
		if names++; names == d.maxResources+1 {
			d.fault(path, "more", fmt.Sprintf("at most %d resources", d.maxResources))
		}
		if names > d.maxResources {
			return d.skip()
		}
		if done, err := special(name); done || err != nil {
			return err
		}
		if !isName(name) {
			return d.badName(path, name, "a resource name")
		}
		d.text += utf8.RuneCountInString(name)
		amount, err := d.amount(at)
		if amount > 0 {
			bundle[name] = amount
		}
		return err
	})
	return bundle, err
}
