package doctor

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/typo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// spelling are checks of fields and values that the CRD does not have. The API server drops an unknown field, and kubectl only warns of it; objects of a file
// have passed neither. A name that is like none of the known ones may be of a newer operator.
var spelling = []Check{
	{
		Code: "field-misspelt", Severity: raydemand.Error,
		Why: "the CRD has no such field: the API server drops it, and what it says does not hold",
		look: perCluster(func(_ *exam, o *Object, tell func(sight)) {
			spec := o.spec()
			lookForSlips(o, spec, clusterFields, tell)
			lookForSlips(o, spec.get("autoscalerOptions"), autoscalerFields, tell)
			for _, g := range spec.get("workerGroupSpecs").items() {
				lookForSlips(o, g, groupFields, tell)
			}
		}),
	},
	{
		Code: "upscaling-mode-unknown", Severity: raydemand.Error,
		Why: "the API server takes " + strings.Join(upscalingModes, ", ") + " only, and refuses the object",
		look: perCluster(func(_ *exam, o *Object, tell func(sight)) {
			if v := o.spec().get("autoscalerOptions", "upscalingMode"); v.has() && !slices.Contains(upscalingModes, v.text()) {
				tell(sight{of: o, at: v.at, seen: v.String(), fix: o.patch(op{Op: "replace", At: v.at, Value: "Default"})})
			}
		}),
	},
	{
		Code: "gpu-group-unbounded", Severity: raydemand.Warning,
		Why: "a group without maxReplicas may grow to 2147483647 workers, which is what the CRD puts there: one wrong request for resources orders GPUs without end",
		look: perWorkers(func(_ *exam, g group, tell func(sight)) {
			v := g.get("maxReplicas")
			slip := slices.ContainsFunc(g.keys(), func(key string) bool { return typo.Slip(key, groupFields) == "maxReplicas" })
			if !v.has() && !slip && g.asksForGPU() {
				tell(sight{of: g.of, at: v.at, fix: g.patch(g.of.set(v.at, max(g.smallBound("minReplicas"), g.smallBound("replicas"), 1))).hint("with as many as it may have")})
			}
		}),
	},
}

// Fields of a RayCluster's spec, of its autoscalerOptions and of a worker group in KubeRay v1.6.
var (
	clusterFields = []string{"upgradeStrategy", "authOptions", "suspend", "managedBy", "autoscalerOptions", "headServiceAnnotations", "enableInTreeAutoscaling",
		"gcsFaultToleranceOptions", "headGroupSpec", "rayVersion", "workerGroupSpecs"}
	autoscalerFields = []string{"resources", "image", "imagePullPolicy", "securityContext", "idleTimeoutSeconds", "upscalingMode", "version", "env", "envFrom",
		"volumeMounts", "command", "args"}
	groupFields = []string{"suspend", "groupName", "replicas", "minReplicas", "maxReplicas", "idleTimeoutSeconds", "resources", "labels", "rayStartParams",
		"template", "scaleStrategy", "numOfHosts", "priority"}
	upscalingModes = []string{"Default", "Aggressive", "Conservative"}
)

func lookForSlips(o *Object, v value, known []string, tell func(sight)) {
	for _, key := range v.keys() {
		right := typo.Slip(key, known)
		if right == "" {
			continue
		}
		s := sight{of: o, at: v.get(key).at, seen: key, more: "meant is " + right, fix: o.patch(move(v.get(key).at, v.get(right).at))}
		if v.get(right).has() {
			s.fix = o.patch(remove(v.get(key).at))
		}
		tell(s)
	}
}
