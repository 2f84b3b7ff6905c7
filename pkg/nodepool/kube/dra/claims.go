package dra

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// ClaimsUnbounded says that no plan counts the devices that a group's pods get by ResourceClaims.
const ClaimsUnbounded = "claims-unbounded"

// AddClaims adds to what a pod of the group requests one unit of the resource that stands for each claim of a template.
// It returns a finding about claims that stay uncounted. The maps of the shape are shared, so it copies them.
func AddClaims(namespace string, group *nodepool.WorkerGroup, resources map[types.NamespacedName]string,
) (raydemand.Finding, bool) {
	var uncounted []string
	requests := maps.Clone(group.Pod.Requests)
	for _, template := range group.Pod.ClaimTemplates {
		resource, known := resources[types.NamespacedName{Namespace: namespace, Name: template}]
		switch {
		case known:
			requests[resource] = requests[resource].Plus(raydemand.One)
		case template == "":
			uncounted = append(uncounted, "a claim that all pods share")
		default:
			uncounted = append(uncounted, "ResourceClaimTemplate "+template)
		}
	}
	if len(group.Pod.ClaimTemplates) > len(uncounted) {
		group.Pod.Requests = requests
	}
	slices.Sort(uncounted)
	return raydemand.Finding{
		Code: ClaimsUnbounded, Severity: raydemand.Info,
		Field: fmt.Sprintf("spec.workerGroupSpecs[%d].template.spec.resourceClaims", group.Index),
		Seen:  strings.Join(slices.Compact(uncounted), ", "),
		Why: "plans do not compare what the claim requests with the devices of the nodes, because its template is " +
			"not " +
			"known or all pods share it; they may launch pods that find no device",
		Fix: "let Heliostat read resourceclaimtemplates of resource.k8s.io, or set maxReplicas to the number of pods " +
			"for " +
			"which there are devices",
	}, len(uncounted) > 0
}
