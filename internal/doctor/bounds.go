package doctor

import (
	"fmt"
	"math"
	"slices"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// raiseMaximum makes 0 <= minReplicas <= maxReplicas.
func raiseMaximum(o *Object, f raydemand.Finding) fix {
	g, found := groupOf(o, f)
	if !found {
		return byHand(o, f)
	}
	low := int64(max(0, g.Workers.Min))
	return patch(o, set(o, g.Path("minReplicas"), low),
		set(o, g.Path("maxReplicas"), max(low, int64(g.Workers.Max))))
}

// fitIn writes a number that the operator can decode.
func fitIn(o *Object, f raydemand.Finding) fix {
	at, ok := pathIn(o, f)
	number := int64(0)
	if g, found := groupOf(o, f); found {
		number = harmless(g, at.LastKey())
	} else if at.LastKey() == "idleTimeoutSeconds" {
		number = defaultIdleTimeout
	}
	if !ok {
		return byHand(o, f)
	}
	return patch(o, replace(at, number))
}

// fitsInt32 reports whether the operator can decode a number; field-out-of-range reports the others.
func fitsInt32(n int64) bool { return n >= math.MinInt32 && n <= math.MaxInt32 }

// bound returns a whole number, or what applies if there is none.
func bound(g rayGroup, field string, absent int64) int64 {
	if n, ok := g.Whole(field); ok {
		return n
	}
	return absent
}

func replicasOutside(_ *inventory, g rayGroup, report reporter) {
	replicas, set := g.Whole("replicas")
	least, most := bound(g, "minReplicas", 0), bound(g, "maxReplicas", math.MaxInt32)
	if !set || !fitsInt32(replicas) || least < 0 || least > most || replicas >= least && replicas <= most {
		return
	}
	report(occurrence{
		Object: g.Of, Path: g.Path("replicas"),
		Seen: fmt.Sprintf("replicas %d, minReplicas %d, maxReplicas %d", replicas, least, most),
		Fix:  patch(g.Of, replace(g.Path("replicas"), min(most, max(least, replicas)))),
	})
}

// harmless returns a number for a field whose own number cannot be read.
func harmless(g rayGroup, field string) int64 {
	switch field {
	case "maxReplicas":
		return leastMaximum(g)
	case "numOfHosts":
		return 1
	case "idleTimeoutSeconds":
		return defaultIdleTimeout
	case "replicas":
		return smallBound(g, "minReplicas")
	}
	return 0
}

// leastMaximum returns the smallest maxReplicas that changes nothing now.
func leastMaximum(g rayGroup) int64 {
	return max(smallBound(g, "minReplicas"), smallBound(g, "replicas"), 1)
}

func smallBound(g rayGroup, field string) int64 {
	if n := bound(g, field, 0); n >= 0 && n <= math.MaxInt32 {
		return n
	}
	return 0
}

// boundFields are the bounds of a group; the names of two of them are similar.
var boundFields = []string{"replicas", "minReplicas", "maxReplicas"}

func gpuGroupUnbounded(_ *inventory, g rayGroup, report reporter) {
	misspelt := func(key string) bool { return fieldpath.Slip(key, boundFields) == "maxReplicas" }
	if !g.Has("maxReplicas") && !slices.ContainsFunc(g.Keys(), misspelt) && g.requestsGPU() {
		at := g.Path("maxReplicas")
		report(occurrence{
			Object: g.Of, Path: at,
			Fix: patch(g.Of, set(g.Of, at, leastMaximum(g))).
				Hint("set it to as many workers as the group may have"),
		})
	}
}
