package doctor

import (
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// idleness are checks of what decides when idle workers go.
var idleness = []Check{
	{
		Code: "idle-timeout-negative", Severity: raydemand.Warning,
		Why: "Ray compares idle times with it, so it means what 0 means: a worker goes as soon as it is idle",
		look: perTimeout(func(t timeout, tell func(sight)) {
			if n, ok := t.whole(); ok && n < 0 {
				tell(t.sight())
			}
		}),
	},
	{
		Code: "idle-timeout-zero", Severity: raydemand.Warning,
		Why: "a worker goes as soon as it is idle, and the next task waits for a new pod, on a GPU node perhaps for a new node",
		look: perTimeout(func(t timeout, tell func(sight)) {
			if n, ok := t.whole(); ok && n == 0 {
				tell(t.sight())
			}
		}),
	},
	{
		Code: "idle-timeout-refused", Severity: raydemand.Error,
		Why: "a group has an idle time-out of its own only with autoscaler v2; the operator refuses the spec and carries nothing out for any group " +
			"(docs/reference/facts.md#refused-spec)",
		look: perWorkers(func(_ *exam, g group, tell func(sight)) {
			v := g.get("idleTimeoutSeconds")
			if v.has() && !g.of.version2() && !g.of.accepted() {
				tell(sight{of: g.of, at: v.at, seen: v.String(), fix: g.patch(g.of.set(g.of.spec().get("autoscalerOptions", "version").at, "v2"))})
			}
		}),
	},
	{
		Code: "restart-policy", Severity: raydemand.Error,
		Why: "under autoscaler v2 a stopped worker must not start again in its old pod: the operator refuses the spec, or, where the version comes from a " +
			"variable, idle workers are never taken away",
		look: perGroup(func(_ *exam, g group, tell func(sight)) {
			v := g.template().get("restartPolicy")
			if g.of.version2() && v.has() && v.text() != "Never" && (g.of.Cluster.InTreeAutoscaling || g.of.spec().get("autoscalerOptions", "version").text() == "v2") {
				tell(sight{of: g.of, at: v.at, seen: v.String(), fix: g.patch(op{Op: "replace", At: v.at, Value: "Never"})})
			}
		}),
	},
}

// timeout is one field idleTimeoutSeconds and the object that it stands in.
type timeout struct {
	value
	of    *Object
	patch func(...op) remedy
}

func (t timeout) sight() sight {
	return sight{of: t.of, at: t.at, seen: t.String(), fix: t.patch(op{Op: "replace", At: t.at, Value: defaultIdleTimeout})}
}

// defaultIdleTimeout is Ray's own, in seconds.
const defaultIdleTimeout = 60

func perTimeout(look func(timeout, func(sight))) func(*exam, func(sight)) {
	return func(x *exam, tell func(sight)) {
		for _, o := range x.clusters {
			look(timeout{o.spec().get("autoscalerOptions", "idleTimeoutSeconds"), o, o.patch}, tell)
		}
		for _, g := range x.groups {
			if g.workers != nil {
				look(timeout{g.get("idleTimeoutSeconds"), g.of, g.patch}, tell)
			}
		}
	}
}

// version2 reports whether the RayCluster asks for Ray's autoscaler v2, by its field or by the head's variable.
func (o *Object) version2() bool {
	return o.spec().get("autoscalerOptions", "version").text() == "v2" || o.versionEnv() == "1"
}

// versionEnv is the head's variable RAY_enable_autoscaler_v2 as 1, 0, or empty where it is not set.
func (o *Object) versionEnv() string {
	for _, g := range groupsOf(o, gpuinfo.Names{}) {
		if g.workers != nil {
			continue
		}
		v, ok := env(g.ray(), "RAY_enable_autoscaler_v2")
		switch text := strings.ToLower(v.text()); {
		case !ok || text == "":
		case text == "1" || text == "true":
			return "1"
		default:
			return "0"
		}
	}
	return ""
}

// accepted reports whether the operator has taken this very spec, and so knows better than the rules of one of its versions.
func (o *Object) accepted() bool {
	return o.Cluster.Generation > 0 && o.Cluster.ObservedGeneration >= o.Cluster.Generation
}
