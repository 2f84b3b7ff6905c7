// Package nodes has the checks of the nodes under RayClusters: faults of the nodes, whether the pods of groups find a
// place on them, and what removes them from under the pods. It must not judge what a RayCluster shows without nodes,
// know the other checks, or read files or clients.
package nodes

import (
	"slices"

	"heliostat.dev/heliostat/internal/doctor/check"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Checks returns the checks of nodes and of node autoscalers, in the order of docs/reference/doctor.md.
func Checks() []check.Check { return slices.Concat(nodeChecks, nodeAutoscalerChecks) }

// A row has the code, the severity, what is examined by which function, and why the fault matters.

// nodeChecks examine nodes, and whether the pods of groups fit on them.
var nodeChecks = []check.Check{
	check.New(string(sharing.DevicesMissing), raydemand.Error, nodeProblem(allocatable, restartPlugin),
		"a device that the plugin has dropped stays away until the plugin restarts, even if its cause is gone"),
	check.New(string(sharing.NothingAnnounced), raydemand.Error, nodeProblem(allocatable, showPlugin),
		"no pod that requests a GPU fits there"),
	check.New(string(sharing.NoDevicePlugin), raydemand.Info, nodeProblem(nodeLabels, deployPlugin),
		"pods that request a GPU resource do not fit there"),
	check.New(string(sharing.ForVirtualMachines), raydemand.Info, nodeProblem(workloadLabel, deployForContainers),
		"pods that request a GPU resource do not fit there"),
	check.New(string(sharing.MIGChanging), raydemand.Warning, nodeProblem(migStateLabel, showMIGManager),
		"until the change is done, do not trust what the node announces of its GPUs"),
	check.New(string(sharing.MIGInvalid), raydemand.Error, nodeProblem(productLabel, applyEvenLayout),
		"under the single strategy all cards need one common profile; the node announces nothing"),
	check.New(string(sharing.ProfileMismatch), raydemand.Info, nodeProblem(nodeLabels, restartFeatureDiscovery),
		"feature discovery and device plugin are of different releases; Heliostat uses the resource"),
	check.New(string(sharing.ProfileUnknown), raydemand.Warning, nodeProblem(allocatable, restartPlugin),
		"the card has no such profile, so it is unknown what a unit is, and requests for memory, compute or isolation "+
			"do not use it"),
	check.New(string(sharing.TooManyUnits), raydemand.Error, nodeProblem(allocatable, restartPlugin),
		"a resource is left over from before the cards were partitioned: pods are scheduled there and find no device"),
	check.New(string(sharing.MemoryOvercommitted), raydemand.Warning, nodeProblem(wholeNode, editHAMi),
		"workers that use all memory they were given fail with out-of-memory errors"),
	check.New(string(sharing.MemoryBelowProduct), raydemand.Warning, nodeProblem(nodeLabels, showMemory),
		"it is unknown what separates a unit from the rest of the card, so requests for memory, compute or isolation "+
			"do not use the node"),
	check.New(string(sharing.UnitUnknown), raydemand.Warning, nodeProblem(allocatable, showFactor),
		"requests for an amount of GPU memory do not use the node"),
	check.New(string(sharing.MemoryMissing), raydemand.Error, nodeProblem(allocatable, restartVolcanoPlugin),
		"a request for memory never fits"),
	check.New(string(sharing.SharingUnlabelled), raydemand.Warning, nodeProblem(allocatable, labelSharing),
		"it is unknown what a pod gets of a card, so requests for memory, compute or isolation do not use the node"),
	check.New(string(sharing.RegisterUnreadable), raydemand.Error, nodeProblem(annotations, restartRegister),
		"what the cards have is unknown: HAMi's scheduler takes none from such an annotation, so that the node "+
			"counts as one without cards; with Volcano, requests for memory do not use the node, and other pods "+
			"are tried"),
	check.New(string(sharing.RegisterContradicted), raydemand.Warning, nodeProblem(hamiRegister, removeRegister),
		"two device plugins hand out the same cards, or a unit is a card and not the share that the register says"),
	check.New(string(sharing.SharesUncounted), raydemand.Info, nodeProblem(annotations, showAscend),
		"pods that request a whole card, or more of one than a share, may stay pending"),
	check.New(string(sharing.AgentSilent), raydemand.Error, nodeProblem(wholeNode, restartHAMi),
		"the scheduler treats the node's devices as gone"),
	check.New(string(sharing.AgentOutdated), raydemand.Warning, nodeProblem(agentsMessage, showAgent),
		"Heliostat plans with the layout and health of the cards as if there were no agent"),
	check.New(string(sharing.DeviceUnhealthy), raydemand.Error, nodeProblem(wholeNode, cordon),
		"no share of the card is allocated"),
	check.New(string(sharing.DeviceCordoned), raydemand.Info, nodeProblem(hamiCordon, uncordonCard),
		"no new pod gets a part of the card"),
	check.New(string(sharing.ConditionBad), raydemand.Error, nodeProblem(conditions, cordon),
		"the agent that monitors the hardware reports that work there fails"),
	check.New(string(sharing.NotReady), raydemand.Warning, nodeProblem(conditions, describeNode),
		"no pod is scheduled there, and the pods on it may be lost"),
	check.New(string(sharing.LabelUnreadable), raydemand.Warning, nodeProblem(nodeLabels, showLabels),
		"what the label should say is unknown"),
	check.New(string(sharing.AmountUnreadable), raydemand.Error, nodeProblem(allocatable, showAmounts),
		"pods that request it cannot be scheduled by it, and plans treat it as not announced"),
	check.New(string(sharing.ResourceNotKnown), raydemand.Warning, nodeProblem(allocatable, showResources),
		"the name looks like that of a GPU and is in no table, so it is unknown what a unit is"),
	check.New(string(sharing.ResourceForeign), raydemand.Info, nodeProblem(allocatable, showResources),
		"the vendor has other devices too, such as network cards, so it counts as no GPU"),
	check.New(string(sharing.AmountsAlternative), raydemand.Info, nodeProblem(allocatable, showAllocations),
		"which mix of profiles still fits is for its scheduler to say; Heliostat counts each profile alone"),
	check.New(string(sharing.NamesContradict), raydemand.Warning, nodeProblem(allocatable, showNames),
		"it is unknown what a pod gets of a card, so requests for memory, compute or isolation do not use the node"),
	check.New("gpu-nodes-cordoned", raydemand.Error, check.Inputs(gpuNodesCordoned),
		"no pod that requests a GPU can be scheduled, however many are launched"),
	check.New("gpu-driver-upgrading", raydemand.Warning, nodes(gpuDriverUpgrading),
		"the node's GPUs come and go while its driver is updated, so a capacity of 0 means nothing"),
	check.New("gpu-driver-upgrade-failed", raydemand.Error, nodes(gpuDriverUpgradeFailed),
		"the operator leaves the node cordoned until somebody fixes it"),
	check.New("gpu-lost-after-upgrade", raydemand.Error, nodes(gpuLostAfterUpgrade),
		"the driver is updated and no GPU came back: the device plugin has not found the new driver"),
	check.New("toleration-missing", raydemand.Error, check.Workers(tolerationMissing),
		"the nodes on which the pods would fit repel them, so they stay pending, and a node autoscaler adds no node "+
			"for them"),
	check.New(nodepool.GroupNoNode, raydemand.Warning, check.Workers(groupNoNode),
		"no known node, even if it were empty, could hold a pod of the group"),
	check.New("node-maximum-below-ours", raydemand.Warning, check.Workers(nodeMaximumBelowOurs),
		"the node autoscaler stops before the group is at its maximum, and the remaining pods stay pending"),
}

// nodeAutoscalerChecks examine what removes nodes from under pods, and what keeps it from doing so.
var nodeAutoscalerChecks = []check.Check{
	check.New(
		"consolidation-unguarded",
		raydemand.Warning,
		nodePools(consolidationUnguarded),
		"Karpenter evicts working pods to empty a node that is not full, about 0.1 s after its taint, which is too "+
			"short to drain (docs/reference/facts.md#guards-of-node-autoscalers)",
	),
	check.New("expiry-unguarded", raydemand.Warning, nodePools(expiryUnguarded),
		"at this age of a node Karpenter evicts its pods, working or not, without regard to disruption budgets"),
	check.New("guard-time-limited", raydemand.Warning, nodePools(guardTimeLimited),
		"when a node expires or drifts, Karpenter deletes guarded pods too, this long after"),
	check.New(
		"disruption-taint-tolerated",
		raydemand.Warning,
		check.Groups(disruptionTaintTolerated),
		"Karpenter does not wait for a pod that tolerates its taint karpenter.sh/disrupted: it ends the machine "+
			"under the pod, guarded or not, and the scheduler may place the replacement there",
	),
	check.New(
		"disruption-budget-blocks",
		raydemand.Warning,
		check.Inputs(budgetBlocks),
		"Kubernetes compares this with the scale of a RayCluster, which has no scale subresource, so the budget "+
			"allows no eviction, whatever it says: drains, upgrades and consolidation wait for ever "+
			"(docs/reference/facts.md#disruption-budgets-over-ray-pods)",
	),
	check.New("nodepool-unused", raydemand.Info, nodePools(nodePoolUnused),
		"Karpenter adds no node of this NodePool for any of them"),
}
