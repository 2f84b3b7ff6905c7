package snapshotfile

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// checkTogether checks what the fields of a struct say together.
func checkTogether(in *fieldpath.Members, part any) {
	switch v := part.(type) {
	case *landing.Announced:
		if v.Certain && len(v.Values) != 1 {
			in.Member("values").Fail("one value, because certain is true")
		}
	case *model.Slice:
		checkProfile(in.Member("profile"), v)
	case *landing.Promise:
		if v.Pod != nil && v.Pod.Name == "" {
			in.Member("pod").Members().Member("name").Fail("the name by which places accept it")
		}
	case *landing.Place:
		if v.Unproven && !v.AnySize {
			in.Member("unproven").Fail("true only beside anySize: true; otherwise free says what a node can hold")
		}
	case *landing.Card:
		if v.Memory != nil && v.Total > 0 && *v.Memory > v.Total {
			in.Member("memory").Fail(fmt.Sprintf("at most total, which is %d: it is what is free of it", v.Total))
		}
	case *raydemand.Gang:
		checkGang(in, v)
	case *model.WarmEntry:
		bundled := v.Resources != nil || v.Slice != nil
		if v.Group == "" && !bundled {
			in.Member("group").Fail("the name of a worker group, or resources or slice in its place")
		} else if v.Group != "" && (bundled || v.Selectors != nil) {
			in.Member("group").Fail("either a group, or resources, slice and labelSelectors, not both")
		}
	}
}

// checkProfile refuses a profile that is no MIG profile, or that the product does not have.
func checkProfile(in fieldpath.JSON, s *model.Slice) {
	if s.Profile == "" {
		return
	}
	profile, err := gpuinfo.ParseProfile(s.Profile)
	if err != nil {
		in.Fail("a MIG profile such as 1g.10gb")
	} else if product, known := gpuinfo.ProductOf(s.Product); known && !product.Has(profile) {
		var names []string
		for _, p := range product.Profiles {
			if p.Plain() {
				names = append(names, p.Name)
			}
		}
		in.Fail("a profile that " + product.Name + " has: " + strings.Join(names, ", "))
	}
}

// checkGang checks that every alternative has bundles, and that selectors are parallel to them.
func checkGang(in *fieldpath.Members, g *raydemand.Gang) {
	checkBundles(in.Member("bundles"), g.Bundles)
	if n := len(g.BundleSelectors); n != 0 && n != len(g.Bundles) {
		in.Member("bundleLabelSelectors").Fail(fmt.Sprintf("one selector for each of the %d bundles, or none",
			len(g.Bundles)))
	}
	selectors := in.Member("fallbackBundleLabelSelectors")
	for i, bundles := range g.Fallbacks {
		if each := in.Member("fallbackBundles").Element(i); len(bundles) == 0 {
			each.Fail("at least one bundle")
		} else {
			checkBundles(each, bundles)
		}
		if n := len(g.SelectorsOf(i)); n != 0 && n != len(bundles) {
			selectors.Element(i).Fail(fmt.Sprintf("one selector for each of the %d bundles of the alternative, or none",
				len(bundles)))
		}
	}
	if n := len(g.FallbackSelectors); n != 0 && n != len(g.Fallbacks) {
		selectors.Fail(fmt.Sprintf("one list of selectors for each of the %d alternatives, or none", len(g.Fallbacks)))
	}
}

func checkBundles(in fieldpath.JSON, bundles []raydemand.Bundle) {
	for i, b := range bundles {
		if b == nil {
			in.Element(i).Fail(`an object of amounts such as {"GPU": 1}`)
		}
	}
}
