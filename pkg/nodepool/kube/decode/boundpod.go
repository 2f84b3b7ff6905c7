package decode

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	resourcehelper "k8s.io/component-helpers/resource"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// ReadPod reads a Pod as the API prints it. The error names the pod, the field, its value and what would be right.
func ReadPod(object map[string]any) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if unreadable := Typed(object, pod); len(unreadable) > 0 {
		at := unstructured.Unstructured{Object: object}
		return nil, fmt.Errorf("reading pod %s/%s: %s", at.GetNamespace(), at.GetName(), unreadable[0])
	}
	setRequests(pod)
	return pod, nil
}

// BoundPod is what a pod takes of the node that it is bound to. It shares no memory with the Pod object, except for
// annotations about cards.
type BoundPod struct {
	// Pod has the annotations about cards alone.
	sharing.Pod
	// Takes is what the scheduler subtracts from the node for the pod, with 1 under "pods".
	Takes landing.Quantities
	// Neighbors is what terms of other pods see of the pod.
	Neighbors *landing.Neighbors
	// RayCluster and Group name the worker group, by KubeRay's labels. Both are empty for pods that are not workers.
	RayCluster, Group string
	// Terminating: the pod is being deleted. It takes its part of the node until it is gone.
	Terminating bool
}

// Compare orders pods by namespace and name: it returns how the pod stands to one of these.
func (p *BoundPod) Compare(namespace, name string) int {
	return cmp.Or(strings.Compare(p.Namespace, namespace), strings.Compare(p.Name, name))
}

// Bound returns what a pod takes of its node. It returns false for a pod that takes nothing: one that is not bound to
// a node, or that has ended.
func Bound(pod *corev1.Pod) (bound BoundPod, takes bool) {
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if ended || pod.Spec.NodeName == "" {
		return BoundPod{}, false
	}
	bound = BoundPod{
		Pod: sharing.Pod{
			Namespace: interned(pod.Namespace), Name: pod.Name, Node: interned(pod.Spec.NodeName),
			Annotations: annotationsOf(pod, sharing.PodAnnotations()...),
		},
		Takes:       requestsOf(pod),
		Neighbors:   neighborsOf(pod),
		Terminating: pod.DeletionTimestamp != nil,
	}
	for name, amount := range bound.Takes {
		if extended(name) {
			if bound.Requests == nil {
				bound.Requests = map[string]int64{}
			}
			bound.Requests[name] = landing.WholeUnits(amount)
		}
	}
	bound.Takes[podsResource] = raydemand.One
	if pod.Labels[nodeTypeLabel] != headNode && pod.Labels[groupLabel] != "" {
		bound.RayCluster, bound.Group = interned(pod.Labels[ClusterLabel]), interned(pod.Labels[groupLabel])
	}
	return bound, true
}

// podsResource is the resource under which a node announces how many pods it accepts.
const podsResource = string(corev1.ResourcePods)

// annotationsOf returns those of a pod's annotations that have these keys; nil if there are none.
func annotationsOf(pod *corev1.Pod, keys ...string) (kept map[string]string) {
	for _, key := range keys {
		if value, set := pod.Annotations[key]; set {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	return kept
}

// requestsOf returns what the scheduler counts for a pod, by its own function: containers, init containers that run
// before or beside them, a resize in progress, resources of the pod as a whole, and overhead.
func requestsOf(pod *corev1.Pod) landing.Quantities {
	options := resourcehelper.PodResourcesOptions{UseStatusResources: true}
	return positive(resourcehelper.PodRequests(pod, options))
}

// limitsOf returns the limits of a pod.
func limitsOf(pod *corev1.Pod) landing.Quantities {
	return positive(resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{}))
}

func positive(list corev1.ResourceList) landing.Quantities {
	takes := landing.Quantities{}
	for name, quantity := range list {
		if amount := Amount(quantity); amount > 0 {
			takes[interned(string(name))] = amount
		}
	}
	return takes
}

// setRequests sets a request for every resource that has only a limit, as the API server does.
func setRequests(pod *corev1.Pod) {
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			resources := &containers[i].Resources
			resources.Requests = merged(resources.Limits, resources.Requests)
		}
	}
}

// Use returns what pods take of a node: the sum of their requests, with the units whose devices ResourceClaims have,
// and what they leave of each card as far as the node, its devices and their annotations show it. The pods must be all
// those on the node.
func Use(reader sharing.Reader, node sharing.NodeObject, pods []*BoundPod) *landing.Use {
	use := &landing.Use{Requests: landing.Quantities{}, Pods: make([]*landing.Neighbors, 0, len(pods))}
	node.Pods = []sharing.Pod{} // known, if there are none
	for _, pod := range pods {
		use.Requests.Add(pod.Takes)
		for name, amount := range pod.Takes {
			if requested, isDAS := gpuinfo.DASName(name); isDAS {
				use.Requests.Add(landing.Quantities{requested: amount})
			}
		}
		use.Pods = append(use.Pods, pod.Neighbors)
		if len(pod.Requests) > 0 {
			node.Pods = append(node.Pods, pod.Pod)
		}
	}
	if gpus := GPUsOf(reader, node); gpus != nil {
		for name := range gpus.SharedCards {
			for _, pod := range pods {
				more := landing.OfShares(gpus, pod.Takes, name) - pod.Takes[name]
				use.Requests.Add(landing.Quantities{name: more})
			}
		}
		use.Cards = gpus.PerCard
		for i := range gpus.Problems {
			if gpus.Problems[i].Code == sharing.CardUnrecorded {
				use.Unrecorded = &sharing.Problem{Code: sharing.CardUnrecorded, Message: gpus.Problems[i].Message}
			}
		}
	}
	return use
}

// neighborsOf returns what terms of other pods see of a pod that is on a node: what it requires itself counts only as
// far as it keeps other pods away.
func neighborsOf(pod *corev1.Pod) *landing.Neighbors {
	n := &landing.Neighbors{Namespace: interned(cmp.Or(pod.Namespace, corev1.NamespaceDefault)),
		Labels: make(map[string]string, len(pod.Labels))}
	for key, value := range pod.Labels {
		n.Labels[interned(key)] = interned(value)
	}
	for i := range antiAffinity(pod) {
		term := &antiAffinity(pod)[i]
		if term.TopologyKey != landing.HostnameLabel {
			continue
		}
		n.Apart = append(n.Apart, podTerm(term, nil)) // the API server has merged what withLabelKeys adds
	}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			for _, port := range containers[i].Ports {
				// For a pod on the node's network, the API server lists all its ports as ports of the node.
				if port.HostPort > 0 {
					n.HostPorts = append(n.HostPorts, landing.HostPort{
						IP: port.HostIP, Protocol: string(port.Protocol), Port: int64(port.HostPort)})
				}
			}
		}
	}
	return n
}

// antiAffinity returns the terms of a pod's required anti-affinity.
func antiAffinity(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func selectorOf(selector *metav1.LabelSelector) landing.PodSelector {
	if selector == nil {
		return landing.PodSelector{Nothing: true}
	}
	var list []landing.Requirement
	for _, r := range selector.MatchExpressions {
		list = append(list, landing.Requirement{Key: r.Key, Operator: string(r.Operator), Values: r.Values})
	}
	for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		list = append(list, landing.Requirement{Key: key, Operator: string(metav1.LabelSelectorOpIn),
			Values: []string{selector.MatchLabels[key]}})
	}
	return landing.PodSelector{Requirements: list}
}
