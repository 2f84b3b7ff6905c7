package nodeguard

import (
	"slices"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// mostShapes bounds the shapes of demand that are compared with each idle node. With more, any node may get work.
const mostShapes = 32

// demand is what waits in Ray.
type demand struct {
	requests []raydemand.Request
	// any: there may be more than requests says, so every node may get work.
	any bool
}

// waitingFor returns the demand that waits, as Ray reports it: what was just placed is part of it.
func waitingFor(v observe.View) demand {
	waiting := v.State.Demand
	d := demand{requests: slices.Clone(waiting.Requests), any: v.State.Truncated}
	for _, gang := range waiting.Gangs {
		d.add(gang.Bundles, gang.BundleSelectors)
		for i, bundles := range gang.Fallbacks {
			d.add(bundles, gang.SelectorsOf(i))
		}
	}
	d.any = d.any || len(d.requests) > mostShapes
	return d
}

func (d *demand) add(bundles []raydemand.Bundle, selectors []raydemand.Selector) {
	if len(d.requests) > mostShapes {
		return
	}
	for i, bundle := range bundles {
		request := raydemand.Request{Bundle: bundle, Count: 1}
		if i < len(selectors) {
			request.Selectors = selectors[i : i+1]
		} else if i > 0 && bundle.Equal(bundles[i-1]) {
			continue
		}
		d.requests = append(d.requests, request)
	}
}

// mayRunOn reports whether something that waits fits on the node when the node is empty.
func (d demand) mayRunOn(n *raydemand.Node) bool {
	return d.any || slices.ContainsFunc(d.requests, func(r raydemand.Request) bool {
		return n.Total.Fits(r.Bundle) && (len(r.Selectors) == 0 ||
			slices.ContainsFunc(r.Selectors, func(s raydemand.Selector) bool { return s.Matches(n.Labels) }))
	})
}
