package dra

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// ClaimsUnbounded says that no plan counts the devices that a group's pods get by ResourceClaims.
const ClaimsUnbounded = "claims-unbounded"

// AddTo adds to what a pod requests what its claims of ResourceClaimTemplates take, and returns the claims that stay
// uncounted. Shapes share their maps, so it copies them.
func (c Claims) AddTo(namespace string, pod *landing.PodShape) (uncounted []string) {
	requests := maps.Clone(pod.Requests)
	for _, template := range pod.ClaimTemplates {
		units, known := c.templates[types.NamespacedName{Namespace: namespace, Name: template}]
		for resource, n := range units {
			requests[resource] = requests[resource].Plus(n)
		}
		switch {
		case known:
		case template == "":
			uncounted = append(uncounted, "a claim that all pods share")
		default:
			uncounted = append(uncounted, "ResourceClaimTemplate "+template)
		}
	}
	if len(pod.ClaimTemplates) == len(uncounted) {
		return uncounted
	}
	pod.Requests = requests
	return uncounted
}

// AddToGroups is AddTo for the pods of all groups of a RayCluster. It returns a finding for each group with claims that
// stay uncounted.
func (c Claims) AddToGroups(cluster *nodepool.Cluster) (findings []raydemand.Finding) {
	for i := range cluster.Groups {
		group := &cluster.Groups[i]
		uncounted := c.AddTo(cluster.Key.Namespace, &group.Pod)
		if len(uncounted) == 0 {
			continue
		}
		slices.Sort(uncounted)
		findings = append(findings, raydemand.Finding{
			Code: ClaimsUnbounded, Severity: raydemand.Info, Object: "RayCluster " + cluster.Key.String(),
			Field: fmt.Sprintf("spec.workerGroupSpecs[%d].template.spec.resourceClaims", group.Index),
			Seen:  strings.Join(slices.Compact(uncounted), ", "),
			Why: "plans do not compare what the claim requests with the devices of the nodes, because its template " +
				"is not known or all pods share it; they may launch pods that find no device",
			Fix: "let Heliostat read resourceclaimtemplates of resource.k8s.io, or set maxReplicas to the number of " +
				"pods for which there are devices",
		})
	}
	return findings
}
