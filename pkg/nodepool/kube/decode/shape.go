package decode

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	resourcehelper "k8s.io/component-helpers/resource"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// waitForGCS is the init container that the operator adds to each worker
// (docs/reference/facts.md#init-container-of-workers).
var waitForGCS = corev1.Container{Name: "wait-gcs-ready", Resources: limitedTo("200m", "256Mi")}

// podOf returns the pod of a template; an empty one if a value has another type than the field takes, which is a
// finding for each such value.
func podOf(template Fields) *corev1.Pod {
	pod := &corev1.Pod{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(template.Members(), pod) == nil {
		return pod
	}
	checkType(template.Value, reflect.TypeFor[corev1.Pod]())
	return &corev1.Pod{}
}

// podShape returns what decides where pods can run. The operator adds the injected init containers behind those of the
// template.
func podShape(pod *corev1.Pod, injected ...corev1.Container) landing.PodShape {
	pod = pod.DeepCopy()
	setRequests(pod)
	spec := &pod.Spec
	shape := landing.PodShape{
		NodeName: spec.NodeName, Selector: spec.NodeSelector,
		Requests: withInjected(pod, injected, requestsOf), Limits: withInjected(pod, injected, limitsOf),
		Claims: len(spec.ResourceClaims) > 0, Parts: partsOfCards(spec.Containers),
		Choice: sharing.CardChoiceOf(pod.Annotations),
		Share:  sharing.CardShareOf(pod.Annotations, func() bool { return limitsGPUs(pod) }),
	}
	shape.CardsAsked = sharing.ACKCards(pod.Labels)
	shape.Own = ownRequests(spec.Containers, shape.Requests)
	if spec.Resources != nil { // the API server makes requests of limits
		for name, limit := range positive(spec.Resources.Limits) {
			shape.Requests[name] = cmp.Or(shape.Requests[name], limit)
		}
	}
	if len(shape.Limits) == 0 {
		shape.Limits = nil
	}
	for _, claim := range spec.ResourceClaims {
		template := ""
		if claim.ResourceClaimTemplateName != nil {
			template = *claim.ResourceClaimTemplateName
		}
		shape.ClaimTemplates = append(shape.ClaimTemplates, template)
	}
	if len(spec.Containers) > 0 {
		shape.HidesGPUs = hidesGPUs(spec.Containers[0])
	}
	nodes := cmp.Or(affinityOf(pod).NodeAffinity, &corev1.NodeAffinity{})
	required := cmp.Or(nodes.RequiredDuringSchedulingIgnoredDuringExecution, &corev1.NodeSelector{})
	for _, term := range required.NodeSelectorTerms {
		shape.Affinity = append(shape.Affinity, landing.NodeTerm{
			Labels: requirements(term.MatchExpressions), Fields: requirements(term.MatchFields),
		})
	}
	for _, t := range spec.Tolerations {
		shape.Tolerations = append(shape.Tolerations, landing.Toleration{
			Key: t.Key, Operator: string(t.Operator), Value: t.Value, Effect: string(t.Effect),
		})
	}
	return shape
}

// withInjected returns what a pod takes with injected init containers. Nodes in a file may be excerpts without CPU and
// memory; they still hold a pod that requests neither.
func withInjected(
	pod *corev1.Pod, injected []corev1.Container, of func(*corev1.Pod) landing.Quantities,
) landing.Quantities {
	own, all := of(pod), *pod
	all.Spec.InitContainers = slices.Concat(pod.Spec.InitContainers, injected)
	takes := of(&all)
	maps.DeleteFunc(takes, func(name string, _ raydemand.Amount) bool { return own[name] == 0 })
	return takes
}

// affinityOf returns the affinity of a pod, an empty one if it has none.
func affinityOf(pod *corev1.Pod) *corev1.Affinity {
	return cmp.Or(pod.Spec.Affinity, &corev1.Affinity{})
}

// partsOfCards returns the requests of the containers that ask HAMi or Volcano for GPUs, if there are several and each
// says how much memory of a card it wants.
func partsOfCards(containers []corev1.Container) (parts []landing.Quantities) {
	for i := range containers {
		own := requestsIn(containers[i].Resources)
		switch {
		case own[gpuinfo.HAMiMemory] > 0 || own[gpuinfo.VolcanoMemory] > 0:
			parts = append(parts, own)
		case own[gpuinfo.NvidiaGPU] > 0 || own[gpuinfo.VolcanoNumber] > 0:
			return nil
		}
	}
	if len(parts) < 2 {
		return nil
	}
	return parts
}

// ownRequests returns what the first container requests, if others request devices as well.
func ownRequests(containers []corev1.Container, all landing.Quantities) landing.Quantities {
	if len(containers) == 0 {
		return nil
	}
	own := requestsIn(containers[0].Resources)
	for name, amount := range all {
		if extended(name) && own[name] != amount {
			return own
		}
	}
	return nil
}

// requestsIn returns what resources request. The API server makes a request of a limit alone.
func requestsIn(resources corev1.ResourceRequirements) landing.Quantities {
	own := positive(resources.Limits)
	maps.Copy(own, positive(resources.Requests))
	return own
}

// resourcesOf reads the field resources of an object; none if it cannot be read.
func resourcesOf(f Fields) (read corev1.ResourceRequirements) {
	members := f.silent().Object("resources").Members()
	if runtime.DefaultUnstructuredConverter.FromUnstructured(members, &read) != nil {
		return corev1.ResourceRequirements{}
	}
	return read
}

// containersOf returns all containers of a pod.
func containersOf(pod *corev1.Pod) []corev1.Container {
	return slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers)
}

// limitsGPUs reports whether a container or init container has a limit of whole GPUs, even of none.
func limitsGPUs(pod *corev1.Pod) bool {
	return slices.ContainsFunc(containersOf(pod), func(c corev1.Container) bool {
		_, limited := c.Resources.Limits[gpuinfo.NvidiaGPU]
		return limited
	})
}

// hidesGPUs reports whether a container sees no GPU that it did not request: with none it has the driver's libraries
// and no card, with void or an empty value it has neither (NVIDIA container toolkit, NVIDIA_VISIBLE_DEVICES).
func hidesGPUs(container corev1.Container) bool {
	visible := env(container, "NVIDIA_VISIBLE_DEVICES")
	return visible != nil && visible.ValueFrom == nil && slices.Contains([]string{"void", "none", ""}, visible.Value)
}

func requirements(list []corev1.NodeSelectorRequirement) (all []landing.Requirement) {
	for _, r := range list {
		all = append(all, landing.Requirement{Key: r.Key, Operator: string(r.Operator), Values: r.Values})
	}
	return all
}

// addUnstated adds the containers of a pod that do not say how much CPU or memory they request, or to how much they are
// limited. One with a limit requests that. Where the pod as a whole has resources, containers need none.
func addUnstated(group *nodepool.WorkerGroup, pod *corev1.Pod, containers ...corev1.Container) {
	if resourcehelper.IsPodLevelResourcesSet(pod) {
		return
	}
	add := func(what, name string) {
		if group.Unstated == nil {
			group.Unstated = map[string][]string{}
		}
		group.Unstated[what] = append(group.Unstated[what], name)
	}
	for i := range containers {
		c := &containers[i]
		for _, of := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if _, limited := c.Resources.Limits[of]; limited {
				continue
			}
			add("limits."+string(of), c.Name)
			if _, requested := c.Resources.Requests[of]; !requested {
				add("requests."+string(of), c.Name)
			}
		}
	}
}

func addInto(to, from landing.Quantities) {
	for name, amount := range from {
		to[name] = to[name].Plus(amount)
	}
}

// neighbors returns what decides beside which pods those of a worker group may run, which have these labels. A replica
// has so many hosts.
func neighbors(
	pod *corev1.Pod, cluster nodepool.ClusterKey, labels map[string]string, hosts int64,
) landing.Neighbors {
	n, apart := landing.Neighbors{Namespace: cluster.Namespace, Labels: labels}, map[string][]landing.PodTerm{}
	beyond := func(rule, topologyKey string) {
		n.Beyond = cmp.Or(n.Beyond, rule+" with topologyKey "+topologyKey)
	}
	for i := range antiAffinity(pod) {
		term := &antiAffinity(pod)[i]
		if term.TopologyKey != landing.HostnameLabel {
			beyond("podAntiAffinity", term.TopologyKey)
			apart[term.TopologyKey] = append(apart[term.TopologyKey], podTerm(term, labels))
			continue
		}
		n.Apart = append(n.Apart, podTerm(term, labels))
	}
	if pods := affinityOf(pod).PodAffinity; pods != nil {
		for i := range pods.RequiredDuringSchedulingIgnoredDuringExecution {
			term := &pods.RequiredDuringSchedulingIgnoredDuringExecution[i]
			beyond("podAffinity", term.TopologyKey)
			ofReplica := slices.Contains(term.MatchLabelKeys, replicaLabel) && n.SelectsItself(podTerm(term, labels))
			if ofReplica && hosts > 1 {
				n.Domain = landing.ReplicaDomain{Key: term.TopologyKey, Hosts: hosts, Alone: apart[term.TopologyKey]}
			}
		}
	}
	for _, term := range pod.Spec.TopologySpreadConstraints {
		if term.WhenUnsatisfiable != corev1.ScheduleAnyway {
			beyond("topologySpreadConstraints", term.TopologyKey)
		}
	}
	n.HostPorts = hostPorts(pod)
	return n
}

// podLabels returns the labels of a group's pods: those that the operator sets, and over them the template's and the
// group's (docs/reference/facts.md#labels-of-worker-pods).
func podLabels(group Fields, cluster, nodeType string) map[string]string {
	labels := map[string]string{
		"ray.io/is-ray-node": "yes", "ray.io/identifier": identifier(cluster + "-" + nodeType),
		"app.kubernetes.io/name": "kuberay", "app.kubernetes.io/created-by": "kuberay-operator",
	}
	silent := group.silent() // the decoder of the group reports the faults
	maps.Copy(labels, silent.Object("template").Object("metadata").Texts("labels"))
	maps.Copy(labels, silent.Texts("labels"))
	labels[ClusterLabel], labels[groupLabel], labels[nodeTypeLabel] = cluster, silent.Text("groupName"), nodeType
	if nodeType == headNode {
		labels[groupLabel] = headGroup
	}
	return labels
}

// identifier shortens a label's value as the operator does (CheckLabel): the end of it stays.
func identifier(value string) string {
	const longest = 63
	if len(value) > longest {
		value = value[len(value)-longest:]
	}
	if unicode.IsPunct(rune(value[0])) {
		value = "r" + value[1:]
	}
	return value
}

func podTerm(term *corev1.PodAffinityTerm, own map[string]string) landing.PodTerm {
	selector := withLabelKeys(selectorOf(term.LabelSelector), "In", term.MatchLabelKeys, own)
	t := landing.PodTerm{Namespaces: term.Namespaces,
		Selector: withLabelKeys(selector, "NotIn", term.MismatchLabelKeys, own)}
	if term.NamespaceSelector != nil {
		t.NamespaceSelector = new(selectorOf(term.NamespaceSelector))
	}
	return t
}

// withLabelKeys adds what the API server makes of matchLabelKeys and mismatchLabelKeys: the values of the pod's own
// labels. A label that the pod lacks is ignored.
func withLabelKeys(selector landing.PodSelector, operator string, keys []string, own map[string]string,
) landing.PodSelector {
	for _, key := range keys {
		if value, set := own[key]; set && !selector.Nothing {
			selector.Requirements = append(selector.Requirements,
				landing.Requirement{Key: key, Operator: operator, Values: []string{value}})
		}
	}
	return selector
}

// Port that the operator adds to the Ray container unless it has one of this name (docs/reference/facts.md).
const (
	metricsPortName = "metrics"
	metricsPort     = 8080
)

// hostPorts returns the ports of the node that a pod takes with its containers and the init containers that run beside
// them. On the node's own network, these are all that they list, with the one that the operator adds to the Ray
// container, which is the first.
func hostPorts(pod *corev1.Pod) (ports []landing.HostPort) {
	onNode := pod.Spec.HostNetwork
	for i, container := range containersOf(pod) {
		always := container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
		if i >= len(pod.Spec.Containers) && !always {
			continue
		}
		for _, port := range container.Ports {
			number := port.HostPort
			if number == 0 && onNode {
				number = port.ContainerPort
			}
			if number > 0 {
				ports = append(ports, landing.HostPort{
					IP: port.HostIP, Protocol: string(port.Protocol), Port: int64(number)})
			}
		}
		isMetrics := func(port corev1.ContainerPort) bool { return port.Name == metricsPortName }
		if i == 0 && onNode && !slices.ContainsFunc(container.Ports, isMetrics) {
			ports = append(ports, landing.HostPort{Port: metricsPort})
		}
	}
	return ports
}
