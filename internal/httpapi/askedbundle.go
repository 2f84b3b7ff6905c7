package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// asked reads an entry. The keys resources, slice and count are Ray resources of these names when they hold numbers alone; with an object in
// one of the first two they are what the words say.
func (d *decoder) asked(path string) (apiv1.AskedBundle, error) {
	read := apiv1.AskedBundle{Bundle: raydemand.Bundle{}, Count: 1}
	own, count := map[string]json.RawMessage{}, json.RawMessage(nil)
	bundle, err := d.bundleWith(path, func(name string) (bool, error) {
		if name != "resources" && name != "slice" && name != "count" {
			return false, nil
		}
		raw, err := d.raw()
		if name == "count" {
			count = raw
		}
		own[name] = raw
		return true, err
	})
	if err != nil {
		return read, err
	}
	read.Bundle = bundle
	isObject := func(name string) bool { return strings.HasPrefix(string(own[name]), "{") }
	wished := isObject("resources") || isObject("slice")
	for _, name := range []string{"resources", "slice", "count"} {
		raw, given := own[name]
		switch at := join(path, name); {
		case !given:
		case name == "slice" && isObject(name):
			read.Slice = d.wish(at, raw)
		case name == "resources" && isObject(name):
			d.within(raw, func(inner *decoder) {
				more, _ := inner.bundle(at)
				read.Bundle.Add(more)
			})
		case name == "count" && wished:
			read.Count = d.count(at, count)
		default:
			d.within(raw, func(inner *decoder) {
				if amount, _ := inner.amount(at); amount > 0 {
					read.Bundle[name] = amount
				}
			})
		}
	}
	return read, nil
}

// wish reads a slice wish; what is wrong with it is a fault.
func (d *decoder) wish(path string, raw json.RawMessage) *raydemand.SliceRequirement {
	wish, err := raydemand.ParseSliceRequirement(raw)
	var refused *raydemand.SliceError
	if errors.As(err, &refused) {
		d.fault(strings.TrimSuffix(join(path, refused.Field), "."), refused.Value, refused.Want)
	}
	return wish
}

func (d *decoder) count(path string, raw json.RawMessage) int64 {
	var count int64
	if err := json.Unmarshal(raw, &count); err != nil || count < 1 || count > maxCPUs {
		d.fault(path, string(raw), fmt.Sprintf("a whole number from 1 to %d", maxCPUs))
		return 1
	}
	return count
}

// raw reads one whole value as it stands.
func (d *decoder) raw() (json.RawMessage, error) {
	var raw json.RawMessage
	if err := d.tokens.Decode(&raw); err != nil {
		d.faults = append(d.faults, apiv1.FieldError{Expected: fmt.Sprintf("JSON, at byte %d: %v", d.tokens.InputOffset(), err)})
		return nil, errSyntax
	}
	return raw, nil
}

// within reads a value that was set aside; its faults are this decoder's.
func (d *decoder) within(raw json.RawMessage, read func(inner *decoder)) {
	inner := newDecoder(raw)
	read(inner)
	for _, f := range inner.faults {
		d.fault(f.Field, f.Value, f.Expected)
	}
}
