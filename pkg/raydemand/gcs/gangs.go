package gcs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// gangs decodes the pending placement groups and sorts them by id. It skips a placement group without bundles: the GCS
// also lists placement groups that have nothing left to place.
func (d *decoder) gangs(wire []*autoscalerpb.GangResourceRequest) []raydemand.Gang {
	gangs := make([]raydemand.Gang, 0, len(wire))
	bundles, seen := 0, make(map[string]bool, len(wire))
	for i, w := range wire {
		if bundles += bundleCount(w); bundles > maxBundles {
			d.cutDemand("pending_gang_resource_requests", fmt.Sprintf("%d placement groups", len(wire)),
				fmt.Sprintf("only the first %d, with %d bundles at most, count", i, maxBundles))
			break
		}
		if len(w.GetRequests()) == 0 && len(w.GetBundleSelectors()) == 0 {
			continue
		}
		gang, ok := d.gang(w)
		if !ok || len(gang.Bundles) == 0 {
			continue
		}
		if gang.ID != "" && seen[gang.ID] {
			d.badValue("placement group "+gang.ID, "pending_gang_resource_requests.details", "listed twice",
				"only the first entry counts")
			continue
		}
		seen[gang.ID] = true
		gangs = append(gangs, gang)
	}
	slices.SortStableFunc(gangs, func(a, b raydemand.Gang) int { return cmp.Compare(a.ID, b.ID) })
	return gangs
}

func bundleCount(wire *autoscalerpb.GangResourceRequest) int {
	count := len(wire.GetRequests())
	for _, s := range wire.GetBundleSelectors() {
		count += len(s.GetResourceRequests())
	}
	return count
}

func (d *decoder) gang(wire *autoscalerpb.GangResourceRequest) (raydemand.Gang, bool) {
	alternatives := gangAlternatives(wire)
	gang := raydemand.Gang{}
	gang.ID, gang.Strategy = gangIdentity(wire.GetDetails())
	first, ok := d.alternative(alternatives[0])
	if !ok {
		return gang, false
	}
	gang.Bundles, gang.BundleSelectors, gang.TopologyLabel = first.bundles, first.selectors, first.topology
	for _, w := range alternatives[1:] {
		other, ok := d.alternative(w)
		if !ok {
			continue
		}
		if other.topology != gang.TopologyLabel {
			d.badValue("", "bundle_selectors", "an alternative with a topology of its own",
				"the alternative is left out, the first one stands")
			continue
		}
		addFallback(&gang, other)
	}
	return gang, true
}

// alternative is a decoded BundleSelector.
type alternative struct {
	bundles   []raydemand.Bundle
	selectors []raydemand.Selector
	topology  string
}

func (d *decoder) alternative(wire *autoscalerpb.BundleSelector) (a alternative, ok bool) {
	if a.bundles, a.selectors, ok = d.gangBundles(wire.GetResourceRequests()); !ok {
		return a, false
	}
	var shared raydemand.Selector
	if a.topology, shared, ok = d.topology(wire.GetLocalityRequirement()); !ok {
		return a, false
	}
	if len(shared) > 0 && a.selectors == nil {
		a.selectors = make([]raydemand.Selector, len(a.bundles))
	}
	if len(shared) > 0 {
		for i, s := range a.selectors {
			a.selectors[i] = raydemand.NewSelector(slices.Concat(s, shared)...)
		}
	}
	return a, true
}

// addFallback adds an alternative. It keeps FallbackSelectors parallel to Fallbacks, or nil if no alternative has
// selectors.
func addFallback(gang *raydemand.Gang, a alternative) {
	if a.selectors != nil && gang.FallbackSelectors == nil {
		gang.FallbackSelectors = make([][]raydemand.Selector, len(gang.Fallbacks))
	}
	if gang.Fallbacks = append(gang.Fallbacks, a.bundles); gang.FallbackSelectors != nil || a.selectors != nil {
		gang.FallbackSelectors = append(gang.FallbackSelectors, a.selectors)
	}
}

// gangAlternatives returns the alternatives of a gang. It uses bundle_selectors if present, because the plain list has
// no labels.
func gangAlternatives(wire *autoscalerpb.GangResourceRequest) []*autoscalerpb.BundleSelector {
	if alternatives := wire.GetBundleSelectors(); len(alternatives) > 0 {
		return alternatives
	}
	return []*autoscalerpb.BundleSelector{{ResourceRequests: wire.GetRequests()}}
}

// gangIdentity returns the id and the strategy of a gang from its details, "<id hex>:<STRATEGY>|<STATE>".
func gangIdentity(details string) (string, raydemand.Strategy) {
	id, rest, _ := strings.Cut(details, ":")
	name, _, _ := strings.Cut(rest, "|")
	if strategy := raydemand.Strategy(name); strategy.Valid() {
		return id, strategy
	}
	return id, raydemand.Pack
}

// gangBundles returns parallel lists of bundles and selectors. The selectors are nil if no bundle has one. One invalid
// bundle makes the whole gang invalid, because Ray does not start a part of a gang.
func (d *decoder) gangBundles(
	requests []*autoscalerpb.ResourceRequest,
) ([]raydemand.Bundle, []raydemand.Selector, bool) {
	const field = "pending_gang_resource_requests"
	bundles := make([]raydemand.Bundle, 0, len(requests))
	selectors := make([]raydemand.Selector, 0, len(requests))
	constrained := false
	for _, r := range requests {
		bundle, ok := d.bundle(field, r)
		if !ok {
			return nil, nil, false
		}
		alternatives, ok := d.selectors(field, r.GetLabelSelectors())
		if !ok {
			return nil, nil, false
		}
		var selector raydemand.Selector
		if len(alternatives) > 0 {
			selector, constrained = alternatives[0], true
		}
		if len(alternatives) > 1 {
			d.badValue("", field+".label_selectors", "several for one bundle", "only the first counts")
		}
		bundles, selectors = append(bundles, bundle), append(selectors, selector)
	}
	if !constrained {
		selectors = nil
	}
	return bundles, selectors, true
}

// topology decodes placement_group(topology_strategy=…). Ray 2.60 accepts only STRICT_PACK on a label. The label
// selector of the requirement applies to every bundle.
func (d *decoder) topology(wire *autoscalerpb.LocalityRequirement) (label string, shared raydemand.Selector, ok bool) {
	if wire == nil {
		return "", nil, true
	}
	const field = "pending_gang_resource_requests.locality_requirement"
	if wire.GetLocalityConstraint().GetPlacementStrategy() != raypb.PlacementStrategy_STRICT_PACK {
		d.badValue("", field, wire.String(), "the placement group is left out: this form of topology is not known")
		return "", nil, false
	}
	if shared, ok = d.selector(field, wire.GetLabelSelector()); !ok {
		return "", nil, false
	}
	return wire.GetLocalityConstraint().GetLabelName(), shared, true
}
