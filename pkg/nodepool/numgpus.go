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

// Codes of findings about how many GPUs a worker group's pods report to Ray (docs/reference/num-gpus.md).
const (
	// NumGPUsMismatch: a new pod reports a different number of GPUs to Ray than the device plugin assigns to it.
	NumGPUsMismatch = "num-gpus-mismatch"
	// GPUSharesSeveral: a pod requests more than one share of shared devices, which gives it no more than one share.
	GPUSharesSeveral = "gpu-shares-several"
)

// GPUSpec is what a RayCluster's spec alone says about the GPUs of one worker of a group.
type GPUSpec struct {
	// Declared is the number that a person wrote in the group's field resources or in rayStartParams, and DeclaredBy
	// says where (resources.GPU, rayStartParams.num-gpus); nil if there is none, or if it is not a number.
	Declared   *raydemand.Amount
	DeclaredBy string
	// Derived is what is passed to `ray start` as --num-gpus, by the operator or by the container's own command.
	// DerivedBy says where that comes from. It is nil without that flag, or if `ray start` does not accept its value.
	Derived   *raydemand.Amount
	DerivedBy string
	// Limits are the extended resources of the Ray container; Ray does not see those of other containers.
	Limits landing.Quantities
	// Counted are the limits that the operator counts as GPUs, in its order: it passes the first one on. Passed are
	// those that it passes on under another name, as google.com/tpu.
	Counted, Passed []string
	// Unparsed says that the operator cannot parse rayStartParams.resources and passes none of them on.
	Unparsed bool
	// Claims says that the Ray container has DRA claims, or that the scheduler makes one for the name of a DeviceClass
	// in its limits. Claims do not give a number.
	Claims bool
	// Field is where a number of GPUs is to be written, relative to the group: rayStartParams.num-gpus or, if the group
	// has the field resources, an entry of that. The operator refuses a spec with both.
	Field string
	// Fixed says why writing it would not change what Ray gets; empty if it would.
	Fixed string
}

// NumGPUs are the three opinions on how many GPUs one worker of a group has, and what its Ray nodes report. Unknown
// numbers are nil, and Sources then says why, if there is anything to say.
type NumGPUs struct {
	// Declared is written in the spec by a person. Derived is passed to `ray start`. Reported is how many GPUs the
	// device plugin assigns to the Ray container on the nodes where a pod fits.
	Declared *raydemand.Amount `json:"declared"`
	Derived  *raydemand.Amount `json:"derived"`
	Reported *raydemand.Amount `json:"reported"`
	// Ray is what the newest running Ray node of the group reports.
	Ray     *raydemand.Amount `json:"ray"`
	Sources NumGPUsSources    `json:"sources"`
	// Mismatch says that Reported is known and a new pod would report a different number.
	Mismatch bool `json:"mismatch"`
}

// NumGPUsSources says where each number of NumGPUs comes from, or why there is none.
type NumGPUsSources struct {
	Declared string `json:"declared"`
	Derived  string `json:"derived"`
	Reported string `json:"reported"`
	Ray      string `json:"ray"`
}

// RayGPUs is what the running Ray nodes of a group report.
type RayGPUs struct {
	// Nodes counts them, and Same those that report the same as the newest.
	Nodes, Same int
	// Newest is what the newest one reports; nil if there is none.
	Newest *raydemand.Amount
}

// NumGPUs puts the opinions on a group side by side. The field Reported must be set for the nodes to have a say.
func (g *WorkerGroup) NumGPUs(ray RayGPUs) NumGPUs {
	n := NumGPUs{
		Declared: g.GPUs.Declared, Derived: g.GPUs.Derived, Ray: ray.Newest,
		Sources: NumGPUsSources{Declared: g.GPUs.DeclaredBy, Derived: g.GPUs.DerivedBy, Reported: "no node is known"},
	}
	if g.Reported != nil {
		n.Reported, n.Sources.Reported = g.Reported.Value, g.Reported.Source
		if n.Reported != nil && g.OneOfInstances() {
			n.Reported = new(raydemand.One)
			n.Sources.Reported += fmt.Sprintf("; %d instances count as 1 GPU, as declared", g.MIGInstances())
		}
	}
	switch {
	case ray.Newest == nil:
	case ray.Same < ray.Nodes:
		n.Sources.Ray = fmt.Sprintf("the newest of %d running Ray nodes, %d of which report another number", ray.Nodes,
			ray.Nodes-ray.Same)
	default:
		n.Sources.Ray = fmt.Sprintf("%d running Ray nodes", ray.Nodes)
	}
	n.Mismatch = n.Reported != nil && g.rayGPUs() != *n.Reported
	return n
}

// rayGPUs is how many GPUs a new pod reports to Ray, as far as its spec says. A missing number counts as zero, because
// a group that starts for GPUs has one.
func (g *WorkerGroup) rayGPUs() raydemand.Amount { return g.Resources[raydemand.GPU] }

// NumGPUsFindings returns what is wrong with a group's numbers and how to fix it. The caller sets Object.
func (g *WorkerGroup) NumGPUsFindings(n NumGPUs) []raydemand.Finding {
	var all []raydemand.Finding
	field := fmt.Sprintf("spec.workerGroupSpecs[%d].", g.Index)
	if n.Mismatch {
		seen := "no number"
		if amount, passed := g.Resources[raydemand.GPU]; passed {
			seen = amount.String()
		}
		all = append(all, raydemand.Finding{Code: NumGPUsMismatch, Severity: raydemand.Warning,
			Field: field + g.GPUs.Field,
			Seen:  fmt.Sprintf("declares %s, the device plugin gives %s", seen, n.Reported),
			Why: fmt.Sprintf("a new worker of group %s has %s (%s) but reports another number to Ray, so Ray places "+
				"tasks with num_gpus by a wrong number; the plan uses the number that the group declares",
				g.Name, gpusInWords(*n.Reported), n.Sources.Reported),
			Fix: g.mismatchFix(*n.Reported)})
	}
	if g.Reported != nil && g.Reported.Shares > 1 {
		all = append(all, raydemand.Finding{Code: GPUSharesSeveral, Severity: raydemand.Warning,
			Field: field + "template.spec.containers[0].resources.limits",
			Seen:  n.Sources.Reported,
			Why: "several shares are not more of a GPU: with time-slicing they may be of one card, and with " +
				"failRequestsGreaterThanOne, the default of MPS, the kubelet refuses the pod",
			Fix: "request one share"})
	}
	if f, several := g.MIGInstancesFinding(); several {
		all = append(all, f)
	}
	return all
}

// mismatchFix returns the fix of a mismatch.
func (g *WorkerGroup) mismatchFix(reported raydemand.Amount) string {
	if g.GPUs.Fixed != "" {
		return "declare " + reported.String() + ": " + g.GPUs.Fixed
	}
	section, key, _ := strings.Cut(g.GPUs.Field, ".")
	return fmt.Sprintf(`set %s: {%q: "%s"} in the group, or annotate heliostat.dev/num-gpus-sync: when-empty`, section,
		key, reported)
}

func gpusInWords(n raydemand.Amount) string {
	if n == raydemand.One {
		return "1 GPU"
	}
	return n.String() + " GPUs"
}

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
// has, the container may see all of them, or get some under a name that a DeviceClass supplies.
func withoutRequest(g sharing.Reader, candidates []*landing.Node) *ReportedGPUs {
	some := func(node *landing.Node) *ReportedGPUs {
		return &ReportedGPUs{Source: "no GPU is asked for, and node " + node.Name + " has some"}
	}
	for _, node := range candidates {
		cards := landing.ReadNode(g, node).PerCard
		if slices.ContainsFunc(cards, func(card sharing.Card) bool { return card.Source == "dra" }) {
			return some(node)
		}
		for name, amount := range node.Allocatable {
			resource, err := g.Names.Resource(name)
			_, other := gpuinfo.AcceleratorOf(name)
			isGPU := errors.Is(err, gpuinfo.ErrUnknownResource) || err == nil && resource.Role == gpuinfo.Devices
			if !other && amount > 0 && isGPU {
				return some(node)
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
	kinds := map[string]bool{}
	for _, node := range candidates {
		read := landing.ReadNode(g, node)
		kinds[kindWords(read)] = true
		shared := read.Kind == gpuinfo.TimeSliced || read.Kind == gpuinfo.MPS
		if n := int64(devices / raydemand.One); shared && n > 1 {
			reported.Shares = n
		}
	}
	const mostKinds = 3
	kindTexts := slices.Sorted(maps.Keys(kinds))
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
			cards := raydemand.Whole(sharing.CardsOf(name, amount, g.Pod.CardsAsked))
			alone, aloneNames = max(alone, cards), append(aloneNames, name)
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

// kindWords returns what distinguishes the GPUs of one node from another's, for example "mig 1g.10gb of
// NVIDIA-H100-80GB-HBM3" or "time-sliced ×4 Tesla-T4".
func kindWords(read sharing.GPUs) string {
	words := []string{string(read.Kind)}
	if read.Kind == gpuinfo.UnknownKind {
		words[0] = "kind unknown"
	}
	if read.Replicas != nil && *read.Replicas > 1 {
		words = append(words, fmt.Sprintf("×%d", *read.Replicas))
	}
	if read.Profile != nil {
		words = append(words, *read.Profile)
	}
	if read.Profile != nil && read.Product != nil {
		words = append(words, "of")
	}
	if read.Product != nil {
		words = append(words, *read.Product)
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

// MIGInstancesSeveral is the code of the finding that a pod gets several MIG instances, of which a process uses one.
const MIGInstancesSeveral = "mig-instances-several"

// MIGInstances returns how many MIG instances the Ray container of a pod gets: by the nodes where the pod fits or,
// without any, by the names of the resources.
func (g *WorkerGroup) MIGInstances() int64 {
	if g.Reported != nil && g.Reported.Instances > 0 {
		return g.Reported.Instances
	}
	return namedInstances(gpuinfo.Names{}, g.GPUs.Limits)
}

// namedInstances counts the instances that are requested under names of their own.
func namedInstances(names gpuinfo.Names, limits map[string]raydemand.Amount) (n int64) {
	for name, amount := range limits {
		resource, err := names.Resource(name)
		if err == nil && resource.Profile != "" && !resource.Shared && amount > 0 {
			n += int64(amount / raydemand.One)
		}
	}
	return n
}

// OneOfInstances reports whether a pod has several MIG instances and the group declares one GPU: a CUDA process uses
// one instance, however many its container has (docs/reference/facts.md#instances-of-a-process).
func (g *WorkerGroup) OneOfInstances() bool {
	return g.GPUs.Declared != nil && *g.GPUs.Declared == raydemand.One && g.MIGInstances() > 1
}

// MIGInstancesFinding reports that a pod gets several MIG instances; false if it does not, or if the group declares one
// GPU. The caller sets Object.
func (g *WorkerGroup) MIGInstancesFinding() (raydemand.Finding, bool) {
	n := g.MIGInstances()
	if n <= 1 || g.OneOfInstances() {
		return raydemand.Finding{}, false
	}
	return raydemand.Finding{
		Code: MIGInstancesSeveral, Severity: raydemand.Warning,
		Field: fmt.Sprintf("spec.workerGroupSpecs[%d].template.spec.containers[0].resources.limits", g.Index),
		Seen:  fmt.Sprintf("%d MIG instances", n),
		Why: fmt.Sprintf("a CUDA process uses one MIG instance, and Ray assigns the numbers 0 to %d to its tasks, of "+
			"which only 0 is a device; so of the %d GPUs of a worker of group %s, tasks can use one, and the plan "+
			"counts what the worker reports to Ray", n-1, n, g.Name),
		Fix: "request one instance in each pod, and raise maxReplicas instead; or set num-gpus to 1, which plans " +
			"such a pod as one GPU",
	}, true
}
