package landing

import (
	"fmt"
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// Beyond a part of 1/badPart of the nodes with GPUs, and of more than fewNodes, a sign is more likely an error of
// whatever reports it than of the GPUs, and nothing follows from it. Node repair stops there too: EKS, "Node
// auto-repair"; Karpenter, feature gate NodeRepair.
const (
	fewNodes = 5
	badPart  = 5
)

// LeaveOutBadGPUs lets plans place nothing on nodes of which all GPUs are bad. It wants all nodes: if too many of them
// show a bad GPU, it changes nothing and returns why; empty otherwise.
func LeaveOutBadGPUs(nodes []Node) (tooMany string) {
	withGPUs, bad := 0, 0
	for i := range nodes {
		if nodes[i].GPUs == nil {
			continue
		}
		withGPUs++
		drains := func(seen sharing.BadGPU) bool { return seen.Severity >= sharing.Drain }
		if nodes[i].GPUs.AllBad() != "" || slices.ContainsFunc(nodes[i].GPUs.Bad, drains) {
			bad++
		}
	}
	if withGPUs > fewNodes && bad*badPart > withGPUs {
		return fmt.Sprintf("%d of %d nodes with GPUs show a bad one, which is more likely an error of what reports it",
			bad, withGPUs)
	}
	for i := range nodes {
		if nodes[i].GPUs != nil && nodes[i].GPUs.AllBad() != "" {
			nodes[i].GPUs = nodes[i].GPUs.WithoutHealthy()
			nodes[i] = nodes[i].Classed()
		}
	}
	return ""
}
