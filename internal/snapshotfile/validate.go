package snapshotfile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// turns matches where a plan may continue: at its beginning, or at a position that a plan before has named.
var turns = regexp.MustCompile("^([0-9a-f]{16})?$")

// Validate returns what a snapshot must not hold, in the order of its fields: numbers out of range, unknown words,
// names that are missing or not unique, and fields that contradict each other. It accepts names of groups that the
// snapshot does not have: a RayCluster may have lost a group that still has pods.
func Validate(s *model.Snapshot) []fieldpath.Fault {
	faults := faultsOf(fieldpath.Path{}, s)
	for i := range s.Nodes { // a head needs neither
		at := fieldpath.NewPath("nodes").Index(i)
		for _, f := range []struct{ key, value, want string }{
			{"pod", s.Nodes[i].Pod, "the pod's name"}, {"group", s.Nodes[i].Group, "the worker group's name"},
		} {
			if f.value == "" {
				faults = append(faults, fieldpath.Fault{Path: at.Key(f.key), Value: fieldpath.Missing, Want: f.want})
			}
		}
	}
	first := map[string]int{}
	for i, place := range s.Places { // a node twice would count what is free there again
		if place.Node == "" || place.New {
			continue
		}
		if before, twice := first[place.Node]; twice {
			faults = append(faults, fieldpath.Fault{Path: fieldpath.NewPath("places").Index(i).Key("node"),
				Value: strconv.Quote(place.Node), Want: fmt.Sprintf("each node once: places[%d] is this one", before)})
		}
		first[place.Node] = i
	}
	if !turns.MatchString(s.Turn) {
		faults = append(faults, fieldpath.Fault{Path: fieldpath.NewPath("turn"), Value: strconv.Quote(s.Turn),
			Want: "deferred.next of the plan before, 16 hexadecimal digits, or none to begin"})
	}
	return faults
}

// faultsOf is Validate for a part of a snapshot, to which a pointer is given with the path at which it is.
func faultsOf(at fieldpath.Path, part any) []fieldpath.Fault {
	var c checker
	c.check(at, reflect.ValueOf(part), &fieldRule{})
	return c.faults
}

// checker collects faults.
type checker struct{ faults []fieldpath.Fault }

// add reports a value, which is missing if it is empty.
func (c *checker) add(at fieldpath.Path, value any, want string) {
	f := fieldpath.Fault{Path: at, Value: fieldpath.Missing, Want: want}
	if text, err := json.Marshal(value); err == nil && string(text) != "null" && string(text) != `""` {
		f.Value = fieldpath.Excerpt(string(text), 60)
	}
	c.faults = append(c.faults, f)
}

func (c *checker) check(at fieldpath.Path, v reflect.Value, rule *fieldRule) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			c.check(at, v.Elem(), rule)
		}
	case reflect.Slice:
		if _, opaque := v.Interface().(json.Marshaler); opaque || v.Len() == 0 {
			return
		}
		c.unique(at, v)
		for i := range v.Len() {
			c.check(at.Index(i), v.Index(i), rule)
		}
	case reflect.Map:
		if rule.AllowsAll(v) {
			return
		}
		before := len(c.faults)
		for each := v.MapRange(); each.Next(); {
			if !rule.Allows(each.Value()) {
				c.add(at.Key(each.Key().String()), each.Value().Interface(), rule.valid)
			}
		}
		slices.SortFunc(c.faults[before:], func(a, b fieldpath.Fault) int {
			return strings.Compare(a.Path.LastKey(), b.Path.LastKey())
		})
	case reflect.Struct:
		c.fields(at, v)
	default:
		if !rule.Allows(v) {
			c.add(at, v.Interface(), rule.valid)
		}
	}
}

func (c *checker) fields(at fieldpath.Path, v reflect.Value) {
	switch v.Addr().Interface().(type) {
	case *time.Time, *raydemand.SliceRequirement: // their decoders check them
		return
	}
	fields := fieldsOf(v.Type())
	for i := range fields {
		f := &fields[i]
		child := v.FieldByIndex(f.Index)
		switch child.Kind() {
		case reflect.Struct:
			c.fields(at.Key(f.Key), child)
		case reflect.Pointer, reflect.Slice, reflect.Map:
			if f.Rule.Required && (child.IsZero() || child.Kind() == reflect.Slice && child.Len() == 0) {
				c.add(at.Key(f.Key), child.Interface(), f.Rule.Want)
			} else if !child.IsZero() {
				c.check(at.Key(f.Key), child, &f.Rule)
			}
		case reflect.String:
			if f.Rule.Required && child.Len() == 0 {
				c.add(at.Key(f.Key), "", cmp.Or(f.Rule.Want, f.Rule.valid))
				continue
			}
			fallthrough
		default:
			if !f.Rule.Allows(child) {
				c.add(at.Key(f.Key), child.Interface(), f.Rule.valid)
			}
		}
	}
	c.together(at, v.Addr().Interface())
}

// unique reports elements of a list with a name that an earlier one has.
func (c *checker) unique(list fieldpath.Path, v reflect.Value) {
	if v.Type().Elem().Kind() != reflect.Struct {
		return
	}
	fields := fieldsOf(v.Type().Elem())
	by := slices.IndexFunc(fields, func(f field) bool { return f.Rule.Unique })
	if by < 0 {
		return
	}
	seen := make(map[string]int, v.Len())
	for i := range v.Len() {
		name := v.Index(i).FieldByIndex(fields[by].Index).String()
		if name == "" && fields[by].Omitted {
			continue
		}
		if first, twice := seen[name]; twice {
			c.add(list.Index(i).Key(fields[by].Key), name,
				fmt.Sprintf("a unique name: %s has this one", list.Index(first)))
		}
		seen[name] = i
	}
}

// together checks what the fields of a struct say together.
func (c *checker) together(at fieldpath.Path, part any) {
	switch v := part.(type) {
	case *landing.Announced:
		if v.Certain && len(v.Values) != 1 {
			c.add(at.Key("values"), v.Values, "one value, because certain is true")
		}
	case *model.Slice:
		c.slice(at, v)
	case *landing.Place:
		if v.Unproven && !v.AnySize {
			c.add(at.Key("unproven"), true, "true only beside anySize: true; otherwise free says what a node can hold")
		}
	case *landing.Card:
		if v.Memory != nil && v.Total > 0 && *v.Memory > v.Total {
			c.add(at.Key("memory"), v.Memory,
				fmt.Sprintf("at most total, which is %d: it is what is free of it", v.Total))
		}
	case *raydemand.Gang:
		c.gang(at, v)
	case *model.WarmEntry:
		bundled := v.Resources != nil || v.Slice != nil
		if v.Group == "" && !bundled {
			c.add(at.Key("group"), "", "the name of a worker group, or resources or slice in its place")
		} else if v.Group != "" && (bundled || v.Selectors != nil) {
			c.add(at.Key("group"), v.Group, "either a group, or resources, slice and labelSelectors, not both")
		}
	}
}

// slice refuses a profile that is no MIG profile, or that the product does not have.
func (c *checker) slice(at fieldpath.Path, s *model.Slice) {
	if s.Profile == "" {
		return
	}
	profile, err := gpuinfo.ParseProfile(s.Profile)
	if err != nil {
		c.add(at.Key("profile"), s.Profile, "a MIG profile such as 1g.10gb")
	} else if product, known := gpuinfo.ProductOf(s.Product); known && !product.Has(profile) {
		c.add(at.Key("profile"), s.Profile, wantProfile(product))
	}
}

// wantProfile lists the profiles of a product without attributes.
func wantProfile(product gpuinfo.Product) string {
	var names []string
	for _, p := range product.Profiles {
		if p.Plain() {
			names = append(names, p.Name)
		}
	}
	return "a profile that " + product.Name + " has: " + strings.Join(names, ", ")
}

// gang checks that every alternative has bundles, and that selectors are parallel to them.
func (c *checker) gang(at fieldpath.Path, g *raydemand.Gang) {
	c.bundles(at.Key("bundles"), g.Bundles)
	if n := len(g.BundleSelectors); n != 0 && n != len(g.Bundles) {
		c.add(at.Key("bundleLabelSelectors"), g.BundleSelectors,
			fmt.Sprintf("one selector for each of the %d bundles, or none", len(g.Bundles)))
	}
	selectors := at.Key("fallbackBundleLabelSelectors")
	for i, bundles := range g.Fallbacks {
		each := at.Key("fallbackBundles").Index(i)
		if len(bundles) == 0 {
			c.add(each, bundles, "at least one bundle")
		}
		c.bundles(each, bundles)
		if of := g.SelectorsOf(i); len(of) != 0 && len(of) != len(bundles) {
			c.add(selectors.Index(i), of,
				fmt.Sprintf("one selector for each of the %d bundles of the alternative, or none", len(bundles)))
		}
	}
	if n := len(g.FallbackSelectors); n != 0 && n != len(g.Fallbacks) {
		c.add(selectors, g.FallbackSelectors,
			fmt.Sprintf("one list of selectors for each of the %d alternatives, or none", len(g.Fallbacks)))
	}
}

func (c *checker) bundles(at fieldpath.Path, bundles []raydemand.Bundle) {
	for i, b := range bundles {
		if b == nil {
			c.add(at.Index(i), b, `an object of amounts such as {"GPU": 1}`)
		}
	}
}
