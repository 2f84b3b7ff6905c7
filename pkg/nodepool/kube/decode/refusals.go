package decode

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// reportRefusals adds a finding for each reason why the operator v1.6.2 emits the Event InvalidRayClusterSpec, and
// reports whether there is one. The operator then stops working on every group, and no condition of the status says so
// (docs/reference/facts.md#refused-spec). The rules are those of its utils.ValidateRayClusterSpec that concern scaling.
// Callers skip objects whose generation the operator has accepted.
func reportRefusals(spec Fields, groups []nodepool.WorkerGroup, inTree bool) bool {
	mark := len(spec.Report.All)
	head := spec.Object("headGroupSpec")
	if isPatch(spec) {
		spec.Report.Add(raydemand.Error, nodepool.SpecRefused, spec.at(), "no container",
			"no pod template has a container, so the operator rejects the spec",
			"add the containers; of a patch of Kustomize, examine what `kubectl kustomize` prints")
		return true
	}
	headEnv := map[string]envVar{}
	if containers := head.Object("template").Object("spec").Objects("containers"); len(containers) > 0 {
		headEnv = decodeContainer(containers[0]).env
	}
	v2 := spec.Object("autoscalerOptions").Text("version") == "v2"
	envV2 := headEnv["RAY_enable_autoscaler_v2"].value == "1" || headEnv["RAY_enable_autoscaler_v2"].value == "true"
	if !inTree && envV2 {
		refuse(head, head.at("template"), "RAY_enable_autoscaler_v2",
			"the variable requires enableInTreeAutoscaling: true")
	}
	refuseGroup(head, v2 && inTree)
	refused := slices.ContainsFunc(groups,
		func(g nodepool.WorkerGroup) bool { return g.Min < 0 || g.Max < 0 || g.Min > g.Max })
	for i, group := range spec.Objects("workerGroupSpecs") {
		refuseGroup(group, v2 && inTree)
		if groups[i].IdleTimeout != nil && !v2 && !envV2 {
			refuse(group, group.at("idleTimeoutSeconds"), groups[i].IdleTimeout.String(),
				"it requires autoscalerOptions.version: v2")
		}
		if groups[i].Suspended && inTree {
			refuse(group, group.at("suspend"), "true", "a group cannot be suspended with enableInTreeAutoscaling")
		}
	}
	return refused ||
		slices.ContainsFunc(spec.Report.All[mark:],
			func(x raydemand.Finding) bool { return x.Code == nodepool.SpecRefused })
}

// isPatch reports whether no group and not the head has a container, as in a patch that changes other fields.
func isPatch(spec Fields) bool {
	for _, f := range append(spec.Objects("workerGroupSpecs"), spec.Object("headGroupSpec")) {
		if len(f.Object("template").Object("spec").Objects("containers")) > 0 {
			return false
		}
	}
	return true
}

func refuseGroup(f Fields, v2 bool) {
	params, resources, labels := f.Texts("rayStartParams"), f.Texts("resources"), f.Texts("labels")
	if len(resources) > 0 {
		for _, flag := range []string{numCPUs, numGPUs, memory, resourcesFlag} {
			if params[flag] != "" {
				refuse(f, f.at("rayStartParams", flag), params[flag],
					"a group can have either the field resources or these rayStartParams, not both")
			}
		}
	}
	if _, set := params["labels"]; set {
		refuse(f, f.at("rayStartParams", "labels"), params["labels"], "labels belong in the group's field labels")
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		problems := slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(labels[key]))
		for _, problem := range problems {
			refuse(f, f.at("labels")+"."+key, labels[key], problem)
		}
	}
	template := f.Object("template").Object("spec")
	if len(template.Objects("containers")) == 0 {
		refuse(f, f.at("template", "spec", "containers"), "", "the pod template has no container")
	}
	if policy := template.Text("restartPolicy"); v2 && policy != "" && policy != "Never" {
		refuse(f, f.at("template", "spec", "restartPolicy"), policy, "with autoscaler v2 it must be Never or unset")
	}
}

func refuse(f Fields, field, seen, why string) {
	f.Report.Add(raydemand.Error, nodepool.SpecRefused, field, seen,
		fmt.Sprintf("%s; the operator rejects the spec and changes no group until this is fixed", why),
		"correct the field")
}
