package doctor

import (
	"fmt"
	"math"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// bounds are checks of replicas, minReplicas and maxReplicas.
var bounds = []Check{
	{
		Code: "min-above-max", Severity: raydemand.Error,
		Why: "the operator refuses the spec and leaves the whole cluster alone, all groups, without a word in its status " +
			"(docs/reference/facts.md#refused-spec)",
		look: perWorkers(func(_ *exam, g group, tell func(sight)) {
			least, most := g.bound("minReplicas", 0), g.bound("maxReplicas", math.MaxInt32)
			if least >= 0 && most >= 0 && least <= most || least > math.MaxInt32 || most > math.MaxInt32 {
				return
			}
			low := max(0, least)
			tell(sight{of: g.of, at: g.at.then("minReplicas"), seen: fmt.Sprintf("minReplicas %d, maxReplicas %d", least, most),
				fix: g.patch(g.of.set(g.get("minReplicas").at, low), g.of.set(g.get("maxReplicas").at, max(low, most)))})
		}),
	},
	{
		Code: "replicas-outside", Severity: raydemand.Warning,
		Why: "the operator keeps the group at the nearer bound whatever replicas says, so the number misleads whoever reads it",
		look: perWorkers(func(_ *exam, g group, tell func(sight)) {
			replicas, set := g.get("replicas").whole()
			least, most := g.bound("minReplicas", 0), g.bound("maxReplicas", math.MaxInt32)
			if !set || replicas > math.MaxInt32 || least < 0 || least > most || replicas >= least && replicas <= most {
				return
			}
			v := g.get("replicas")
			tell(sight{of: g.of, at: v.at, seen: fmt.Sprintf("replicas %d, minReplicas %d, maxReplicas %d", replicas, least, most),
				fix: g.patch(op{Op: "replace", At: v.at, Value: min(most, max(least, replicas))})})
		}),
	},
	{
		Code: "field-out-of-range", Severity: raydemand.Error,
		Why: "the API server stores it, and the operator's list then fails for the RayClusters of all namespaces: none of them follows its spec " +
			"(docs/reference/facts.md#undecodable-object)",
		look: perWorkers(func(_ *exam, g group, tell func(sight)) {
			for _, field := range []string{"replicas", "minReplicas", "maxReplicas", "numOfHosts", "idleTimeoutSeconds", "priority"} {
				v := g.get(field)
				if n, isFloat := v.raw.(float64); isFloat && math.Abs(n) > math.MaxInt32 || tooLarge(v) {
					tell(sight{of: g.of, at: v.at, seen: v.String(), fix: g.patch(op{Op: "replace", At: v.at, Value: g.instead(field)})})
				}
			}
		}),
	},
}

// bound is a whole number, or what holds where there is none.
func (g group) bound(field string, absent int64) int64 {
	if n, ok := g.get(field).whole(); ok {
		return n
	}
	return absent
}

func tooLarge(v value) bool {
	n, ok := v.whole()
	return ok && (n > math.MaxInt32 || n < math.MinInt32)
}

// instead is a harmless number for a field whose own cannot be read.
func (g group) instead(field string) int64 {
	switch field {
	case "maxReplicas":
		return max(g.smallBound("minReplicas"), g.smallBound("replicas"), 1)
	case "numOfHosts":
		return 1
	case "idleTimeoutSeconds":
		return 60
	case "replicas":
		return g.smallBound("minReplicas")
	}
	return 0
}

func (g group) smallBound(field string) int64 {
	if n := g.bound(field, 0); n >= 0 && n <= math.MaxInt32 {
		return n
	}
	return 0
}
