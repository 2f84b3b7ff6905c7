package snapshotfile

import (
	"fmt"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// places reads where pods of the groups may run.
func (in input) places() []landing.Place {
	var places []landing.Place
	for _, each := range in.objects() {
		field, done := each.fields()
		unproven, anySize := field("unproven"), field("anySize").Flag()
		if unproven.Flag() && !anySize {
			unproven.Fail("true only beside anySize: true; otherwise free says what a node can hold")
		}
		places = append(places, landing.Place{
			Pool: field("pool").Text(), Node: field("node").Text(),
			Nodes: field("nodes").OptionalCount(0, model.MaxCount),
			New:   field("new").Flag(), AnySize: anySize,
			Unproven: unproven.Flag(), SameNodes: field("sameNodes").Flag(), Like: field("like").Text(),
			Free:      landing.Quantities(field("free").capacity()),
			Cards:     field("cards").placeCards(),
			CardOrder: field("cardOrder").oneOf(landing.FullestCard, landing.EmptiestCard, landing.LastCard),
			Accepts:   field("accepts").texts(), Counted: field("counted").texts(),
			Holds: field("holds").counts(),
		})
		done()
	}
	return places
}

func (in input) placeCards() []landing.Card {
	var cards []landing.Card
	for _, each := range in.objects() {
		field, done := each.fields()
		memory, total := field("memory"), field("total").Count(0, model.MaxCount, 0)
		free := memory.OptionalCount(0, model.MaxCount)
		if free != nil && total > 0 && *free > total {
			memory.Fail(fmt.Sprintf("at most total, which is %d: it is what is free of it", total))
		}
		cards = append(cards, landing.Card{
			Count: field("count").Count(0, model.MaxCount, 0), Total: total, Memory: free,
			Cores: field("cores").OptionalCount(0, model.MaxCount),
			Slots: field("slots").OptionalCount(0, model.MaxCount),
			Used:  field("used").Flag(),
			Parts: field("parts").cardParts(), Refuses: field("refuses").texts(),
		})
		done()
	}
	return cards
}

// cardParts reads the sizes into which a card is cut.
func (in input) cardParts() []landing.Part {
	var parts []landing.Part
	for _, each := range in.objects() {
		field, done := each.fields()
		parts = append(parts, landing.Part{
			Memory: field("memory").Count(0, model.MaxCount, 0), Cores: field("cores").Count(0, 100, 0),
		})
		done()
	}
	return parts
}

// promises reads what other RayClusters have on their way.
func (in input) promises() []landing.Promise {
	var promises []landing.Promise
	for _, each := range in.objects() {
		field, done := each.fields()
		pod := field("pod")
		promises = append(promises, landing.Promise{
			RayCluster: field("rayCluster").NonEmpty("the namespace and name of a RayCluster"),
			Pods:       field("pods").Count(0, model.MaxCount, 0),
			Pod:        pod.promisedPod(),
		})
		done()
	}
	return promises
}

// promisedPod reads what one such pod takes of places, and its name in them.
func (in input) promisedPod() landing.Pod {
	if !in.IsObject() {
		in.Fail(`an object such as {"name": "ns/cluster/group", "requests": {"nvidia.com/gpu": 1}}`)
		return landing.Pod{}
	}
	field, done := in.fields()
	name := field("name").NonEmpty("the name by which places accept it")
	done("requests", "cards", "apart", "spread")
	return *in.placedPod(name)
}

// placedPod reads what one pod of a group takes of places; nil if it is absent.
func (in input) placedPod(group string) *landing.Pod {
	if in.Absent() {
		return nil
	}
	field, done := in.fields()
	defer done("name") // it is the group's
	return &landing.Pod{
		Name: group, Requests: landing.Quantities(field("requests").capacity()), Cards: field("cards").cardRequest(),
		Apart: field("apart").texts(), Spread: field("spread").spreads(),
	}
}

func (in input) cardRequest() *landing.CardRequest {
	if in.Absent() {
		return nil
	}
	field, done := in.fields()
	defer done()
	return &landing.CardRequest{
		Cards: field("cards").Count(0, model.MaxCount, 0), Memory: field("memory").Count(0, model.MaxCount, 0),
		MemoryPercent: field("memoryPercent").Count(0, 100, 0), Cores: field("cores").Count(0, model.MaxCount, 0),
		Whole: field("whole").Flag(), Stacked: field("stacked").Flag(),
		Order: field("order").oneOf(landing.FullestCard, landing.EmptiestCard),
	}
}

func (in input) spreads() []landing.Spread {
	var spreads []landing.Spread
	for _, each := range in.objects() {
		field, done := each.fields()
		spreads = append(spreads, landing.Spread{
			MaxSkew:    field("maxSkew").Count(1, model.MaxCount, 1),
			MinDomains: field("minDomains").Count(0, model.MaxCount, 0),
			Pods:       field("pods").texts(),
		})
		done()
	}
	return spreads
}

// counts reads an object of counts.
func (in input) counts() map[string]int64 {
	all, ok := in.named(`an object of counts such as {"workers": 2}`)
	if !ok {
		return nil
	}
	counts := make(map[string]int64, len(all))
	for _, each := range all {
		counts[each.Name()] = each.Count(0, model.MaxCount, 0)
	}
	return counts
}

// oneOf reads one of some texts; empty if it is absent.
func (in input) oneOf(texts ...string) string {
	text := in.Text()
	for _, each := range texts {
		if text == each || text == "" {
			return text
		}
	}
	in.Fail(fmt.Sprintf("one of %q", texts))
	return ""
}
