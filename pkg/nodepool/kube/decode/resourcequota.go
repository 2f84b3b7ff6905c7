package decode

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// QuotaForAllPods reports whether a ResourceQuota is for all pods of its namespace. Those with scopes are for some, and
// it is not known which.
func QuotaForAllPods(quota *corev1.ResourceQuota) bool {
	return len(quota.Spec.Scopes) == 0 && quota.Spec.ScopeSelector == nil
}

// TakesOfQuota returns what a pod with these requests takes of a resource of a ResourceQuota; 0 if that does not bound
// pods by their requests (https://kubernetes.io/docs/concepts/policy/resource-quotas/).
func TakesOfQuota(key corev1.ResourceName, requests landing.Quantities) raydemand.Amount {
	if key == corev1.ResourcePods || key == "count/pods" {
		return raydemand.One
	}
	return requests[strings.TrimPrefix(string(key), "requests.")]
}
