package doctor

import (
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
)

func replicasTwoWriters(_ *inventory, o *Object, report reporter) {
	if !o.Cluster.InTreeAutoscaling && o.Mode() != nodepool.Managed {
		return // nothing scales it
	}
	for _, entry := range o.Root().Items("metadata", "managedFields") {
		manager, operation := entry.Text("manager"), entry.Text("operation")
		owns := slices.Contains(ownedFields(o, entry), "f:workerGroupSpecs")
		if !owns || scalers[manager] || !writesAgain(manager, operation) {
			continue
		}
		report(occurrence{
			Object: o, Path: entry.Path(),
			Seen: fmt.Sprintf("manager %s, operation %s, at %s", manager, operation, orNotSet(entry.Text("time"))),
			Fix: run(kubectl(o, "get", "--show-managed-fields", "-o", "yaml")).
				Hint("let " + manager + " take replicas and scaleStrategy from the live object, as " +
					"docs/howto/gitops.md shows for Argo CD and Flux; a manifest without replicas sets them to 0"),
		})
	}
}

// ownedFields returns the fields of the RayCluster's spec that an entry of managedFields owns.
func ownedFields(o *Object, entry fieldpath.Value) []string {
	fields := entry.Get("fieldsV1")
	for _, key := range o.Spec {
		fields = fields.Get("f:" + key)
	}
	return fields.Keys()
}

// scalers are the field managers that may write worker groups: Heliostat, Ray's autoscaler (a Python client) and the
// operator.
var scalers = map[string]bool{"heliostat": true, "python-requests": true, "kuberay-operator": true, "manager": true}

// gitOps are field managers that write again and again what a repository has.
var gitOps = []string{
	"argocd", "kustomize-controller", "helm-controller", "flux", "fleetagent", "keda", "horizontal-pod-autoscaler",
}

// writesAgain reports whether a manager writes again and again. People with kubectl write once.
func writesAgain(manager, operation string) bool {
	return slices.ContainsFunc(gitOps, func(name string) bool { return strings.HasPrefix(manager, name) }) ||
		operation == "Apply" && !strings.HasPrefix(manager, "kubectl")
}

func scaledByHPA(x *inventory, report reporter) {
	for _, kind := range []string{"HorizontalPodAutoscaler", "ScaledObject"} {
		for _, o := range x.ByKind[kind] {
			target := o.Root().Get("spec", "scaleTargetRef")
			if target.Text("kind") == "RayCluster" {
				report(occurrence{Object: o, Path: target.Path(), Fix: run(kubectl(o, "delete")),
					Seen: kind + " for RayCluster " + target.Text("name")})
			}
		}
	}
}
