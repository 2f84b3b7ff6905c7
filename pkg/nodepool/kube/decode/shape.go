package decode

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// waitGCSReady is what the init container requests that the operator adds to each worker
// (docs/reference/facts.md#init-container-of-workers).
var waitGCSReady = landing.Quantities{"cpu": raydemand.One / 5, "memory": raydemand.Whole(256 << 20)}

// podShape reads from a pod template what decides where its pods can run. The operator adds the injected init
// containers behind those of the template.
func podShape(template Fields, injected ...landing.Quantities) landing.PodShape {
	spec := template.Object("spec")
	shape := landing.PodShape{
		NodeName: spec.Text("nodeName"),
		Requests: podRequests(spec, injected),
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
// PodRequests): the sum of the containers and of the init containers that keep running, or the need of a single init
// container if that is more; instead of these the pod's own resources, if it has any; plus the overhead.
func podRequests(template Fields, injected []landing.Quantities) landing.Quantities {
	sum, peak, beside := landing.Quantities{}, landing.Quantities{}, landing.Quantities{}
	for _, c := range template.Objects("initContainers") {
		own := ownRequests(c)
		if c.Text("restartPolicy") == "Always" {
			addInto(beside, own)
			maxInto(peak, beside)
			continue
		}
		addInto(own, beside)
		maxInto(peak, own)
	}
	for _, c := range template.Objects("containers") {
		addInto(sum, ownRequests(c))
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
