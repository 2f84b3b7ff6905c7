package doctor

import (
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Checks returns all checks, in the order of docs/reference/doctor.md.
func Checks() []Check {
	return slices.Concat(
		manifestChecks, containerChecks, rayChecks, rayClusterChecks, scalerChecks, nodeChecks, nodeAutoscalerChecks,
		policyChecks, rightChecks, securityChecks)
}

// A row has the code, the severity, what is examined by which function, and why the fault matters.

// manifestChecks examine what an API server would refuse before Ray gets to see it.
var manifestChecks = []Check{
	{"kind-unknown", raydemand.Error, refused(unknownKind),
		"there is no such kind in this version, so the API server refuses the object, and no other check examined it"},
	{"schema-violated", raydemand.Error, refused(violations), "the API server refuses the object"},
	{"operator-refuses", raydemand.Error, rayObjects(operatorRefuses),
		"the operator (KubeRay 1.6.2) refuses the object and changes nothing until it is corrected"},
}

// containerChecks examine which GPUs containers request.
var containerChecks = []Check{
	{"gpu-requests-only", raydemand.Error, gpus(gpuRequestsOnly),
		"a GPU needs a limit: the API server refuses every pod of the group, and the operator stops at the first " +
			"such group"},
	{"gpu-limit-differs", raydemand.Error, gpus(gpuLimitDiffers),
		"GPUs cannot be overcommitted, so request and limit must be equal; the API server refuses every pod of the " +
			"group"},
	{"gpu-not-whole", raydemand.Error, gpus(gpuNotWhole),
		"Kubernetes allocates whole units of a GPU resource; the API server refuses every pod of the group. A part " +
			"of a card is a resource of its own: a MIG profile, a shared resource, gpu-mem"},
	{landing.GPUAmountImpossible, raydemand.Error, ofTemplate, ""},
	{landing.GPURequestInvalid, raydemand.Error, ofTemplate, ""},
	{"gpu-outside-ray-container", raydemand.Warning, gpus(gpuOutsideRayContainer),
		"Ray counts the GPUs of the first container only, whatever its name: the GPUs of this container are " +
			"reserved, and no Ray task gets them"},
	{landing.MIGProfileUnknown, raydemand.Error, ofTemplate, ""},
	{"gpu-two-resources", raydemand.Warning, workers(gpuTwoResources),
		"a pod gets devices of both resources, and the operator counts those of the first name only: the others are " +
			"paid for and idle"},
	{nodepool.NumGPUsMismatch, raydemand.Warning, comparedWithNodes, ""},
	{nodepool.GPUSharesSeveral, raydemand.Warning, comparedWithNodes, ""},
	{nodepool.MIGInstancesSeveral, raydemand.Warning, workers(migInstancesSeveral), ""},
	{landing.GPUSlicesDiffer, raydemand.Warning, workers(gpuSlicesDiffer), ""},
	{"mig-strategy", raydemand.Error, inputs(migStrategy),
		"with strategy none or single the device plugin announces instances as nvidia.com/gpu and never by profile, " +
			"so the pods stay pending"},
	{landing.GPUResourceUnknown, raydemand.Warning, ofTemplate, ""},
	{"gpu-mem-above-card", raydemand.Error, groups(gpuMemoryAboveCard),
		"memory comes from one card, whatever the cards of a node have in total, so the pods fit on no node"},
	{landing.GPUFractionRefused, raydemand.Error, ofTemplate, ""},
	{"gpu-shares-counted", raydemand.Warning, workers(gpuSharesCounted),
		"the name ends with gpu, so the operator passes each unit to Ray as a whole GPU"},
	{"mps-shares-several", raydemand.Error, workers(mpsSharesSeveral),
		"with MPS the device plugin refuses a request for more than one share, unless failRequestsGreaterThanOne is " +
			"false; the kubelet then fails the pod with UnexpectedAdmissionError, and you must delete it"},
}

// rayChecks examine what the operator and Ray derive from a group.
var rayChecks = []Check{
	{"resources-not-parsed", raydemand.Error, groups(resourcesNotParsed),
		"the operator cannot parse the string as JSON and drops the GPUs that it would derive from the limits: Ray " +
			"counts what it happens to see on the machine"},
	{"memory-limit-absent", raydemand.Warning, groups(memoryLimitAbsent),
		"Ray takes the memory of the whole node for its own and schedules by it, until the kernel or the kubelet " +
			"kills the pod"},
	{"cpu-absent", raydemand.Error, groups(cpuAbsent),
		"Ray's own autoscaler fails on such a group with ValueError, and so scales no group of the cluster"},
	{"head-takes-work", raydemand.Info, heads(headTakesWork),
		"the head runs tasks and actors beside the GCS, like a worker: work that uses up its memory takes the " +
			"cluster down"},
	{"gpu-uncounted", raydemand.Warning, workers(gpuUncounted),
		"neither the operator nor Ray's autoscaler counts GPUs of this name, so a request for a GPU never starts the " +
			"group"},
	{"accelerator-uncounted", raydemand.Warning, workers(acceleratorUncounted),
		"neither the operator nor Ray's autoscaler counts accelerators of this name, so a request for them never " +
			"starts the group"},
	{"claim-uncounted", raydemand.Warning, workers(claimUncounted),
		"neither the operator nor Ray's autoscaler counts GPUs of a DRA claim (kuberay #3527), so a request for a " +
			"GPU never starts the group, and its workers announce no GPU"},
	{"num-gpus-differs", raydemand.Warning, workers(numGPUsDiffers),
		"Ray uses the declared number and the pod gets the other one: with too few GPUs tasks find none, with too " +
			"many some stay idle"},
	{"head-gpu", raydemand.Warning, heads(headGPU),
		"the head is never removed, so its GPU costs money as long as the cluster exists, and a task on the head can " +
			"take the whole cluster down"},
}

// rayClusterChecks examine the RayCluster itself.
var rayClusterChecks = []Check{
	{"min-above-max", raydemand.Error, decoded(editing), ""},
	{"replicas-outside", raydemand.Warning, workers(replicasOutside),
		"the operator keeps the group at the nearer bound whatever replicas says, so the number is misleading"},
	{"field-out-of-range", raydemand.Error, decoded(editing), ""},
	{"field-misspelt", raydemand.Error, rayObjects(fieldMisspelt),
		"the CRD has no such field: the API server drops it, and it has no effect"},
	{"field-unknown", raydemand.Warning, rayObjects(fieldUnknown),
		"the CRD of KubeRay 1.6.2 has no such field in this version: kubectl refuses the object, and the API server " +
			"drops the field"},
	{"gpu-group-unbounded", raydemand.Warning, workers(gpuGroupUnbounded),
		"without maxReplicas the CRD sets 2147483647: one wrong request for resources can order any number of GPUs"},
	{"group-duplicate", raydemand.Error, decoded(editing), ""},
	{groupNameUnsuitable, raydemand.Error, decoded(editing), ""},
	{"idle-timeout-negative", raydemand.Warning, decoded(editing), ""},
	{"idle-timeout-refused", raydemand.Error, workers(idleTimeoutRefused),
		"a group can have an idle timeout only with autoscaler v2; the operator refuses the spec and changes no " +
			"group (docs/reference/facts.md#refused-spec)"},
	{decode.IdleTerminationUnexecuted, raydemand.Warning, decoded(editing), ""},
	{"ray-version-old", raydemand.Warning, heads(rayVersionOld),
		"Heliostat needs Ray 2.40 or later: an older GCS does not report all that Heliostat plans by"},
	{"ray-version-differs", raydemand.Error, workers(rayVersionDiffers),
		"`ray start` fails on workers with another version of Ray or Python than the head's"},
	{"restart-policy", raydemand.Error, groups(restartPolicy),
		"under autoscaler v2 a stopped worker must not restart in its old pod: KubeRay 1.6.2 refuses the spec or, if " +
			"a variable sets the version, idle workers are never removed"},
	{decode.AnnotationUnknown, raydemand.Warning, decoded(editing), ""},
	{"field-unreadable", raydemand.Error, decoded(editing), ""},
	{"group-unnamed", raydemand.Error, decoded(editing), ""},
	{"quantity-ignored", raydemand.Warning, decoded(editing), ""},
	{"resource-keys-differ", raydemand.Warning, decoded(editing), ""},
	{"pods-refused", raydemand.Error, decoded(editing), ""},
	{limitRangeRefuses, raydemand.Error, decoded(editing), ""},
	{"quota-exceeded", raydemand.Info, groups(quotaExceeded),
		"the API server refuses pods above the quota, so demand for more waits although the group has room"},
	{"claim-of-one-pod", raydemand.Warning, workers(claimOfOnePod),
		"one pod can use the claim, so all others of the group stay pending"},
	{"demand-fits-no-group", raydemand.Error, clusters(demandFitsNoGroup),
		"no node of the RayCluster ever has that, so it waits for ever"},
	{"bytes-fractional", raydemand.Warning, decoded(editing), ""},
	{"ray-start-fails", raydemand.Error, decoded(editing), ""},
	{"start-command-unknown", raydemand.Warning, decoded(editing), ""},
	{"environment-unknown", raydemand.Warning, decoded(editing), ""},
	{nodepool.SpecRefused, raydemand.Error, decoded(editing), ""},
	{"annotation-unreadable", raydemand.Error, decoded(editing), ""},
	{"delete-list-foreign", raydemand.Error, decoded(editing), ""},
	{"worker-pods-fail", raydemand.Error, decoded(describing), ""},
	{"group-removed", raydemand.Warning, decoded(listingPods), ""},
	{"hosts-below-one", raydemand.Warning, decoded(editing), ""},
	{"replica-unnamed", raydemand.Warning, decoded(listingPods), ""},
}

// scalerChecks examine what else scales a RayCluster, and the operator that carries it out.
var scalerChecks = []Check{
	{"sidecar-beside-us", raydemand.Warning, clusters(sidecarBesideUs),
		"Ray's own autoscaler runs in the head pod. Both would write replicas, so Heliostat stays in shadow mode and " +
			"writes nothing"},
	{"sidecar-missing", raydemand.Error, clusters(sidecarMissing),
		"the head pod is older than the field and has no autoscaler, so nothing scales the cluster until the pod is " +
			"replaced"},
	{"sidecar-left-over", raydemand.Warning, clusters(sidecarLeftOver),
		"the sidecar keeps scaling until the head pod is replaced, while the operator already deletes surplus pods " +
			"of its own choice"},
	{"autoscaler-version-differs", raydemand.Error, clusters(autoscalerVersionDiffers),
		"the operator refuses the head's variable RAY_enable_autoscaler_v2 beside autoscalerOptions.version, also if " +
			"they agree, and without in-tree autoscaling; where it does not, the GCS and the sidecar run different " +
			"versions"},
	{"surplus-deleted-at-random", raydemand.Info, clusters(surplusDeletedAtRandom),
		"without in-tree autoscaling, when replicas is lowered and no pods are named, the operator chooses which " +
			"pods to delete, busy or not; with it, only those that Heliostat names go " +
			"(docs/reference/facts.md#operator-surplus)"},
	{"nothing-scales", raydemand.Info, clusters(nothingScales),
		"enableInTreeAutoscaling is not set and no annotation asks for Heliostat, so unless serve manages all " +
			"RayClusters or those of its namespace, the group stays at its replicas"},
	{"worker-groups-absent", raydemand.Warning, clusters(workerGroupsAbsent),
		"Ray's own autoscaler reads spec.workerGroupSpecs and ends with KeyError where there is none, so the head's " +
			"container restarts for ever"},
	{"in-place-resize", raydemand.Info, clusters(inPlaceResize),
		"Ray's own autoscaler v2 resizes pods in place by this annotation, and Heliostat does not"},
	{"gang-floor-moves", raydemand.Warning, clusters(gangFloorMoves),
		"without in-tree autoscaling, each launch raises minMember of the PodGroup to all pods, so that new workers " +
			"wait until all of them fit; with it, minMember stays at minReplicas and the head"},
	{"queued-by-kueue", raydemand.Info, clusters(queuedByKueue),
		"Kueue queues it, and it is not elastic: any change of replicas makes Kueue restart the whole RayCluster, " +
			"also the head, so Heliostat never patches it, whatever its mode"},
	{"kueue-refuses", raydemand.Error, clusters(kueueRefuses), "Kueue's webhook refuses the object"},
	{"elastic-queued-by-kueue", raydemand.Warning, clusters(elasticQueuedByKueue),
		"Kueue queues it as an elastic one, but it gives no quota to further pods of a RayJob or RayService without " +
			"in-tree autoscaling: they stay behind its gate for ever. Heliostat does not patch it, whatever its mode"},
	{"queued-groups-too-many", raydemand.Warning, clusters(queuedGroupsTooMany),
		"a Workload of Kueue before 0.19 has at most 10 sets of pods, so the head and 9 worker groups, and since " +
			"then 18; Kueue never admits more"},
	{"elastic-without-queue", raydemand.Warning, clusters(elasticWithoutQueue),
		"for this annotation Kueue's webhook gives every pod the scheduling gate " + nodepool.ElasticGate +
			", and without the label " + nodepool.QueueLabel + " nothing removes the gate, so no pod ever runs"},
	{"replicas-two-writers", raydemand.Warning, clusters(replicasTwoWriters),
		"unless this manager is set up to ignore them, it restores replicas, and the operator deletes workers " +
			"of its own choice, busy ones too. The list of groups is atomic, so nobody can own a part of it"},
	{"cron-time-zone", raydemand.Error, rayObjects(cronTimeZone),
		"KubeRay 1.7 refuses the RayCronJob and starts no job"},
	{"scale-gated", raydemand.Info, workers(scaleGated),
		"while there is a gate, no autoscaler launches a pod of the group, and other groups serve its demand"},
	{"network-closes-gcs", raydemand.Warning, clusters(networkCloses), ""},
}

// policyChecks examine what RayClusters keep ready, and what is asked for them.
var policyChecks = []Check{
	{"capacity-policy-unreadable", raydemand.Error, ofKind("CapacityPolicy", policyUnreadable),
		"Heliostat reads no CapacityPolicies any more: nothing is kept warm or suspended by it"},
	{capacity.FindingGroupUnknown, raydemand.Error, clusters(groupUnknown), "there is no such worker group"},
	{capacity.FindingNodesLeft, raydemand.Warning, ofKind("CapacityBuffer", warmNodesLeft),
		"Heliostat made it while it ran with --warm-nodes, and does not now: nothing changes or removes it, and the " +
			"nodes that it keeps cost money"},
}

// rightChecks examine what the reader may see, and what it could not read.
var rightChecks = []Check{
	{"nodes-forbidden", raydemand.Warning, inputs(forbidden(true)),
		"without nodes it is unknown which GPUs there are, whether the pods of a group fit anywhere, and whether a " +
			"worker's node is lost"},
	{"list-forbidden", raydemand.Info, inputs(forbidden(false)),
		"checks that need these objects did not run"},
	{"object-unreadable", raydemand.Warning, inputs(objectUnreadable),
		"the rest is examined as if this were not there"},
}

// securityChecks examine which container sees which GPU.
var securityChecks = []Check{
	{landing.GPUsVisible, raydemand.Warning, groups(gpusVisible), ""},
	{"gpu-visible-all", raydemand.Warning, groups(gpuVisibleAll),
		"the variable overrides the device plugin: the container sees these GPUs, also those of other pods"},
	{"gpu-privileged", raydemand.Warning, groups(gpuPrivileged),
		"a privileged container sees all devices of the node, whatever GPUs it was given, and can use those of other " +
			"pods"},
}

// nodeChecks examine nodes, and whether the pods of groups fit on them.
var nodeChecks = []Check{
	{string(sharing.DevicesMissing), raydemand.Error, nodeProblem(allocatable, restartPlugin),
		"a device that the plugin has dropped stays away until the plugin restarts, even if its cause is gone"},
	{string(sharing.NothingAnnounced), raydemand.Error, nodeProblem(allocatable, showPlugin),
		"no pod that requests a GPU fits there"},
	{string(sharing.NoDevicePlugin), raydemand.Info, nodeProblem(nodeLabels, deployPlugin),
		"pods that request a GPU resource do not fit there"},
	{string(sharing.ForVirtualMachines), raydemand.Info, nodeProblem(workloadLabel, deployForContainers),
		"pods that request a GPU resource do not fit there"},
	{string(sharing.MIGChanging), raydemand.Warning, nodeProblem(migStateLabel, showMIGManager),
		"until the change is done, do not trust what the node announces of its GPUs"},
	{string(sharing.MIGInvalid), raydemand.Error, nodeProblem(productLabel, evenLayout),
		"under the single strategy all cards need one common profile; the node announces nothing"},
	{string(sharing.ProfileMismatch), raydemand.Info, nodeProblem(nodeLabels, restartFeatureDiscovery),
		"feature discovery and device plugin are of different releases; Heliostat uses the resource"},
	{string(sharing.ProfileUnknown), raydemand.Warning, nodeProblem(allocatable, asPlanned), ""},
	{string(sharing.TooManyUnits), raydemand.Error, nodeProblem(allocatable, restartPlugin),
		"a resource is left over from before the cards were partitioned: pods are scheduled there and find no device"},
	{string(sharing.MemoryOvercommitted), raydemand.Warning, nodeProblem(wholeNode, editHAMi),
		"workers that use all memory they were given fail with out-of-memory errors"},
	{string(sharing.MemoryBelowProduct), raydemand.Warning, nodeProblem(nodeLabels, asPlanned), ""},
	{string(sharing.UnitUnknown), raydemand.Warning, nodeProblem(allocatable, asPlanned), ""},
	{string(sharing.MemoryMissing), raydemand.Error, nodeProblem(allocatable, showPlugin),
		"a request for memory never fits"},
	{string(sharing.SharingUnlabelled), raydemand.Warning, nodeProblem(allocatable, asPlanned), ""},
	{string(sharing.RegisterUnreadable), raydemand.Error, nodeProblem(annotations, asPlanned), ""},
	{string(sharing.RegisterContradicted), raydemand.Warning, nodeProblem(hamiRegister, asPlanned), ""},
	{string(sharing.SharesUncounted), raydemand.Info, nodeProblem(annotations, showAscend),
		"pods that request a whole card, or more of one than a share, may stay pending"},
	{string(sharing.AgentSilent), raydemand.Error, nodeProblem(wholeNode, showPlugin),
		"the scheduler treats the node's devices as gone"},
	{string(sharing.AgentOutdated), raydemand.Warning, nodeProblem(agentsMessage, showAgent),
		"Heliostat plans with the layout and health of the cards as if there were no agent"},
	{string(sharing.DeviceUnhealthy), raydemand.Error, nodeProblem(wholeNode, cordon),
		"no share of the card is allocated"},
	{string(sharing.DeviceCordoned), raydemand.Info, nodeProblem(hamiCordon, uncordonCard),
		"no new pod gets a part of the card"},
	{string(sharing.ConditionBad), raydemand.Error, nodeProblem(conditions, cordon),
		"the agent that monitors the hardware reports that work there fails"},
	{string(sharing.GPUBad), raydemand.Error, nodeProblem(wholeNode, cordon),
		"what monitors the GPUs marks the node so, and plans place nothing new there"},
	{string(sharing.GPUWatch), raydemand.Info, nodeProblem(wholeNode, describeNode),
		"it may announce a fault, and no worker is drained because of it"},
	{string(sharing.NotReady), raydemand.Warning, nodeProblem(conditions, describeNode),
		"no pod is scheduled there, and the pods on it may be lost"},
	{string(sharing.LabelUnreadable), raydemand.Warning, nodeProblem(nodeLabels, showLabels),
		"what the label should say is unknown"},
	{string(sharing.AmountUnreadable), raydemand.Error, nodeProblem(allocatable, showAmounts),
		"pods that request it cannot be scheduled by it, and plans treat it as not announced"},
	{string(sharing.ResourceNotKnown), raydemand.Warning, nodeProblem(allocatable, showResources),
		"the name looks like that of a GPU and is in no table, so it is unknown what a unit is"},
	{string(sharing.NamesContradict), raydemand.Warning, nodeProblem(allocatable, asPlanned), ""},
	{"gpu-nodes-cordoned", raydemand.Error, inputs(gpuNodesCordoned),
		"no pod that requests a GPU can be scheduled, however many are launched"},
	{"gpu-driver-upgrade-failed", raydemand.Error, nodes(gpuDriverUpgradeFailed),
		"the operator leaves the node cordoned until somebody fixes it"},
	{"toleration-missing", raydemand.Error, workers(tolerationMissing),
		"the nodes on which the pods would fit repel them, so they stay pending, and a node autoscaler adds no node " +
			"for them"},
	{nodepool.GroupNoNode, raydemand.Warning, workers(groupNoNode), ""},
	{"node-maximum-below-ours", raydemand.Warning, workers(nodeMaximumBelowOurs),
		"the node autoscaler stops before the group is at its maximum, and the remaining pods stay pending"},
}

// nodeAutoscalerChecks examine what removes nodes from under pods, and what keeps it from doing so.
var nodeAutoscalerChecks = []Check{
	{"consolidation-unguarded", raydemand.Warning, ofKind("NodePool", consolidationUnguarded),
		"Karpenter evicts working pods to empty a node that is not full, about 0.1 s after its taint, which is too " +
			"short to drain (docs/reference/facts.md#guards-of-node-autoscalers)"},
	{"expiry-unguarded", raydemand.Warning, ofKind("NodePool", expiryUnguarded),
		"at this age of a node Karpenter evicts its pods, working or not, without regard to disruption budgets"},
	{"disruption-budget-blocks", raydemand.Warning, ofKind("PodDisruptionBudget", budgetBlocks),
		"Kubernetes compares this with the scale of a RayCluster, which has no scale subresource, so the budget " +
			"allows no eviction, whatever it says: drains, upgrades and consolidation wait for ever " +
			"(docs/reference/facts.md#disruption-budgets-over-ray-pods)"},
}
