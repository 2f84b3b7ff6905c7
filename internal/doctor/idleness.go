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
			report(occurrence{Object: o, Path: v.Path(), Seen: v.String(),
				Fix: patch(o, replace(v.Path(), defaultIdleTimeout))})
		}
	}
	for _, o := range x.Clusters {
		examine(o, o.RaySpec().Get("autoscalerOptions", "idleTimeoutSeconds"))
	}
	for _, g := range x.Workers() {
		examine(g.Of, g.Get("idleTimeoutSeconds"))
	}
}

func idleTimeoutRefused(_ *inventory, g rayGroup, report reporter) {
	v := g.Get("idleTimeoutSeconds")
	if v.Has() && !g.Of.UsesAutoscalerV2() && !g.Of.Accepted() {
		version := g.Of.RaySpec().Path("autoscalerOptions", "version")
		report(occurrence{
			Object: g.Of, Path: v.Path(), Seen: v.String(), Fix: patch(g.Of, set(g.Of, version, "v2")),
		})
	}
}

func restartPolicy(_ *inventory, g rayGroup, report reporter) {
	v := g.Template().Get("restartPolicy")
	inField := g.Of.RaySpec().Text("autoscalerOptions", "version") == "v2"
	if g.Of.UsesAutoscalerV2() && v.Has() && v.Text() != "Never" && (g.Of.Cluster.InTreeAutoscaling || inField) {
		report(occurrence{
			Object: g.Of, Path: v.Path(), Seen: v.String(), Fix: patch(g.Of, replace(v.Path(), "Never")),
		})
	}
}
