package doctor

import (
	"slices"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/internal/typo"
)

// Fields of a RayCluster's spec, of its autoscalerOptions and of a worker group in KubeRay v1.6. The API server drops
// an unknown field and kubectl only warns; objects in a file have passed neither. A name that is not similar to a known
// one may be that of a newer operator.
var (
	clusterFields = []string{
		"upgradeStrategy", "authOptions", "suspend", "managedBy", "autoscalerOptions", "headServiceAnnotations",
		"enableInTreeAutoscaling", "gcsFaultToleranceOptions", "headGroupSpec", "rayVersion", "workerGroupSpecs",
	}
	autoscalerFields = []string{
		"resources", "image", "imagePullPolicy", "securityContext", "idleTimeoutSeconds", "upscalingMode", "version",
		"env", "envFrom", "volumeMounts", "command", "args",
	}
	groupFields = []string{
		"suspend", "groupName", "replicas", "minReplicas", "maxReplicas", "idleTimeoutSeconds", "resources", "labels",
		"rayStartParams", "template", "scaleStrategy", "numOfHosts", "priority",
	}
	upscalingModes = []string{"Default", "Aggressive", "Conservative"}
)

func fieldMisspelt(_ *inventory, o *Object, report reporter) {
	spec := o.raySpec()
	reportMisspelt(o, spec, clusterFields, report)
	reportMisspelt(o, spec.Get("autoscalerOptions"), autoscalerFields, report)
	for _, group := range spec.Items("workerGroupSpecs") {
		reportMisspelt(o, group, groupFields, report)
	}
}

func reportMisspelt(o *Object, v fieldpath.Value, known []string, report reporter) {
	for _, key := range v.Keys() {
		right := typo.Slip(key, known)
		if right == "" {
			continue
		}
		repair := patch(o, move(v.Path(key), v.Path(right)))
		if v.Has(right) {
			repair = patch(o, remove(v.Path(key)))
		}
		report(occurrence{Object: o, Path: v.Path(key), Seen: key, Fix: repair,
			More: "did you mean " + right + "?"})
	}
}

func upscalingModeUnknown(_ *inventory, o *Object, report reporter) {
	v := o.raySpec().Get("autoscalerOptions", "upscalingMode")
	if v.Has() && !slices.Contains(upscalingModes, v.Text()) {
		report(shows(o, v, patch(o, replace(v.Path(), "Default"))))
	}
}
