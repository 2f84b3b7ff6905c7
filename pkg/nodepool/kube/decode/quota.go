package decode

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// AddQuotas adds what the ResourceQuotas of its namespace leave for the workers of a RayCluster. defaultsKnown: what
// LimitRanges give its pods is known. head is the pod that the operator creates before them; nil if there is a head.
func AddQuotas(
	cluster *nodepool.Cluster, quotas []*corev1.ResourceQuota, defaultsKnown bool, head *landing.PodShape,
) {
	for _, quota := range quotas {
		if !QuotaForAllPods(quota) {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(quota.Spec.Hard)) {
			if left, bounds := leftOf(quota, key, cluster); bounds {
				if head != nil {
					left.Amount = max(left.Amount.Plus(-TakesOfQuota(key, head)), 0)
				}
				cluster.NamespaceQuotas = append(cluster.NamespaceQuotas, left)
			}
			if !defaultsKnown {
				continue
			}
			for i := range cluster.Groups {
				if none, refuses := refusal(quota, key, &cluster.Groups[i], cluster.Workers); refuses {
					cluster.NamespaceQuotas = append(cluster.NamespaceQuotas, none)
				}
			}
		}
	}
}

// refusal returns a quota of no pods for a group of which the quota refuses each, because containers do not state a
// value of it. A worker that was created since then and runs disproves that: an admission webhook may state it.
func refusal(
	quota *corev1.ResourceQuota, key corev1.ResourceName, group *nodepool.WorkerGroup, workers []nodepool.Worker,
) (landing.Quota, bool) {
	silent := UnstatedForQuota(key, group.Unstated)
	since := ChangedAt(quota)
	if len(silent) == 0 || slices.ContainsFunc(workers, func(w nodepool.Worker) bool {
		return w.Group == group.Name && w.Running && !w.Failed && w.CreatedAt.After(since)
	}) {
		return landing.Quota{}, false
	}
	return landing.Quota{Name: fmt.Sprintf("ResourceQuota %s, for pods that do not state %s,", quota.Name, key),
		Resource: string(corev1.ResourcePods), PodTakes: raydemand.Bundle{group.Name: raydemand.One},
		Why: fmt.Sprintf("the API server refuses them: set %s of %s", key, strings.Join(silent, ", "))}, true
}

// leftOf returns what others leave of one resource of a quota; false if it bounds no group. A quota counts a pod from
// the moment it is admitted until it has ended, whether it runs or not. An Amount may hold less memory than a quota has
// and pods use, but not less than their difference.
func leftOf(
	quota *corev1.ResourceQuota, key corev1.ResourceName, cluster *nodepool.Cluster,
) (landing.Quota, bool) {
	takes := raydemand.Bundle{}
	for i := range cluster.Groups {
		if each := TakesOfQuota(key, &cluster.Groups[i].Pod); each > 0 {
			takes[cluster.Groups[i].Name] = each
		}
	}
	if len(takes) == 0 {
		return landing.Quota{}, false
	}
	hard := quota.Spec.Hard[key]
	unused := hard.DeepCopy()
	unused.Sub(quota.Status.Used[key])
	left := Amount(unused)
	for i := range cluster.Workers {
		if w := &cluster.Workers[i]; !w.Failed && !w.Terminating {
			left = left.Plus(takes[w.Group])
		}
	}
	return landing.Quota{Name: "ResourceQuota " + quota.Name + ", less what others use,",
		Resource: strings.TrimPrefix(string(key), "requests."), Amount: max(min(left, Amount(hard)), 0),
		PodTakes: takes}, true
}

// QuotaForAllPods reports whether a ResourceQuota is for all pods of its namespace. Those with scopes are for some, and
// it is not known which.
func QuotaForAllPods(quota *corev1.ResourceQuota) bool {
	return len(quota.Spec.Scopes) == 0 && quota.Spec.ScopeSelector == nil
}

// TakesOfQuota returns what a pod takes of a resource of a ResourceQuota; 0 if that does not bound pods by their
// requests or limits (Kubernetes 1.36, pkg/quota/v1/evaluator/core, MatchingResources): limits.nvidia.com/gpu and
// nvidia.com/gpu are valid, and bound nothing.
func TakesOfQuota(key corev1.ResourceName, pod *landing.PodShape) raydemand.Amount {
	if key == corev1.ResourcePods || key == "count/pods" {
		return raydemand.One
	}
	if name, requests := strings.CutPrefix(string(key), corev1.DefaultResourceRequestsPrefix); requests {
		return pod.Requests[name]
	}
	switch name, limits := strings.CutPrefix(string(key), "limits."); corev1.ResourceName(name) {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		if limits {
			return pod.Limits[name]
		}
		return pod.Requests[name]
	}
	if strings.HasPrefix(string(key), corev1.ResourceHugePagesPrefix) {
		return pod.Requests[string(key)]
	}
	return 0
}

// UnstatedForQuota returns the containers of a group for which a ResourceQuota with this key refuses its pods, because
// they do not state the value (Constraints of the same package).
func UnstatedForQuota(key corev1.ResourceName, unstated map[string][]string) []string {
	if key == corev1.ResourceCPU || key == corev1.ResourceMemory {
		key = corev1.DefaultResourceRequestsPrefix + key
	}
	return unstated[string(key)]
}
