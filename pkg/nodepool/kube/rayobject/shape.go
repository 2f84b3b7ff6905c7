package rayobject

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/kube/units"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// cardsAsked is the pod label by which ACK spreads the GPU memory of a pod over several cards.
const cardsAsked = "aliyun.com/gpu-count"

// cardOrder is the pod annotation by which HAMi chooses among cards (docs/reference/facts.md#choice-of-a-card).
const cardOrder = "hami.io/gpu-scheduler-policy"

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
	if text, set := template.Object("metadata").Texts("labels")[cardsAsked]; set {
		// ACK does not read other texts as numbers either.
		cards, err := strconv.ParseInt(text, 10, 64)
		if shape.CardsAsked = cards; err != nil || cards <= 0 {
			shape.CardsAsked, shape.CardsInvalid = 0, strconv.Quote(text)
		}
	}
	shape.Choice = sharing.CardChoiceOf(template.Object("metadata").Texts("annotations"))
	shape.Share = cardShare(template)
	order := strings.TrimSpace(template.Object("metadata").Texts("annotations")[cardOrder])
	if order == "binpack" || order == "spread" {
		shape.CardOrder = order
	}
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

// cardShare reads the annotations by which the KAI scheduler gives a pod a part of a card, or of several, and applies
// the rules of KAI's webhook to them (docs/reference/facts.md#kai-shares): a fraction between 0 and 1 or an amount of
// memory in MiB, not both, no limit of whole GPUs beside it, and at least one card.
func cardShare(template Fields) *landing.CardShare {
	annotations := template.Object("metadata").Texts("annotations")
	fraction, hasFraction := annotations["gpu-fraction"]
	memory, hasMemory := annotations["gpu-memory"]
	devices, hasDevices := annotations["gpu-fraction-num-devices"]
	if !hasFraction && !hasMemory && !hasDevices {
		return nil
	}
	part, errPart := strconv.ParseFloat(fraction, 64)
	mib, errMemory := strconv.ParseUint(memory, 10, 64)
	cards, errCards := strconv.ParseUint(devices, 10, 64)
	share := &landing.CardShare{Annotation: "gpu-fraction", Value: fraction, Cards: 1}
	if hasMemory {
		share.Annotation, share.Value = "gpu-memory", memory
	}
	switch {
	case hasFraction && hasMemory:
		share.Refused = "a pod has a fraction or an amount of memory, not both"
	case limitsGPUs(template):
		share.Refused = "a pod with a part of a card requests no " + gpuinfo.NvidiaGPU
	case hasMemory && (errMemory != nil || mib == 0):
		share.Refused = "want MiB, a whole number of at least 1"
	case hasFraction && (errPart != nil || !(part > 0 && part < 1)):
		share.Refused = "want a number between 0 and 1"
	case hasDevices && (errCards != nil || cards == 0 || !hasFraction && !hasMemory):
		share.Annotation, share.Value = "gpu-fraction-num-devices", devices
		share.Refused = "want the number of cards, at least 1, beside gpu-fraction or gpu-memory"
	case hasMemory:
		share.MemoryMiB = int64(min(mib, landing.Unbounded))
	default:
		share.PerCard = int64(min(1/part, landing.Unbounded))
	}
	if errCards == nil {
		share.Cards = int64(min(max(cards, 1), landing.Unbounded))
	}
	return share
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
		converted[name] = max(units.Amount(list[name]), 0)
	}
	return converted
}
