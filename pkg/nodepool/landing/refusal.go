package landing

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// sizeLabels are the labels in which Karpenter's providers state the size of an instance type, with what they count
// (docs/reference/facts.md#sizes-in-the-requirements-of-a-nodepool).
var sizeLabels = []struct {
	label     string
	resources []string
	unit      raydemand.Amount
}{
	{"karpenter.k8s.aws/instance-cpu", []string{"cpu"}, raydemand.One},
	{"karpenter.k8s.aws/instance-memory", []string{"memory"}, raydemand.One << 20},
	{"karpenter.k8s.aws/instance-gpu-count", []string{"nvidia.com/gpu", "amd.com/gpu"}, raydemand.One},
	{"karpenter.azure.com/sku-cpu", []string{"cpu"}, raydemand.One},
	{"karpenter.azure.com/sku-memory", []string{"memory"}, raydemand.One << 20},
	{"karpenter.azure.com/sku-gpu-count", []string{"nvidia.com/gpu", "amd.com/gpu"}, raydemand.One},
}

// awsGPUCategories are the categories of AWS instance types with GPUs of NVIDIA or AMD.
var awsGPUCategories = []string{"g", "gr", "p"}

// Refusal returns why the pool's autoscaler adds no node for a pod, if the pool is a NodePool whose template is known;
// empty if it could.
func (r *Room) Refusal(p *PodShape) string {
	if r.Template == nil {
		return ""
	}
	return r.refusal(p)
}

// refusal returns why a NodePool adds no node for a pod, from its requirements, labels and taints; empty if it could.
func (r *Room) refusal(p *PodShape) string {
	name := "NodePool " + r.Pool
	if r.elsewhere(p) {
		return name + " is not the one that the group selects"
	}
	if why := r.Template.tooSmall(p); why != "" {
		return name + why
	}
	if !r.Template.refuses(p) {
		return ""
	}
	made := &Node{Labels: r.Template.Labels}
	for _, taint := range r.Template.Taints {
		if !p.Tolerates(made, taint) {
			return fmt.Sprintf("%s has taint %s which the group does not tolerate", name, taint)
		}
	}
	for _, all := range p.labelAlternatives() {
		for _, want := range all {
			if !r.Template.allows(want) {
				return fmt.Sprintf("%s adds no node with label %s %s %s", name, want.Key, want.Operator,
					strings.Join(want.Values, ", "))
			}
		}
	}
	return name + " does not match the required node affinity"
}

// tooSmall returns which request exceeds every instance type that the requirements allow; empty if none does.
func (t *NodeTemplate) tooSmall(p *PodShape) string {
	for _, row := range sizeLabels {
		most := t.most(row.label)
		for _, name := range row.resources {
			if want := p.Requests[name]; want > 0 && most < math.MaxInt64 && want > row.unit.Times(most) {
				return fmt.Sprintf(" allows nodes of at most %s %d, and a pod needs %s %s", row.label, most, name, want)
			}
		}
	}
	gpus := p.Requests["nvidia.com/gpu"] + p.Requests["amd.com/gpu"]
	if most := t.mostCards(); gpus > raydemand.Whole(most) && most < math.MaxInt64 {
		return fmt.Sprintf(" allows no instance type with more GPUs than %d, and a pod needs %s", most, gpus)
	}
	for _, own := range t.Requirements {
		if own.Key == "karpenter.k8s.aws/instance-category" && own.Operator == "In" && gpus > 0 &&
			!slices.ContainsFunc(own.Values, func(v string) bool { return slices.Contains(awsGPUCategories, v) }) {
			return " allows only instance categories without GPUs: " + strings.Join(own.Values, ", ")
		}
	}
	return ""
}

// mostCards returns the largest number of GPUs of the instance types that the requirements allow; math.MaxInt64 if one
// of them is not in the table, or if they do not name types. Karpenter counts cards, whatever a device plugin makes of
// them.
func (t *NodeTemplate) mostCards() int64 {
	bound := int64(math.MaxInt64)
	for _, own := range t.Requirements {
		if own.Key != "node.kubernetes.io/instance-type" || own.Operator != "In" {
			continue
		}
		largest := int64(0)
		for _, name := range own.Values {
			machine, known := gpuinfo.MachineOf(name)
			if !known {
				return math.MaxInt64
			}
			largest = max(largest, machine.Cards, 1)
		}
		bound = min(bound, largest)
	}
	return bound
}

// most returns the largest number that the requirements allow for a label; math.MaxInt64 if they do not bound it.
func (t *NodeTemplate) most(label string) int64 {
	bound := int64(math.MaxInt64)
	for _, own := range t.Requirements {
		if own.Key != label {
			continue
		}
		switch own.Operator {
		case "DoesNotExist":
			bound = 0
		case "In":
			largest := int64(0)
			for _, value := range own.Values {
				n, err := strconv.ParseInt(value, 10, 64)
				if err != nil {
					n = math.MaxInt64
				}
				largest = max(largest, n)
			}
			bound = min(bound, largest)
		case "Lt":
			if n, err := strconv.ParseInt(strings.Join(own.Values, ""), 10, 64); err == nil {
				bound = min(bound, n-1)
			}
		}
	}
	return bound
}
