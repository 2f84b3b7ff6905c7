package doctor

import (
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// writers are checks of who else writes what Heliostat and the operator scale by.
var writers = []Check{
	{
		Code: "replicas-two-writers", Severity: raydemand.Warning,
		Why: "it writes the worker groups back as it has them, replicas too: pods are created and killed in turns. The list of groups is atomic, so nobody " +
			"can own a part of it",
		look: perCluster(func(_ *exam, o *Object, tell func(sight)) {
			if !o.scaled() {
				return
			}
			for _, entry := range o.root().get("metadata", "managedFields").items() {
				manager, operation := entry.get("manager").text(), entry.get("operation").text()
				if !slices.Contains(o.groupFields(entry), "f:workerGroupSpecs") || scalers[manager] || !repeats(manager, operation) {
					continue
				}
				tell(sight{of: o, at: entry.at, seen: fmt.Sprintf("manager %s, operation %s, at %s", manager, operation, orNothing(entry.get("time").text())),
					fix: run(o.kubectl("get", "--show-managed-fields", "-o", "yaml")).
						hint("leave replicas out of what " + manager + " applies: Argo CD ignoreDifferences with RespectIgnoreDifferences, Flux or Helm without the field")})
			}
		}),
	},
	{
		Code: "scaled-by-hpa", Severity: raydemand.Error,
		Why: "it writes replicas by its own metric, against whoever scales by what Ray asks for",
		look: func(x *exam, tell func(sight)) {
			for _, kind := range []string{"HorizontalPodAutoscaler", "ScaledObject"} {
				for _, o := range x.byKind[kind] {
					if target := o.root().get("spec", "scaleTargetRef"); target.get("kind").text() == "RayCluster" {
						tell(sight{of: o, at: target.at, seen: kind + " for RayCluster " + target.get("name").text(), fix: run(o.kubectl("delete"))})
					}
				}
			}
		},
	},
}

// scalers are the field managers whose business the worker groups are: Heliostat, Ray's autoscaler (a Python client) and the operator.
var scalers = map[string]bool{"heliostat": true, "python-requests": true, "kuberay-operator": true, "manager": true}

// gitOps are field managers that write again what stands in a repository.
var gitOps = []string{"argocd", "kustomize-controller", "helm-controller", "flux", "fleetagent", "keda", "horizontal-pod-autoscaler"}

// repeats reports whether a manager writes again and again. People with kubectl write once.
func repeats(manager, operation string) bool {
	return slices.ContainsFunc(gitOps, func(name string) bool { return strings.HasPrefix(manager, name) }) ||
		operation == "Apply" && !strings.HasPrefix(manager, "kubectl")
}

// groupFields are the fields of the RayCluster's spec that an entry of managedFields owns.
func (o *Object) groupFields(entry value) []string {
	fields := entry.get("fieldsV1")
	for _, key := range o.Spec {
		fields = fields.get("f:" + key)
	}
	return fields.keys()
}

// scaled reports whether anything scales the RayCluster.
func (o *Object) scaled() bool {
	mode := o.root().get("metadata", "annotations", modeAnnotation).text()
	return o.Cluster.InTreeAutoscaling || mode == string(nodepool.Managed)
}
