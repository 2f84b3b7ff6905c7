package nodepool

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// ReportedGPUs is what the nodes say about the GPUs of one worker. It is shared and must not be changed.
type ReportedGPUs struct {
	// Value is how many GPUs the Ray container gets; nil if the nodes do not prove a number.
	Value *raydemand.Amount
	// Source names the resource and the nodes behind Value, or says why there is no value.
	Source string
	// Shares is how many shares of shared devices a pod requests; 0 if the devices are not shared. Instances is how
	// many MIG instances it gets; 0 if it gets none.
	Shares, Instances int64
}

// Reported returns how many GPUs a pod of the group gets on the nodes where it fits. The device plugin decides what the
// limit of the Ray container means: a card, a MIG instance, or a share of either. An amount of GPU memory is on one
// card. Ray counts the devices that a container sees, so each of these is one GPU to it, whatever its size.
func Reported(g sharing.Reader, group *WorkerGroup, nodes []landing.Node) *ReportedGPUs {
	devices, names, problem := group.Devices(g)
	switch {
	case problem != "":
		return &ReportedGPUs{Source: problem}
	case len(names) == 0 && group.GPUs.Claims:
		return &ReportedGPUs{Source: "a DRA claim gives no number"}
	case len(names) == 0 && group.rayGPUs() == 0:
		return &ReportedGPUs{Source: "no GPU is asked for"}
	}
	candidates := group.Pod.FittingNodes(nodes)
	if len(candidates) == 0 {
		return &ReportedGPUs{Source: "no node could hold a pod of the group"}
	}
	if len(names) == 0 {
		return withoutRequest(g, candidates)
	}
	reported := granted(g, devices, names, candidates)
	for _, node := range candidates {
		reported.Instances = max(reported.Instances, instancesOn(g, group.GPUs.Limits, landing.ReadNode(g, node)))
	}
	return reported
}

// withoutRequest handles a group that reports GPUs to Ray and requests none. It gets none if no node has any. If one
// has, the container may see all of them.
func withoutRequest(g sharing.Reader, candidates []*landing.Node) *ReportedGPUs {
	for _, node := range candidates {
		for name, amount := range node.Allocatable {
			resource, err := g.Names.Resource(name)
			_, other := gpuinfo.AcceleratorOf(name)
			isGPU := errors.Is(err, gpuinfo.ErrUnknownResource) || err == nil && resource.Role == gpuinfo.Devices
			if !other && amount > 0 && isGPU {
				return &ReportedGPUs{Source: "no GPU is asked for, and node " + node.Name + " has some"}
			}
		}
	}
	none := raydemand.Amount(0)
	return &ReportedGPUs{Value: &none, Source: "no GPU is asked for, and " + countOf(candidates) +
		" that could hold a pod have none"}
}

// instancesOn counts the MIG instances that limits mean on a node: those under names of their own and, on a node with
// the single strategy, nvidia.com/gpu.
func instancesOn(g sharing.Reader, limits landing.Quantities, node sharing.GPUs) int64 {
	if node.Kind == gpuinfo.TimeSliced {
		return 0
	}
	n := namedInstances(g.Names, limits)
	if node.Kind == gpuinfo.MIG && node.Profile != nil {
		n += landing.WholeUnits(limits[gpuinfo.NvidiaGPU])
	}
	return n
}

func granted(g sharing.Reader, devices raydemand.Amount, names []string, candidates []*landing.Node) *ReportedGPUs {
	reported := &ReportedGPUs{Value: &devices}
	kinds := map[gpuKind]bool{}
	for _, node := range candidates {
		kind := kindOf(g, node)
		kinds[kind] = true
		if n := int64(devices / raydemand.One); kind.shared() && n > 1 {
			reported.Shares = n
		}
	}
	const mostKinds = 3
	kindTexts := make([]string, 0, len(kinds))
	for kind := range kinds {
		kindTexts = append(kindTexts, kind.String())
	}
	slices.Sort(kindTexts)
	if len(kindTexts) > mostKinds {
		kindTexts = append(kindTexts[:mostKinds], fmt.Sprintf("%d more kinds", len(kindTexts)-mostKinds))
	}
	reported.Source = strings.Join(names, " + ") + " on " + countOf(candidates) + ": " + strings.Join(kindTexts, ", ")
	return reported
}

// Devices counts the devices that the Ray container sees as GPUs by its limits, and names the resources: devices add
// up. Memory and cores beside devices say how much of each; alone they are on one card, on as many cards as there are
// hundreds of percent, or on as many as the pod label says over which ACK spreads memory. KAI's annotations count if
// there is no limit. problem names a resource that might be a GPU.
func (g *WorkerGroup) Devices(reader sharing.Reader) (sum raydemand.Amount, names []string, problem string) {
	alone, aloneNames := raydemand.Amount(0), []string(nil)
	for _, name := range slices.Sorted(maps.Keys(g.GPUs.Limits)) {
		amount := g.GPUs.Limits[name]
		if _, other := gpuinfo.AcceleratorOf(name); other || amount <= 0 {
			continue
		}
		resource, err := reader.Names.Resource(name)
		switch {
		case errors.Is(err, gpuinfo.ErrNotGPU):
		case err != nil:
			return 0, nil, err.Error()
		case resource.Role == gpuinfo.Devices:
			sum, names = sum.Plus(amount), append(names, name)
		case resource.Role != gpuinfo.Information:
			alone, aloneNames = max(alone, g.cardsOf(name, amount)), append(aloneNames, name)
		}
	}
	if share := g.Pod.Share; share != nil && sum == 0 && alone == 0 {
		return raydemand.Whole(share.Cards), []string{"annotation " + share.Annotation}, ""
	}
	if sum == 0 {
		return alone, aloneNames, ""
	}
	return sum, names, ""
}

// inPercent are the resources of which 100 are one card, and more are several (Koordinator's documentation; ACK stops
// at 100).
var inPercent = map[string]bool{
	"koordinator.sh/gpu": true, "koordinator.sh/gpu-core": true, "koordinator.sh/gpu-memory-ratio": true,
}

func (g *WorkerGroup) cardsOf(name string, amount raydemand.Amount) raydemand.Amount {
	if name == gpuinfo.AliyunMemory {
		return raydemand.Whole(max(g.Pod.CardsAsked, 1))
	}
	if !inPercent[name] {
		return raydemand.One
	}
	const card = 100 * raydemand.One
	return raydemand.Whole(int64((amount-1)/card) + 1)
}

// gpuKind is what distinguishes the GPUs of one node from another's, in words for people.
type gpuKind struct {
	kind             gpuinfo.Kind
	replicas         int64
	profile, product string
}

func kindOf(g sharing.Reader, node *landing.Node) gpuKind {
	read := landing.ReadNode(g, node)
	k := gpuKind{kind: read.Kind}
	if read.Replicas != nil {
		k.replicas = *read.Replicas
	}
	if read.Profile != nil {
		k.profile = *read.Profile
	}
	if read.Product != nil {
		k.product = *read.Product
	}
	return k
}

func (k gpuKind) shared() bool { return k.kind == gpuinfo.TimeSliced || k.kind == gpuinfo.MPS }

// String returns, for example, "mig 1g.10gb of NVIDIA-H100-80GB-HBM3" or "time-sliced ×4 Tesla-T4".
func (k gpuKind) String() string {
	words := []string{string(k.kind)}
	if k.kind == gpuinfo.UnknownKind {
		words[0] = "kind unknown"
	}
	if k.replicas > 1 {
		words = append(words, fmt.Sprintf("×%d", k.replicas))
	}
	if k.profile != "" {
		words = append(words, k.profile)
	}
	if k.profile != "" && k.product != "" {
		words = append(words, "of")
	}
	if k.product != "" {
		words = append(words, k.product)
	}
	return strings.Join(words, " ")
}

// countOf counts nodes and, separately, the pools that have no node and are known only by their declaration.
func countOf(nodes []*landing.Node) string {
	declared, n := 0, 0
	for _, node := range nodes {
		if node.Declared {
			declared++
			continue
		}
		n += 1 + node.Alike
	}
	var parts []string
	if n > 0 {
		parts = append(parts, plural(n, "node"))
	}
	if declared > 0 {
		parts = append(parts, plural(declared, "declared pool"))
	}
	return strings.Join(parts, " and ")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
