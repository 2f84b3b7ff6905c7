package landing

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Codes of findings about the GPUs that a worker group requests.
const (
	// GPURequestInvalid: the schedulers that hand out GPUs refuse the amount.
	GPURequestInvalid = "gpu-request-invalid"
	// GPUFractionRefused: KAI's webhook refuses the annotations by which the pod asks for a part of a card.
	GPUFractionRefused = "gpu-fraction-refused"
	// GPUAmountImpossible: no node can have the amount, or a number of cards is invalid.
	GPUAmountImpossible = "gpu-amount-impossible"
	// MIGProfileUnknown: no product, or not the selected one, has the MIG profile.
	MIGProfileUnknown = "mig-profile-unknown"
	// GPUResourceUnknown: the name looks like a GPU resource but is in no table.
	GPUResourceUnknown = "gpu-resource-unknown"
	// GPUSlicesDiffer: the nodes where the group fits hand out different things under the same resource name.
	GPUSlicesDiffer = "gpu-slices-differ"
	// GPUsVisible: pods without GPUs could run on a GPU node and see its cards.
	GPUsVisible = "gpus-visible"
)

// CheckGPUs returns what is wrong with a pod's GPU requests, independent of the nodes. Field of each finding is the
// resource; callers that know the object prepend the rest.
func CheckGPUs(g sharing.Reader, shape *PodShape) []raydemand.Finding {
	var list []raydemand.Finding
	for _, name := range slices.Sorted(maps.Keys(shape.Requests)) {
		if finding, wrong := checkName(g, shape, name); wrong {
			list = append(list, finding)
		}
	}
	if r, refused := sharing.RefusalOf(shape.Requests, shape.CardsAsked); refused {
		r.Code, r.Severity = GPURequestInvalid, raydemand.Error
		list = append(list, r)
	}
	if s := shape.Share; s != nil && s.Refused != "" {
		list = append(list, raydemand.Finding{Code: GPUFractionRefused, Severity: raydemand.Error, Field: s.Annotation,
			Seen: strconv.Quote(s.Value), Why: "KAI's webhook refuses every pod of the group: " + s.Refused,
			Fix: "correct the annotation, or leave it out"})
	}
	return list
}

func checkName(g sharing.Reader, shape *PodShape, name string) (raydemand.Finding, bool) {
	amount := shape.Requests[name]
	resource, err := g.Names.Resource(name)
	finding := raydemand.Finding{Severity: raydemand.Error, Field: name, Seen: amount.String()}
	switch {
	case errors.Is(err, gpuinfo.ErrNotGPU):
		return finding, false
	case err != nil:
		finding.Code, finding.Severity = GPUResourceUnknown, raydemand.Warning
		finding.Why = err.Error() + ", so nobody knows what a pod of the group gets"
		finding.Fix = "correct the name, or say what it is with --resource " + name + "=KIND"
	case amount < 0 || amount%raydemand.One != 0:
		finding.Code, finding.Why, finding.Fix = GPURequestInvalid, "GPUs and parts of them come in whole units",
			"ask for a whole number, at least 1"
	case WholeUnits(amount) > sharing.MostUnits(resource):
		finding.Code, finding.Why = GPUAmountImpossible, "no node can have so many, so no pod of the group is ever "+
			"placed"
		finding.Fix = fmt.Sprintf("ask for what one pod needs, at most %d", sharing.MostUnits(resource))
	case WholeUnits(amount) > mostMemory && (resource.Unit > 0 || name == gpuinfo.AliyunMemory):
		unit := int64(cmp.Or(resource.Unit, 1<<10)) // ACK counts GiB
		finding.Code, finding.Why = GPUAmountImpossible, "it counts units of memory, not bytes, and no card has so "+
			"many, so no pod of the group is ever placed"
		finding.Fix = fmt.Sprintf("ask for units, without a suffix such as Gi; if a unit is %d MiB, that is %d", unit,
			(WholeUnits(amount)-1)/(unit<<20)+1)
	case resource.Profile != "":
		return checkProfile(shape, resource, finding)
	}
	return finding, finding.Code != ""
}

// mostMemory is more units of memory than a node's cards have together, if a unit is no less than 1 MiB: 8 TiB.
const mostMemory = 1 << 23

func checkProfile(shape *PodShape, resource gpuinfo.Resource, finding raydemand.Finding) (raydemand.Finding, bool) {
	name, err := gpuinfo.ParseProfile(resource.Profile)
	// The tables can be older than the driver, so this does not stop the group.
	finding.Code, finding.Severity = MIGProfileUnknown, raydemand.Warning
	product, selected := shape.SelectedProduct()
	switch {
	case err != nil: // The name of the resource was read with the same grammar.
		return finding, false
	case !gpuinfo.Exists(name):
		finding.Why = "no product that is known has the MIG profile " + resource.Profile
		finding.Fix = "ask for a profile that the cards have; `nvidia-smi mig -lgip` lists them"
	case selected && !product.Has(name):
		finding.Why = fmt.Sprintf("nodeSelector wants a %s, which has no MIG profile %s", product.Name,
			resource.Profile)
		finding.Fix = "ask for one of " + product.ProfileNames() + ", or select another product"
	}
	return finding, finding.Why != ""
}

// SelectedProduct returns the product that the nodeSelector names by a label of feature discovery, GKE or ACK. It
// returns false if there is none, or if no table has it.
func (p *PodShape) SelectedProduct() (gpuinfo.Product, bool) {
	for _, key := range []string{sharing.LabelProduct, sharing.LabelGKEAccelerator, sharing.LabelACKName} {
		if product, known := gpuinfo.ProductOf(p.Selector[key]); known {
			return product, true
		}
	}
	return gpuinfo.Product{}, false
}

// DifferFinding reports that the nodes hand out different things under a resource name; false if they agree.
func (s Slice) DifferFinding() (raydemand.Finding, bool) {
	return raydemand.Finding{
		Code: GPUSlicesDiffer, Severity: raydemand.Warning, Field: s.Resource, Seen: strings.Join(s.Differ, "; "),
		Why: "the nodes that the group could land on hand out different things under this name, so what a worker " +
			"gets depends on where it lands; it is planned as the least of them",
		Fix: "select one kind of node, by a label of its pool or by nvidia.com/gpu.product",
	}, len(s.Differ) > 0
}

// SeesGPUs returns the first node on which a pod of this shape could see cards that it did not request, and how many
// such nodes there are. That is the case if it requests none, its Ray container does not hide them, and the node has
// cards of NVIDIA's. If the NVIDIA runtime is the default one, images that set NVIDIA_VISIBLE_DEVICES=all, as CUDA's
// do, see every card of the node (NVIDIA device plugin, README). GKE's nodes do not have that runtime.
func SeesGPUs(g sharing.Reader, shape *PodShape, nodes []Node) (first string, count int) {
	if shape.HidesGPUs || shape.Claims || shape.Share != nil || len(slicesAsked(g, shape.Requests)) > 0 {
		return "", 0
	}
	for _, node := range shape.FittingNodes(nodes) {
		if node.Declared || onGKE(node) || !ReadNode(g, node).HasNVIDIA() {
			continue
		}
		if count == 0 {
			first = node.Name
		}
		count += 1 + node.Alike
	}
	return first, count
}

// VisibleFinding returns a finding about the nodes that SeesGPUs found. declared are the GPUs that Ray has on the pods
// by num-gpus; nil if there are none.
func VisibleFinding(first string, count int, declared *raydemand.Amount) raydemand.Finding {
	seen := "does not hide the GPUs of node " + first
	if count > 1 {
		seen += fmt.Sprintf(", one of %d nodes", count)
	}
	f := raydemand.Finding{
		Code: GPUsVisible, Severity: raydemand.Warning, Field: "NVIDIA_VISIBLE_DEVICES", Seen: seen,
		Why: "pods of this group ask for no GPU and could land beside GPUs; where NVIDIA's runtime is the default " +
			"one, Ray may detect and use cards that others were given",
		Fix: "set NVIDIA_VISIBLE_DEVICES=void in the Ray container, or keep the group away from GPU nodes",
	}
	if declared != nil && *declared > 0 {
		f.Why = "num-gpus tells Ray of GPUs that the pods do not request, so Kubernetes gives the same ones to other " +
			"pods"
		f.Fix = "request the GPUs: set the limit nvidia.com/gpu to " + declared.String()
	}
	return f
}

// nodeProblems are the problems that change which pods are launched on a node: the field where it is, why it matters,
// and what to do.
var nodeProblems = map[sharing.ProblemCode]struct{ field, why, fix string }{
	sharing.NamesContradict: {"status.allocatable", unknownPart, "restart the device plugin and the labeller on the " +
		"node; names that nothing announces any more go when the kubelet restarts"},
	sharing.SharingUnlabelled: {"status.allocatable", unknownPart, "run GPU feature discovery, which labels shared " +
		"and partitioned cards, or name the kind with --resource"},
	sharing.MemoryBelowProduct: {"metadata.labels", "it is unknown what separates a unit from the rest of its card, " +
		"so requests for memory, compute or isolation do not use the node", "compare the labels with what nvidia-smi " +
		"or amd-smi shows there; if they are wrong, restart what writes them"},
	sharing.ProfileUnknown: {"status.allocatable", "it is unknown what a unit is, so requests for memory, compute or " +
		"isolation do not use it", "use a profile that the product has"},
	sharing.RegisterUnreadable: {"", "HAMi's scheduler takes no cards from this annotation, so the plan counts them " +
		"as not there", "restart the device plugin on the node, which writes the annotation again"},
	sharing.RegisterContradicted: {"status.allocatable[" + gpuinfo.NvidiaGPU + "]", "it is unknown whether a unit is " +
		"a card or a share, so requests for memory, compute or isolation do not use the node", "run one of the two " +
		"device plugins there; if HAMi is gone, remove the annotation with kubectl annotate node %s " +
		"hami.io/node-nvidia-register-"},
	sharing.UnitUnknown: {"status.allocatable", "it is unknown how much memory a unit is, so requests for memory do " +
		"not use the node", "correct the memory factor of the device plugin or of the scheduler, which must be " +
		"the same"},
	sharing.CardUnrecorded: {"status.allocatable", "the pod is on one of the cards and nothing shows on which, so " +
		"the plan may launch fewer pods there than fit", "create the pod again with the scheduler that shares the " +
		"cards, which records the card"},
}

const unknownPart = "it is unknown what a pod gets of a card there, so requests for memory, compute or isolation do " +
	"not use the node"

// NodeProblem reports what is wrong with a node if it changes which pods are launched there, by the codes of
// docs/reference/gpus.md; false for other problems.
func NodeProblem(node string, problem sharing.Problem) (f raydemand.Finding, matters bool) {
	row, matters := nodeProblems[problem.Code]
	if !matters {
		return f, false
	}
	f = raydemand.Finding{Code: string(problem.Code), Severity: raydemand.Warning, Object: "Node " + node,
		Seen: problem.Message, Field: row.field, Why: row.why, Fix: strings.ReplaceAll(row.fix, "%s", node)}
	if problem.Annotation != "" || f.Field == "" {
		f.Field = "metadata.annotations[" + problem.Annotation + "]"
	}
	if problem.Code == sharing.RegisterUnreadable && !problem.ByHAMi() {
		f.Why = "it is unknown what the cards have, so requests for memory do not use the node, and other pods are " +
			"tried there"
	}
	return f, true
}

// NodeProblems reports what is wrong with the nodes whose GPUs pods of this shape would use, one finding for each code.
// It names the first such node.
func (p *PodShape) NodeProblems(nodes []Node) (list []raydemand.Finding) {
	counts := map[string]int{}
	for i := range nodes {
		node := &nodes[i]
		if node.GPUs == nil || len(node.GPUs.Problems) == 0 || !p.WouldUse(node) {
			continue
		}
		for _, problem := range node.GPUs.Problems {
			f, matters := NodeProblem(node.Name, problem)
			if !matters {
				continue
			}
			if counts[f.Code] == 0 {
				list = append(list, f)
			}
			counts[f.Code] += 1 + node.Alike
		}
	}
	for i := range list {
		list[i].Seen += OneOf(counts[list[i].Code])
	}
	return list
}

// OneOf continues a sentence about a node that stands for several.
func OneOf(nodes int) string {
	if nodes < 2 {
		return ""
	}
	return fmt.Sprintf(", one of %d such nodes", nodes)
}

// WouldUse reports whether pods of this shape request GPUs that the node announces and may be scheduled there, as far
// as its cards are healthy or their state is unknown.
func (p *PodShape) WouldUse(node *Node) bool {
	requested := false
	for name := range node.GPUs.Units {
		requested = requested || p.Requests[name] > 0
	}
	if !requested {
		return false
	}
	unregistered := func(problem sharing.Problem) bool { return problem.Code == sharing.RegisterUnreadable }
	if slices.ContainsFunc(node.GPUs.Problems, unregistered) {
		known, gpus := *node, *node.GPUs
		gpus.HealthyUnits, known.GPUs = nil, &gpus
		node = &known
	}
	return len(p.mismatches(node, nil)) == 0
}
