package snapshotfile

import (
	"fmt"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func (in input) requests() []raydemand.Request {
	var requests []raydemand.Request
	for _, each := range in.list() {
		requests = append(requests, each.request())
	}
	return requests
}

func (in input) request() raydemand.Request {
	field, done := in.fields()
	defer done()
	r := raydemand.Request{
		Bundle:    field("resources").bundle(),
		Count:     field("count").Count(1, model.MaxCount, 0),
		Selectors: field("labelSelectors").selectors(),
		Moving:    field("moving").Flag(),
		Slice:     field("slice").sliceRequirement(),
	}
	if r.Bundle == nil {
		field("resources").Fail(`an object of amounts such as {"CPU": 1}`)
	}
	if r.Count == 0 {
		field("count").Fail("how many of them wait, at least 1")
	}
	return r.Sliced()
}

func (in input) gangs() []raydemand.Gang {
	seen := map[string]int{}
	var gangs []raydemand.Gang
	for i, each := range in.list() {
		g, id := each.gang()
		gangs = append(gangs, g)
		if g.ID != "" {
			id.unique(seen, g.ID, i)
		}
	}
	return gangs
}

func (in input) gang() (raydemand.Gang, input) {
	field, done := in.fields()
	defer done()
	g := raydemand.Gang{
		ID:              field("id").Text(),
		Strategy:        raydemand.Strategy(field("strategy").Text()),
		Bundles:         field("bundles").bundles(),
		BundleSelectors: field("bundleLabelSelectors").selectors(),
		TopologyLabel:   field("topologyLabel").Text(),
	}
	for _, each := range field("fallbackBundles").list() {
		g.Fallbacks = append(g.Fallbacks, each.bundles())
	}
	g.FallbackSelectors = field("fallbackBundleLabelSelectors").fallbackSelectors(g.Fallbacks)
	if !g.Strategy.Valid() {
		field("strategy").Fail("PACK, SPREAD, STRICT_PACK or STRICT_SPREAD")
	}
	if len(g.BundleSelectors) != 0 && len(g.BundleSelectors) != len(g.Bundles) {
		const want = "one selector for each of the %d bundles, or none"
		field("bundleLabelSelectors").Fail(fmt.Sprintf(want, len(g.Bundles)))
	}
	return g, field("id")
}

// fallbackSelectors reads one list for each alternative, either empty or parallel to its bundles.
func (in input) fallbackSelectors(alternatives [][]raydemand.Bundle) [][]raydemand.Selector {
	var all [][]raydemand.Selector
	for i, each := range in.list() {
		selectors := each.selectors()
		if i < len(alternatives) && len(selectors) != 0 && len(selectors) != len(alternatives[i]) {
			const want = "one selector for each of the %d bundles of the alternative, or none"
			each.Fail(fmt.Sprintf(want, len(alternatives[i])))
		}
		all = append(all, selectors)
	}
	if len(all) != 0 && len(all) != len(alternatives) {
		in.Fail(fmt.Sprintf("one list of selectors for each of the %d alternatives, or none", len(alternatives)))
	}
	return all
}

// bundles reads the bundles of a gang, at least one.
func (in input) bundles() []raydemand.Bundle {
	var bundles []raydemand.Bundle
	for _, each := range in.list() {
		b := each.bundle()
		if b == nil {
			each.Fail(`an object of amounts such as {"GPU": 1}`)
		}
		bundles = append(bundles, b)
	}
	if len(bundles) == 0 {
		in.Fail("at least one bundle")
	}
	return bundles
}

// ReadDemand reads what a task, a bundle or a placement group requests. An object with bundles is a gang of a snapshot,
// and its id is optional; ReadRequest reads everything else. The question then has one of the two. Errors are those of
// ReadRequest.
func ReadDemand(text, name string) (model.Question, error) {
	in, doc, err := argument(text, name, `an object of amounts such as {"CPU": 4, "GPU": 0.5}`)
	if err != nil {
		return model.Question{}, err
	}
	if bundles := in.Members().Member("bundles"); !in.Failed() && bundles.IsList() {
		gang, _ := in.gang()
		return model.Question{AskedGang: &gang}, strictError(doc, name)
	}
	if count := in.Members().Member("count"); !in.Failed() && !count.Absent() {
		resources, slice := in.Members().Member("resources"), in.Members().Member("slice")
		if !resources.IsObject() && !slice.IsObject() {
			count.Fail(`{"resources": {…}, "count": ` + string(count.Raw()) + `}, because count is not a resource`)
			return model.Question{}, strictError(doc, name)
		}
	}
	request, err := ReadRequest(text, name)
	return model.Question{Demand: &request}, err
}
