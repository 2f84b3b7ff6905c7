package decode

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// waitGCSReady is what the init container requests that the operator adds to each worker
// (docs/reference/facts.md#init-container-of-workers).
var waitGCSReady = positive(WaitForGCS().Requests)

// podShape reads from a pod template what decides where its pods can run. The operator adds the injected init
// containers behind those of the template.
func podShape(template Fields, injected ...landing.Quantities) landing.PodShape {
	spec := template.Object("spec")
	shape := landing.PodShape{
		NodeName: spec.Text("nodeName"),
		Requests: podRequests(spec, injected),
		Limits:   podLimits(spec.silent(), injected),
		Selector: spec.Texts("nodeSelector"),
		Claims:   len(spec.Objects("resourceClaims")) > 0,
	}
	shape.Parts = partsOfCards(spec.Objects("containers"))
	for _, claim := range spec.Objects("resourceClaims") {
		shape.ClaimTemplates = append(shape.ClaimTemplates, claim.Text("resourceClaimTemplateName"))
	}
	shape.CardsAsked, shape.CardsInvalid = sharing.ACKCards(template.Object("metadata").Texts("labels"))
	annotations := template.Object("metadata").Texts("annotations")
	shape.Choice, shape.CardOrder = sharing.CardChoiceOf(annotations), sharing.CardOrder(annotations)
	shape.Share = sharing.CardShareOf(annotations, func() bool { return limitsGPUs(template) })
	if containers := spec.Objects("containers"); len(containers) > 0 {
		shape.HidesGPUs = hidesGPUs(containers[0])
	}
	required := spec.Object("affinity").Object("nodeAffinity").Object("requiredDuringSchedulingIgnoredDuringExecution")
	for _, term := range required.Objects("nodeSelectorTerms") {
		shape.Affinity = append(shape.Affinity, landing.NodeTerm{
			Labels: requirements(term, "matchExpressions"), Fields: requirements(term, "matchFields"),
		})
	}
	for _, t := range spec.Objects("tolerations") {
		shape.Tolerations = append(shape.Tolerations, landing.Toleration{
			Key: t.Text("key"), Operator: t.Text("operator"), Value: t.Text("value"), Effect: t.Text("effect"),
		})
	}
	return shape
}

// partsOfCards returns the requests of the containers that ask HAMi or Volcano for GPUs, if there are several and each
// says how much memory of a card it wants.
func partsOfCards(containers []Fields) (parts []landing.Quantities) {
	for _, c := range containers {
		own := ownRequests(c.silent()) // podRequests reports the faults
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

// limitsGPUs reports whether a container or init container has a limit of whole GPUs, even of none.
func limitsGPUs(template Fields) bool {
	spec := template.Object("spec")
	return slices.ContainsFunc(append(spec.Objects("containers"), spec.Objects("initContainers")...),
		func(c Fields) bool { return c.Object("resources").Object("limits").Has(gpuinfo.NvidiaGPU) })
}

// hidesGPUs reports whether a container sees no GPU that it did not request: with none it has the driver's libraries
// and no card, with void or an empty value it has neither (NVIDIA container toolkit, NVIDIA_VISIBLE_DEVICES).
func hidesGPUs(container Fields) bool {
	silent := container.silent() // the container's resources report the faults
	visible, set := decodeContainer(silent).env["NVIDIA_VISIBLE_DEVICES"]
	return set && visible.from == "" && slices.Contains([]string{"void", "none", ""}, visible.value)
}

func requirements(term Fields, name string) []landing.Requirement {
	var list []landing.Requirement
	for _, r := range term.Objects(name) {
		list = append(list,
			landing.Requirement{Key: r.Text("key"), Operator: r.Text("operator"), Values: r.TextList("values")})
	}
	return list
}

// podRequests returns what the scheduler requires of a node for one pod (k8s.io/component-helpers/resource,
// PodRequests): what its containers need together, or instead of that the pod's own resources, if it has any; plus the
// overhead.
func podRequests(template Fields, injected []landing.Quantities) landing.Quantities {
	sum := podSum(template, injected, ownRequests)
	podLevel := template.Object("resources")
	maps.Copy(sum, amounts(quantities(podLevel, "requests")))
	for name, limit := range amounts(quantities(podLevel, "limits")) {
		if _, requested := sum[name]; !requested {
			sum[name] = limit
		}
	}
	addInto(sum, amounts(quantities(template, "overhead")))
	maps.DeleteFunc(sum, func(_ string, amount raydemand.Amount) bool { return amount <= 0 })
	return sum
}

// podLimits returns the limits of one pod, as a ResourceQuota counts them (PodLimits of the same package): the overhead
// adds to a limit and makes none.
func podLimits(template Fields, injected []landing.Quantities) landing.Quantities {
	sum := podSum(template, injected, ownLimits)
	maps.Copy(sum, ownLimits(template))
	maps.DeleteFunc(sum, func(_ string, amount raydemand.Amount) bool { return amount <= 0 })
	for name, amount := range amounts(quantities(template, "overhead")) {
		if sum[name] > 0 {
			sum[name] = sum[name].Plus(amount)
		}
	}
	if len(sum) == 0 {
		return nil
	}
	return sum
}

// podSum returns what the containers of a pod need together: the sum of the containers and of the init containers that
// keep running, or the need of a single init container if that is more.
func podSum(
	template Fields, injected []landing.Quantities, ofContainer func(Fields) landing.Quantities,
) landing.Quantities {
	sum, peak, beside := landing.Quantities{}, landing.Quantities{}, landing.Quantities{}
	for _, c := range template.Objects("initContainers") {
		own := ofContainer(c)
		if c.Text("restartPolicy") == "Always" {
			addInto(beside, own)
			maxInto(peak, beside)
			continue
		}
		addInto(own, beside)
		maxInto(peak, own)
	}
	for _, c := range template.Objects("containers") {
		addInto(sum, ofContainer(c))
	}
	for _, own := range injected {
		own = maps.Clone(own)
		addInto(own, beside)
		// Nodes in a file may be excerpts without CPU and memory; they still hold a pod that requests neither.
		maps.DeleteFunc(own, func(name string, _ raydemand.Amount) bool { return sum[name] == 0 })
		maxInto(peak, own)
	}
	addInto(sum, beside)
	maxInto(sum, peak)
	return sum
}

// states reports whether a pod as a whole has resources, so that containers need none (Kubernetes 1.36,
// IsPodLevelResourcesSet).
func states(spec Fields) bool {
	for _, section := range []string{"limits", "requests"} {
		for _, name := range sortedKeys(quantities(spec.Object("resources"), section)) {
			if name == "cpu" || name == "memory" || strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) {
				return true
			}
		}
	}
	return false
}

// addUnstated adds a container, if it does not say how much CPU or memory it requests, or to how much it is limited.
// One with a limit requests that.
func addUnstated(group *nodepool.WorkerGroup, container Fields, name string) {
	limits, requests := container.Object("resources").Object("limits"), container.Object("resources").Object("requests")
	for _, of := range []string{"cpu", "memory"} {
		if limits.Has(of) {
			continue
		}
		if group.Unstated == nil {
			group.Unstated = map[string][]string{}
		}
		group.Unstated["limits."+of] = append(group.Unstated["limits."+of], name)
		if !requests.Has(of) {
			group.Unstated["requests."+of] = append(group.Unstated["requests."+of], name)
		}
	}
}

// ownLimits returns the limits of a container, or of a pod as a whole.
func ownLimits(f Fields) landing.Quantities {
	return amounts(quantities(f.Object("resources"), "limits"))
}

// ownRequests returns a container's requests. A resource with a limit alone counts as requested too: the API server
// fills it in.
func ownRequests(container Fields) landing.Quantities {
	resources := container.Object("resources")
	own := amounts(quantities(resources, "limits"))
	maps.Copy(own, amounts(quantities(resources, "requests")))
	return own
}

func addInto(to, from landing.Quantities) {
	for name, amount := range from {
		to[name] = to[name].Plus(amount)
	}
}

func maxInto(to, least landing.Quantities) {
	for name, amount := range least {
		to[name] = max(to[name], amount)
	}
}

// amounts converts quantities. A negative one takes nothing; the API server refuses it, which is reported elsewhere.
func amounts(list map[string]resource.Quantity) landing.Quantities {
	converted := make(landing.Quantities, len(list))
	for _, name := range slices.Sorted(maps.Keys(list)) {
		converted[name] = max(Amount(list[name]), 0)
	}
	return converted
}

// neighbors reads from a worker group what decides beside which pods its pods may run.
func neighbors(group Fields, cluster nodepool.ClusterKey) landing.Neighbors {
	template := group.Object("template")
	spec, n := template.Object("spec"), landing.Neighbors{Namespace: cluster.Namespace}
	n.Labels = podLabels(group, cluster.Name, workerNode)
	const required = "requiredDuringSchedulingIgnoredDuringExecution"
	affinity := spec.Object("affinity")
	beyond := func(rule string, term Fields) {
		n.Beyond = cmp.Or(n.Beyond, rule+" with topologyKey "+term.Text("topologyKey"))
	}
	for _, term := range affinity.Object("podAntiAffinity").Objects(required) {
		if term.Text("topologyKey") != landing.HostnameLabel {
			beyond("podAntiAffinity", term)
			continue
		}
		n.Apart = append(n.Apart, podTerm(term, n.Labels))
	}
	for _, term := range affinity.Object("podAffinity").Objects(required) {
		beyond("podAffinity", term)
		if n.SelectsItself(podTerm(term, n.Labels)) {
			n.Together = append(n.Together, term.Text("topologyKey"))
		}
	}
	for _, term := range spec.Objects("topologySpreadConstraints") {
		switch {
		case term.Text("whenUnsatisfiable") == "ScheduleAnyway":
		case term.Text("topologyKey") != landing.HostnameLabel:
			beyond("topologySpreadConstraints", term)
		default:
			n.Spread = append(n.Spread, landing.SpreadTerm{
				MaxSkew: term.Int64("maxSkew"), MinDomains: term.Int64("minDomains"),
				Selector:        withLabelKeys(podSelector(term, "labelSelector"), term, n.Labels),
				HonorsTaints:    term.Text("nodeTaintsPolicy") == "Honor",
				IgnoresAffinity: term.Text("nodeAffinityPolicy") == "Ignore",
			})
		}
	}
	n.HostPorts = hostPorts(spec)
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

func podTerm(term Fields, own map[string]string) landing.PodTerm {
	t := landing.PodTerm{Namespaces: term.TextList("namespaces"),
		Selector: withLabelKeys(podSelector(term, "labelSelector"), term, own)}
	if term.Has("namespaceSelector") {
		selector := podSelector(term, "namespaceSelector")
		t.NamespaceSelector = &selector
	}
	return t
}

func podSelector(term Fields, name string) landing.PodSelector {
	if !term.Has(name) {
		return landing.PodSelector{Nothing: true}
	}
	selector := term.Object(name)
	list := requirements(selector, "matchExpressions")
	labels := selector.Texts("matchLabels")
	for _, key := range sortedKeys(labels) {
		list = append(list, landing.Requirement{Key: key, Operator: "In", Values: []string{labels[key]}})
	}
	return landing.PodSelector{Requirements: list}
}

// withLabelKeys adds what the API server makes of matchLabelKeys and mismatchLabelKeys: the values of the pod's own
// labels. A label that the pod lacks is ignored.
func withLabelKeys(selector landing.PodSelector, term Fields, own map[string]string) landing.PodSelector {
	for _, row := range []struct{ field, operator string }{{"matchLabelKeys", "In"}, {"mismatchLabelKeys", "NotIn"}} {
		for _, key := range term.TextList(row.field) {
			if value, set := own[key]; set && !selector.Nothing {
				selector.Requirements = append(selector.Requirements,
					landing.Requirement{Key: key, Operator: row.operator, Values: []string{value}})
			}
		}
	}
	return selector
}

// Port that the operator adds to the Ray container unless it has one of this name (docs/reference/facts.md).
const (
	metricsPortName = "metrics"
	metricsPort     = 8080
)

// hostPorts returns the ports of the node that a pod takes. On the node's own network, these are all that its
// containers list, with the one that the operator adds to the Ray container, which is the first.
func hostPorts(spec Fields) (ports []landing.HostPort) {
	onNode := spec.Flag("hostNetwork")
	for i, container := range runningContainers(spec) {
		listed := container.Objects("ports")
		for _, port := range listed {
			number := port.Int64("hostPort")
			if number == 0 && onNode {
				number = port.Int64("containerPort")
			}
			if number > 0 {
				ports = append(ports, landing.HostPort{
					IP: port.Text("hostIP"), Protocol: port.Text("protocol"), Port: number})
			}
		}
		isMetrics := func(port Fields) bool { return port.Text("name") == metricsPortName }
		if i == 0 && onNode && !slices.ContainsFunc(listed, isMetrics) {
			ports = append(ports, landing.HostPort{Port: metricsPort})
		}
	}
	return ports
}

// runningContainers returns the containers of a pod, and after them the init containers that run beside them.
func runningContainers(spec Fields) []Fields {
	containers := spec.Objects("containers")
	for _, container := range spec.Objects("initContainers") {
		if container.Text("restartPolicy") == "Always" {
			containers = append(containers, container)
		}
	}
	return containers
}
