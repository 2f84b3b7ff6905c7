package doctor

import (
	"heliostat.dev/heliostat/internal/fieldpath"
)

// defaultIdleTimeout is Ray's own, in seconds.
const defaultIdleTimeout = 60

// idleTimeoutZero reports fields idleTimeoutSeconds of RayClusters and their worker groups that are 0.
func idleTimeoutZero(x *inventory, report reporter) {
	examine := func(o *Object, v fieldpath.Value) {
		if n, ok := v.Whole(); ok && n == 0 {
			report(shows(o, v, patch(o, replace(v.Path(), defaultIdleTimeout))))
		}
	}
	for _, o := range x.Clusters {
		examine(o, o.raySpec().Get("autoscalerOptions", "idleTimeoutSeconds"))
	}
	for _, g := range x.workers {
		examine(g.Of, g.Get("idleTimeoutSeconds"))
	}
}

func idleTimeoutRefused(_ *inventory, g rayGroup, report reporter) {
	v := g.Get("idleTimeoutSeconds")
	if v.Has() && !g.Of.usesAutoscalerV2() && !g.Of.accepted() {
		version := g.Of.raySpec().Path("autoscalerOptions", "version")
		report(shows(g.Of, v, patch(g.Of, set(g.Of, version, "v2"))))
	}
}

func restartPolicy(_ *inventory, g rayGroup, report reporter) {
	v := g.template().Get("restartPolicy")
	inField := g.Of.raySpec().Text("autoscalerOptions", "version") == "v2"
	if g.Of.usesAutoscalerV2() && v.Has() && v.Text() != "Never" && !g.Of.accepted() &&
		(g.Of.Cluster.InTreeAutoscaling || inField) {
		found := shows(g.Of, v, patch(g.Of, replace(v.Path(), "Never")))
		found.More = "the first release after 1.7.0 allows it with rayVersion 2.56 or later (kuberay #4816)"
		report(found)
	}
}
