package landing

import (
	"fmt"
	"slices"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// NodeProblem reports what is wrong with a node if it changes which pods are launched there, by the codes of
// docs/reference/gpus.md; false for other problems.
func NodeProblem(node string, problem sharing.Problem) (f raydemand.Finding, matters bool) {
	f = raydemand.Finding{
		Code: string(problem.Code), Severity: raydemand.Warning, Object: "Node " + node, Seen: problem.Message,
	}
	switch problem.Code {
	case sharing.NamesContradict, sharing.SharingUnlabelled:
		f.Field = "status.allocatable"
		f.Why = "it is unknown what a pod gets of a card there, so requests for memory, compute or isolation do not " +
			"use the node"
		f.Fix = "run GPU feature discovery, which labels shared and partitioned cards, or name the kind with --resource"
		if problem.Code == sharing.NamesContradict {
			f.Fix = "restart the device plugin and the labeller on the node; names that nothing announces any more " +
				"go when the kubelet restarts"
		}
	case sharing.MemoryBelowProduct:
		f.Field = "metadata.labels"
		f.Why = "it is unknown what separates a unit from the rest of its card, so requests for memory, compute or " +
			"isolation do not use the node"
		f.Fix = "compare the labels with what nvidia-smi or amd-smi shows there; if they are wrong, restart what " +
			"writes them"
	case sharing.ProfileUnknown:
		f.Field = "status.allocatable"
		f.Why = "it is unknown what a unit is, so requests for memory, compute or isolation do not use it"
		f.Fix = "use a profile that the product has"
		if problem.Annotation != "" {
			f.Field = "metadata.annotations[" + problem.Annotation + "]"
		}
	case sharing.RegisterUnreadable:
		f.Field = "metadata.annotations[" + problem.Annotation + "]"
		f.Why = "HAMi's scheduler takes no cards from this annotation, so the plan counts them as not there"
		if !problem.ByHAMi() {
			f.Why = "it is unknown what the cards have, so requests for memory do not use the node, and other pods " +
				"are tried there"
		}
		f.Fix = "restart the device plugin on the node, which writes the annotation again"
	case sharing.RegisterContradicted:
		f.Field = "status.allocatable[" + gpuinfo.NvidiaGPU + "]"
		f.Why = "it is unknown whether a unit is a card or a share, so requests for memory, compute or isolation do " +
			"not use the node"
		f.Fix = "run one of the two device plugins there; if HAMi is gone, remove the annotation with kubectl " +
			"annotate node " + node + " hami.io/node-nvidia-register-"
	case sharing.UnitUnknown:
		f.Field = "status.allocatable"
		f.Why = "it is unknown how much memory a unit is, so requests for memory do not use the node"
		f.Fix = "correct the memory factor of the device plugin or of the scheduler, which must be the same"
	case sharing.CardUnrecorded:
		f.Field = "status.allocatable"
		f.Why = "the pod is on one of the cards and nothing shows on which, so the plan may launch fewer pods there " +
			"than fit"
		f.Fix = "create the pod again with the scheduler that shares the cards, which records the card"
	default:
		return raydemand.Finding{}, false
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
