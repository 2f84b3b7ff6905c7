package sharing

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Request is what a pod asks of single cards: a number of cards, and of each an amount of memory and a percentage of
// cores. A resource that is reported as a sum over cards does not say whether one of them is large enough.
type Request struct {
	// Resource counts Memory, and Kind is that of the nodes where it does; empty if the pod asks for whole cards, or
	// for percent of them.
	Resource string
	Kind     gpuinfo.Kind
	// Cards is how many parts of cards the pod has, and Apart how many of them are on different cards. Stacked: several
	// containers have parts of their own, which one card may give.
	Cards, Apart int64
	Stacked      bool
	// Memory is in units of Resource: GiB or another unit for gpu-mem, MiB for HAMi and Volcano. It is that of a part
	// on average, and Largest that of the largest part. Percent is in percent of a card's memory, if Memory is 0. Cores
	// is in percent of a card.
	Memory, Largest, Percent, Cores int64
}

// parts are the resources by which pods ask for parts of cards: devices, and beside them, for each device, an amount of
// memory, percent of the card's memory, and percent of its cores. The first row that a pod asks counts. kind is that of
// the nodes; Koordinator has no kind of its own. alone are the columns that make a request: memory asks for parts of
// cards in each row.
var parts = []struct {
	device, memory, percent, cores string
	kind                           gpuinfo.Kind
	alone                          []string
}{
	{gpuinfo.KoordinatorShared, "", gpuinfo.KoordinatorMemoryRatio, gpuinfo.KoordinatorCores, "", nil},
	{"", gpuinfo.AliyunMemory, "", gpuinfo.AliyunCores, gpuinfo.GPUMemory, nil},
	{"", gpuinfo.VolcanoShared, "", "", gpuinfo.GPUMemory, nil},
	{gpuinfo.VolcanoNumber, gpuinfo.VolcanoMemory, gpuinfo.VolcanoMemoryPercentage, gpuinfo.VolcanoCores, gpuinfo.VGPU,
		[]string{gpuinfo.VolcanoNumber}},
	{gpuinfo.NvidiaGPU, gpuinfo.HAMiMemory, gpuinfo.HAMiMemoryPercentage, gpuinfo.HAMiCores, gpuinfo.VGPU,
		[]string{gpuinfo.HAMiCores}},
}

// unitsOf returns the whole units of a resource that a pod requests.
func unitsOf(requests map[string]raydemand.Amount, resource string) int64 {
	return int64(requests[resource] / raydemand.One)
}

// RequestOf returns what a pod, or one container of it, asks of cards; false if it asks for none. spread is over how
// many cards ACK spreads memory. memories are other resources that count memory of cards, sorted.
func RequestOf(of map[string]raydemand.Amount, spread int64, memories ...string) (Request, bool) {
	for _, row := range parts {
		r := Request{Resource: row.memory, Kind: row.kind, Cards: max(unitsOf(of, row.device), 1),
			Memory: max(unitsOf(of, row.memory), 0), Cores: unitsOf(of, row.cores)}
		asks := func(name string) bool { return unitsOf(of, name) > 0 }
		switch {
		case row.kind == "":
			if r = koordinatorRequest(of); r.Cards == 0 {
				continue
			}
		case r.Memory == 0 && !slices.ContainsFunc(row.alone, asks):
			continue
		case r.Memory == 0: // HAMi and Volcano: all of the memory without a percentage
			r.Percent = percentOr100(unitsOf(of, row.percent))
		case r.Resource == gpuinfo.AliyunMemory && spread > 1:
			r.Cards, r.Memory = spread, (r.Memory+spread-1)/spread
		}
		if r.Resource == gpuinfo.HAMiMemory {
			r.Cores = min(r.Cores, 100) // HAMi takes more for 100
		}
		return r.each(), true
	}
	for _, name := range memories {
		if units := unitsOf(of, name); units > 0 {
			return Request{Resource: name, Kind: gpuinfo.GPUMemory, Cards: 1, Memory: units}.each(), true
		}
	}
	whole := Request{Cards: unitsOf(of, gpuinfo.NvidiaGPU),
		Percent: percentOr100(unitsOf(of, gpuinfo.HAMiMemoryPercentage))}
	return whole.each(), whole.Cards > 0
}

// each fills in what is the same for all parts of one container.
func (r Request) each() Request {
	r.Apart, r.Largest = r.Cards, r.Memory
	return r
}

// Joined returns the request of a pod whose containers have these requests.
func Joined(containers []Request) (sum Request) {
	for _, part := range containers {
		sum.Resource, sum.Kind = part.Resource, part.Kind
		sum.Cards, sum.Apart = sum.Cards+part.Cards, max(sum.Apart, part.Cards)
		sum.Memory, sum.Cores = sum.Memory+part.Memory*part.Cards, sum.Cores+part.Cores*part.Cards
		sum.Largest = max(sum.Largest, part.Memory)
	}
	sum.Memory, sum.Cores, sum.Stacked = sum.Memory/sum.Cards, sum.Cores/sum.Cards, true
	if sum.Memory == 0 {
		sum.Percent = 100
	}
	return sum
}

// ApartOn returns how many different cards of the node the pod needs at least. HAMi gives several instances of a card
// that it partitions with MIG to one container (HAMi v2.9.0, Fit in pkg/device/nvidia/device.go).
func (r Request) ApartOn(gpus *GPUs) int64 {
	if _, some := gpus.CutOnRequest(); r.Resource == gpuinfo.HAMiMemory && some {
		return 1
	}
	return r.Apart
}

// Beside returns what a pod asks beside a resource for each unit of it; 0 if it does not. Koordinator gives each share
// the same part of what the pod writes, and counts memory in bytes (docs/reference/facts.md#requests-in-percent); here
// it is in MiB, without a Resource.
func Beside(resource string, of map[string]raydemand.Amount) Request {
	for _, row := range parts {
		shares, memory := int64(1), unitsOf(of, row.memory)
		switch {
		case resource == gpuinfo.AliyunMemory && row.memory == resource:
			return Request{Cores: max(unitsOf(of, row.cores), 0)}
		case row.device == "" || row.device != resource:
			continue
		case row.kind == "":
			shares, memory = max(unitsOf(of, resource), 1), unitsOf(of, gpuinfo.KoordinatorMemory)>>20
		}
		each := func(units int64) int64 { return (max(units, 0) + shares - 1) / shares }
		return Request{Resource: row.memory, Memory: max(memory, 0) / shares,
			Percent: each(unitsOf(of, row.percent)), Cores: each(unitsOf(of, row.cores))}
	}
	return Request{}
}

// Parts is how a scheduler hands out parts of the cards of a node.
type Parts struct {
	// Memory is the resource in whose units the memory of a card counts; empty if it counts in percent, or if there is
	// none. Slots is how many pods may share a card, 0 if nothing bounds it.
	Memory string
	Slots  int64
	// Order is how the scheduler chooses among cards that fit.
	Order string
	// InPercent is how many cards there are of which all counts in percent; 0 if it does not.
	InPercent int64
}

// The orders in which schedulers choose among cards that fit: the one of which the least is left (binpack), the one of
// which the most is left (spread), and the last in the list, however full it is, as Volcano does
// (docs/reference/facts.md#choice-of-a-card).
const (
	FullestCard  = "binpack"
	EmptiestCard = "spread"
	LastCard     = "last"
)

// Parts returns how parts of the node's cards are handed out; false if none are.
func (n *GPUs) Parts(labels map[string]string) (p Parts, some bool) {
	switch percent := n.Units[gpuinfo.KoordinatorMemoryRatio]; {
	case percent >= 100:
		return Parts{InPercent: percent / 100, Order: EmptiestCard}, true
	case n.Kind == gpuinfo.GPUMemory:
		// ACK's label says how it chooses among cards (ACK documentation, GPU sharing).
		p.Order = cmp.Or(labels[labelACKPlacement], FullestCard)
		for _, name := range slices.Sorted(maps.Keys(n.UnitsPerCard)) {
			p.Memory = name
		}
		return p, true
	case n.Kind == gpuinfo.VGPU && n.Cards != nil:
		scheduler := n.scheduler()
		return Parts{Memory: scheduler.Memory, Order: scheduler.order,
			Slots: n.Units[scheduler.Count] / max(*n.Cards, 1)}, true
	}
	return p, false
}

// RefusalOf returns what ACK or Koordinator does not accept, so that no pod is ever placed
// (docs/reference/facts.md#requests-in-percent); false if they accept it. spread is over how many cards ACK spreads
// memory.
func RefusalOf(of map[string]raydemand.Amount, spread int64) (r raydemand.Finding, refused bool) {
	memory, cores := unitsOf(of, gpuinfo.AliyunMemory), unitsOf(of, gpuinfo.AliyunCores)
	refusal := func(name, why, fix string) (raydemand.Finding, bool) {
		return raydemand.Finding{Field: name, Seen: of[name].String(), Why: why, Fix: fix}, true
	}
	switch {
	case cores > 0 && (memory <= 0 || cores > 100 || cores%5 != 0 || spread > 1):
		return refusal(gpuinfo.AliyunCores, "ACK hands out cores with memory of one card, in multiples of 5 percent",
			"ask for 5 to 100, with "+gpuinfo.AliyunMemory+" and without the pod label aliyun.com/gpu-count")
	case spread > 1 && memory%spread != 0:
		return refusal(gpuinfo.AliyunMemory, fmt.Sprintf("it cannot be spread evenly over the %d cards of the pod "+
			"label aliyun.com/gpu-count", spread), "ask for a multiple of the number of cards")
	}
	shares := max(unitsOf(of, gpuinfo.KoordinatorShared), 1)
	for _, name := range []string{gpuinfo.KoordinatorBoth, gpuinfo.KoordinatorCores, gpuinfo.KoordinatorMemoryRatio} {
		percent := unitsOf(of, name)
		if percent%shares != 0 || percent > 100*shares && (shares > 1 || percent%100 != 0) {
			return refusal(name, "Koordinator refuses it: it is not the same part of each card",
				fmt.Sprintf("ask for at most 100 of each of %d cards, or for whole cards", shares))
		}
	}
	return r, false
}

// RefusesPod returns why the node's scheduler gives a pod with a request no part of any card, as it is set up; empty if
// it may. certain: nothing else about the cards matters then.
func (n *GPUs) RefusesPod(r Request) (why string, certain bool) {
	switch {
	case r.Resource == gpuinfo.HAMiMemory && n.Unregistered:
		return "has no cards that HAMi registers, so HAMi's scheduler gives no part of them", true
	case r.Resource == gpuinfo.AliyunMemory && n.Kind == r.Kind && r.Cores == 0 && n.Units[gpuinfo.AliyunCores] > 0:
		// A node in mode core_mem reports cores, and ACK only places pods on it that request cores.
		return "takes requests for " + gpuinfo.AliyunMemory + " with " + gpuinfo.AliyunCores + " only", false
	}
	return "", false
}

// CardsOf returns how many cards an amount of memory or cores that is requested without devices is on: as many as there
// are hundreds of percent, as many as ACK spreads memory over, or one.
func CardsOf(resource string, amount raydemand.Amount, spread int64) int64 {
	switch resource {
	case gpuinfo.AliyunMemory:
		return max(spread, 1)
	case gpuinfo.KoordinatorBoth, gpuinfo.KoordinatorCores, gpuinfo.KoordinatorMemoryRatio:
		return int64((amount-1)/(100*raydemand.One)) + 1
	}
	return 1
}

// CardChoice has the annotations by which a pod says which cards of HAMi or Volcano it wants.
type CardChoice map[string]string

func model(c Card) string { return c.Model }
func mode(c Card) string  { return c.Mode }
func uuid(c Card) string  { return value(c.UUID) }

// cardChoices are these annotations: what of a card each is compared with and how, and whether a match rules the card
// out. A row without a source counts for HAMi and for Volcano (their checkType, and CheckUUID and gpuUUIDFilter).
var cardChoices = []struct {
	key, source string
	of          func(Card) string
	words       string
	matches     func(value, of string) bool
	excludes    bool
}{
	{"nvidia.com/use-gputype", "", model, "of type %s", contained, false},
	{"nvidia.com/nouse-gputype", "", model, "of type %s", contained, true},
	{"nvidia.com/vgpu-mode", hami.Name, mode, "in mode %s", strings.Contains, false},
	{"volcano.sh/vgpu-mode", volcano.Name, mode, "in mode %s",
		func(value, of string) bool { return value == of }, false},
	{"nvidia.com/use-gpuuuid", hami.Name, uuid, "with UUID %s", listed, false},
	{"nvidia.com/nouse-gpuuuid", hami.Name, uuid, "with UUID %s", listed, true},
	{"volcano.sh/vgpu-use-gpuuuid", volcano.Name, uuid, "with UUID %s", listed, false},
	{"volcano.sh/vgpu-nouse-gpuuuid", volcano.Name, uuid, "with UUID %s", listed, true},
}

// listed reports whether a list with commas names a UUID.
func listed(list, uuid string) bool { return slices.Contains(words(list), uuid) }

// contained reports whether a model contains one of the types in a list, whatever the case.
func contained(list, model string) bool {
	return slices.ContainsFunc(words(list), func(word string) bool {
		return strings.Contains(strings.ToUpper(model), strings.ToUpper(word))
	})
}

// words returns what a list with commas names.
func words(list string) (all []string) {
	for word := range strings.SplitSeq(list, ",") {
		if word = strings.TrimSpace(word); word != "" {
			all = append(all, word)
		}
	}
	return all
}

// CardChoiceOf returns what a pod with these annotations wants; nil if it may have any card.
func CardChoiceOf(annotations map[string]string) CardChoice {
	var choice CardChoice
	for _, c := range cardChoices {
		if value := annotations[c.key]; len(words(value)) > 0 {
			if choice == nil {
				choice = CardChoice{}
			}
			choice[c.key] = value
		}
	}
	return choice
}

// Refuses says why the pod does not want the card: the annotation, and what the card is; empty if it may have it. What
// is unknown of a card is no reason.
func (c CardChoice) Refuses(card Card) string {
	for _, row := range cardChoices {
		value, has := c[row.key], row.of(card)
		unknown := value == "" || has == "" || row.source != "" && row.source != card.Source
		if unknown || row.matches(value, has) != row.excludes {
			continue
		}
		return fmt.Sprintf("a card "+row.words+" where the pod has the annotation %s: %s", has, row.key, value)
	}
	return ""
}

// NamesCards reports whether the pod wants single cards, which no two nodes have.
func (c CardChoice) NamesCards() bool {
	return someOf(c, func(key, _ string) bool { return strings.HasSuffix(key, "uuid") })
}

// TooFew returns what the pod does not want about the node's cards, if it wants fewer of them than it asks for; empty
// if there are enough.
func (c CardChoice) TooFew(gpus *GPUs, cards int64) (refused string) {
	if c == nil || gpus.Kind != gpuinfo.VGPU || len(gpus.PerCard) == 0 {
		return ""
	}
	wanted := int64(0)
	for _, card := range gpus.PerCard {
		why := c.Refuses(card)
		if why == "" {
			wanted++
		}
		refused = cmp.Or(refused, why)
	}
	if wanted >= max(cards, 1) {
		return ""
	}
	return "has " + refused
}

// Three suppliers give a pod what it requests under the name of an extended resource. Who supplies a name decides what
// it means that a node does not announce it:
//
//	a device plugin         nodes announce the name; a node that does not has none
//	a DeviceClass           ResourceSlices offer devices, and the scheduler makes a claim for the pod
//	an extender             nodes bound nothing: an extender of the scheduler counts the name
//
// Without DeviceClasses, it is unknown which names they supply, so a node that does not announce a name proves nothing.

// byExtender are the names that HAMi's chart gives its scheduler extender as ignoredByScheduler, without those that
// device plugins announce as well (docs/reference/facts.md#hami-resources), and what Volcano's scheduler ignores in the
// same way (GetIgnoredDevices in pkg/scheduler/api/devices/nvidia/vgpu).
var byExtender = map[string]bool{
	gpuinfo.HAMiMemory: true, gpuinfo.HAMiMemoryPercentage: true, gpuinfo.HAMiCores: true,
	gpuinfo.VolcanoMemoryPercentage: true, "nvidia.com/priority": true, "nvidia.com/remote-gpu-memory": true,
	"amd.com/gpumem": true, "amd.com/gpucores": true, "alibaba.com/ppu-memory": true, "alibaba.com/gpu-core": true,
	"hygon.com/dcumem": true, "hygon.com/dcucores": true, "hygon.com/hcumem": true, "hygon.com/hcucores": true,
	"metax-tech.com/vcore": true, "metax-tech.com/vmemory": true, "kunlunxin.com/vxpu-memory": true,
	"enflame.com/vgcu-percentage": true, "enflame.com/gcu-memory": true, "enflame.com/gcu-core": true,
}

// ByExtender reports whether an extender of the scheduler counts a resource. Ascend's names include the chip, as
// huawei.com/Ascend910B4-memory does.
func ByExtender(name string) bool {
	return byExtender[name] || strings.HasPrefix(name, "huawei.com/Ascend") &&
		(strings.HasSuffix(name, "-memory") || strings.HasSuffix(name, "-core"))
}

// SuppliedElsewhere returns the resources that nodes do not bound, as the configuration says; nil if there are none.
func (g Reader) SuppliedElsewhere() map[string]bool {
	var names map[string]bool
	for _, resource := range g.Names.Configured {
		if resource.Kind == gpuinfo.Elsewhere {
			if names == nil {
				names = map[string]bool{}
			}
			names[resource.Name] = true
		}
	}
	return names
}

// MayBeClass reports whether a DeviceClass can supply a name: it is that of an extended resource
// (k8s.io/kubernetes v1.36, pkg/scheduler/util, IsDRAExtendedResourceName).
func MayBeClass(name string) bool {
	domain, _, qualified := strings.Cut(name, "/")
	native := domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io")
	return qualified && (!native || strings.HasPrefix(name, gpuinfo.ClassPrefix))
}

// TemplateOf returns the ResourceClaimTemplate of a resource, as namespace/name, and whether it stands for one.
func TemplateOf(resource string) (template string, is bool) {
	name, is := strings.CutPrefix(resource, gpuinfo.ClaimPrefix)
	return strings.Replace(name, ".", "/", 1), is
}
