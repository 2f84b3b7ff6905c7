package doctor

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// autoscaling are checks of which autoscaler a RayCluster has (docs/reference/facts.md#sidecar-after-a-toggle).
var autoscaling = []Check{
	{
		Code: "sidecar-beside-us", Severity: raydemand.Warning,
		Why: "Ray's own autoscaler runs in the head pod: two would write replicas, so Heliostat falls back to shadow and writes nothing",
		look: perCluster(func(x *exam, o *Object, tell func(sight)) {
			mode := o.root().get("metadata", "annotations", modeAnnotation)
			head := x.head(o)
			if o.Cluster.Head.Sidecar == nodepool.RaySidecar && head != nil && mode.text() == string(nodepool.Managed) {
				tell(sight{of: o, at: mode.at, seen: "managed, and a container autoscaler in pod " + head.Name,
					fix: o.patch(o.set(o.spec().get("enableInTreeAutoscaling").at, false)).then(head.kubectl("delete")).
						hint("the head starts anew, which ends its jobs; or annotate " + modeAnnotation + "=shadow")})
			}
		}),
	},
	{
		Code: "sidecar-missing", Severity: raydemand.Error,
		Why: "the head pod is older than the switch and has no autoscaler, so nothing scales the cluster until it is made anew",
		look: perCluster(func(x *exam, o *Object, tell func(sight)) {
			v, head := o.spec().get("enableInTreeAutoscaling"), x.head(o)
			if mode := o.root().get("metadata", "annotations", modeAnnotation).text(); mode == string(nodepool.Managed) || !v.flag() || head == nil || hasAutoscaler(head) {
				return
			}
			tell(sight{of: o, at: v.at, seen: "true, and no container autoscaler in pod " + head.Name,
				fix: run(head.kubectl("delete")).hint("the head starts anew, which ends its jobs")})
		}),
	},
	{
		Code: "sidecar-left-over", Severity: raydemand.Warning,
		Why: "the sidecar goes on scaling until the head pod is made anew, while the operator already deletes surplus pods of its own choice",
		look: perCluster(func(x *exam, o *Object, tell func(sight)) {
			if head := x.head(o); head != nil && !o.Cluster.InTreeAutoscaling && o.Cluster.Head.Sidecar == nodepool.RaySidecar {
				tell(sight{of: o, at: o.spec().get("enableInTreeAutoscaling").at, seen: "off, and a container autoscaler in pod " + head.Name,
					fix: run(head.kubectl("delete")).hint("the head starts anew, which ends its jobs")})
			}
		}),
	},
	{
		Code: "autoscaler-version-differs", Severity: raydemand.Error,
		Why: "the field and the head's variable RAY_enable_autoscaler_v2 contradict each other: the GCS and the sidecar run different versions, or, without " +
			"in-tree autoscaling, the operator refuses the spec",
		look: perCluster(func(_ *exam, o *Object, tell func(sight)) {
			variable, field := o.versionEnv(), o.spec().get("autoscalerOptions", "version")
			version := field.text()
			refused := variable == "1" && !o.Cluster.InTreeAutoscaling
			if !refused && !(variable == "1" && version == "v1") && !(variable == "0" && version == "v2") {
				return
			}
			at, ops := o.versionVariable()
			tell(sight{of: o, at: at, seen: "RAY_enable_autoscaler_v2=" + variable + ", autoscalerOptions.version " + orNothing(version), fix: o.patch(ops)})
		}),
	},
	{
		Code: "surplus-deleted-at-random", Severity: raydemand.Info,
		Why: "without in-tree autoscaling the operator deletes pods beyond replicas of its own choice, busy or not, whenever somebody lowers the number " +
			"without naming pods, and Heliostat, which names them, does not scale this one (docs/reference/facts.md#operator-surplus)",
		look: perCluster(func(_ *exam, o *Object, tell func(sight)) {
			v, mode := o.spec().get("enableInTreeAutoscaling"), o.root().get("metadata", "annotations", modeAnnotation).text()
			if handsOff := mode == string(nodepool.Shadow) || mode == string(nodepool.Off); handsOff && !v.flag() {
				tell(sight{of: o, at: v.at, seen: orNothing(v.String()) + ", and " + modeAnnotation + " is " + mode,
					fix: run(o.kubectl("annotate", "--overwrite", modeAnnotation+"="+string(nodepool.Managed))).
						hint("or let nobody lower replicas without workersToDelete")})
			}
		}),
	},
}

func orNothing(text string) string {
	if text == "" {
		return "not set"
	}
	return text
}

// hasAutoscaler reports whether the pod has the container that KubeRay puts beside the head.
func hasAutoscaler(pod *Object) bool {
	return slices.ContainsFunc(pod.root().get("spec", "containers").items(), func(c value) bool { return c.get("name").text() == "autoscaler" })
}

// versionVariable is where the head's variable stands, and the operation that takes it away.
func (o *Object) versionVariable() (place, op) {
	for i, entry := range o.spec().get("headGroupSpec", "template", "spec", "containers").items() {
		if i > 0 {
			break
		}
		for _, variable := range entry.get("env").items() {
			if strings.EqualFold(variable.get("name").text(), "RAY_enable_autoscaler_v2") {
				return variable.at, remove(variable.at)
			}
		}
	}
	return nil, op{}
}
