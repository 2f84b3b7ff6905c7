package doctor

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/doctor/check"
	"heliostat.dev/heliostat/internal/doctor/nodes"
	"heliostat.dev/heliostat/internal/doctor/refusal"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Checks returns all checks, in the order of docs/reference/doctor.md.
func Checks() []check.Check {
	return slices.Concat(
		manifestChecks, containerChecks, rayChecks, rayClusterChecks, scalerChecks, nodes.Checks(),
		policyChecks, rightChecks, securityChecks,
	)
}

// A row has the code, the severity, what is examined by which function, and why the fault matters.

// manifestChecks examine what an API server would refuse before Ray gets to see it.
var manifestChecks = []check.Check{
	check.New(refusal.KindUnknown, raydemand.Error, refused(),
		"there is no such kind, so the API server refuses the object, and no other check examined it"),
	check.New(refusal.APIVersionUnknown, raydemand.Error, refused(),
		"the kind is not known in this version, so no other check examined the object"),
	check.New(refusal.SchemaViolated, raydemand.Error, refused(), "the API server refuses the object"),
}

// containerChecks examine which GPUs containers request.
var containerChecks = []check.Check{
	check.New("gpu-requests-only", raydemand.Error, gpus(gpuRequestsOnly),
		"a GPU needs a limit: the API server refuses every pod of the group, and the operator stops at the first "+
			"such group"),
	check.New("gpu-limit-differs", raydemand.Error, gpus(gpuLimitDiffers),
		"GPUs cannot be overcommitted, so request and limit must be equal; the API server refuses every pod of the "+
			"group"),
	check.New("gpu-not-whole", raydemand.Error, gpus(gpuNotWhole),
		"Kubernetes allocates whole units of a GPU resource; the API server refuses every pod of the group. A part "+
			"of a card is a resource of its own: a MIG profile, a shared resource, gpu-mem"),
	check.New(landing.GPUAmountImpossible, raydemand.Error, check.Workers(gpuAmountImpossible),
		"no node can have so many, so no pod of the group is ever scheduled"),
	check.New(landing.GPURequestInvalid, raydemand.Error, check.Workers(gpuRequestInvalid),
		"the schedulers that hand out parts of cards refuse the request"),
	check.New("gpu-outside-ray-container", raydemand.Warning, gpus(gpuOutsideRayContainer),
		"Ray counts the GPUs of the first container only, whatever its name: the GPUs of this container are "+
			"reserved, and no Ray task gets them"),
	check.New("mig-name-misspelt", raydemand.Error, gpus(migNameMisspelt),
		"no device plugin announces this name, so the pods stay pending"),
	check.New("mig-profile-unknown", raydemand.Error, gpus(migProfileUnknown),
		"the card has no such MIG profile, so no node announces it and the pods stay pending"),
	check.New("mig-two-profiles", raydemand.Warning, check.Groups(migTwoProfiles),
		"a CUDA process uses one MIG instance, and the operator counts the GPUs of the first name only: the other "+
			"instance is paid for and idle"),
	check.New("resource-misplaced", raydemand.Error, check.Groups(resourceMisplaced),
		"Kubernetes has no such field: the API server drops it, or refuses the object, and the pods do not get what "+
			"it requests"),
	check.New("gpu-two-resources", raydemand.Warning, check.Workers(gpuTwoResources),
		"a pod gets devices of both resources, and the operator counts those of the first name only: the others are "+
			"paid for and idle"),
	check.New(nodepool.NumGPUsMismatch, raydemand.Warning, comparedWithNodes(),
		"a new worker reports another number of GPUs to Ray than the device plugin gives it, so Ray schedules tasks "+
			"with num_gpus by a wrong number"),
	check.New(nodepool.GPUSharesSeveral, raydemand.Warning, comparedWithNodes(),
		"several shares do not give a worker more of a GPU"),
	check.New(nodepool.MIGInstancesSeveral, raydemand.Warning, check.Workers(migInstancesSeveral),
		"a CUDA process uses one MIG instance, so tasks can use one of those that a worker reports to Ray "+
			"(docs/reference/facts.md#instances-of-a-process)"),
	check.New(landing.GPUSlicesDiffer, raydemand.Warning, check.Workers(gpuSlicesDiffer),
		"the nodes on which the pods fit announce different things under one name"),
	check.New("mig-strategy", raydemand.Error, check.Inputs(migStrategy),
		"with strategy none or single the device plugin announces instances as nvidia.com/gpu and never by profile, "+
			"so the pods stay pending"),
	check.New("gpu-resource-unknown", raydemand.Warning, gpus(gpuResourceUnknown),
		"the name looks like that of a GPU and is in no table, so it is unknown what a unit is"),
	check.New("gpu-core-step", raydemand.Error, gpus(gpuCoreStep),
		"ACK allocates the cores of a card in steps of 5 percent, from 5 to 100; the pods are not scheduled"),
	check.New("gpu-cores-without-memory", raydemand.Error, gpus(gpuCoresWithoutMemory),
		"ACK shares a card by memory, and allocates cores only with memory; the pods are not scheduled"),
	check.New("gpu-mem-above-card", raydemand.Error, check.Groups(gpuMemoryAboveCard),
		"memory comes from one card, whatever the cards of a node have in total, so the pods fit on no node"),
	check.New(landing.GPUFractionRefused, raydemand.Error, check.Groups(gpuFractionRefused),
		"KAI's webhook refuses every pod of the group"),
	check.New("gpu-shares-counted", raydemand.Warning, check.Workers(gpuSharesCounted),
		"the name ends with gpu, so the operator passes each unit to Ray as a whole GPU"),
	check.New("mps-inside-ray", raydemand.Warning, check.Workers(mpsInsideRay),
		"kuberay #3634 (open; not tested here) reports that with MPS of NVIDIA's device plugin nvidia-smi shows the "+
			"GPU inside a KubeRay pod, but CUDA does not start. It suspects /dev/shm, where the operator mounts its "+
			"own volume"),
	check.New("mps-shares-several", raydemand.Error, check.Workers(mpsSharesSeveral),
		"with MPS the device plugin refuses a request for more than one share, unless failRequestsGreaterThanOne is "+
			"false; the kubelet then fails the pod with UnexpectedAdmissionError, and you must delete it"),
}

// rayChecks examine what the operator and Ray derive from a group.
var rayChecks = []check.Check{
	check.New("resources-not-parsed", raydemand.Error, check.Groups(resourcesNotParsed),
		"the operator cannot parse the string as JSON and drops the GPUs that it would derive from the limits: Ray "+
			"counts what it happens to see on the machine"),
	check.New("resources-quoting", raydemand.Info, check.Groups(resourcesQuoting),
		"the shell can read the string and the operator cannot: a GPU or TPU that you add to the limits will not be "+
			"counted"),
	check.New("resource-name-taken", raydemand.Warning, check.Workers(resourceNameTaken),
		"in resources the operator ignores the case of cpu and memory, and takes a name that ends with gpu for GPU; "+
			"Ray's own autoscaler takes it for a resource of exactly this name, which no node ever announces"),
	check.New("memory-limit-absent", raydemand.Warning, check.Groups(memoryLimitAbsent),
		"Ray takes the memory of the whole node for its own and schedules by it, until the kernel or the kubelet "+
			"kills the pod"),
	check.New("cpu-absent", raydemand.Warning, check.Workers(cpuAbsent),
		"Ray counts the CPUs of the whole node, and Ray's own autoscaler fails on such a group for the whole cluster"),
	check.New("head-takes-work", raydemand.Info, heads(headTakesWork),
		"the head runs tasks and actors beside the GCS, like a worker: work that uses up its memory takes the "+
			"cluster down"),
	check.New("gpu-uncounted", raydemand.Warning, check.Workers(gpuUncounted),
		"neither the operator nor Ray's autoscaler counts GPUs of this name, so a request for a GPU never starts the "+
			"group"),
	check.New("accelerator-uncounted", raydemand.Warning, check.Workers(acceleratorUncounted),
		"neither the operator nor Ray's autoscaler counts accelerators of this name, so a request for them never "+
			"starts the group"),
	check.New("claim-uncounted", raydemand.Warning, check.Workers(claimUncounted),
		"neither the operator nor Ray's autoscaler counts GPUs of a DRA claim (kuberay #3527), so a request for a "+
			"GPU never starts the group, and its workers announce no GPU"),
	check.New("claims-unbounded", raydemand.Info, decoded(edit),
		"plans do not compare the claim with the devices of the nodes, so only maxReplicas limits the group"),
	check.New("ray-autoscaler-differs", raydemand.Warning, check.Workers(rayAutoscalerDiffers),
		"the operator counts this MIG profile as GPUs and Ray's own autoscaler does not, so a request for a GPU "+
			"never starts the group"),
	check.New("num-gpus-differs", raydemand.Warning, check.Workers(numGPUsDiffers),
		"Ray uses the declared number and the pod gets the other one: with too few GPUs tasks find none, with too "+
			"many some stay idle"),
	check.New("num-gpus-running-differs", raydemand.Info, check.Workers(numGPUsRunningDiffers),
		"pods older than the change announce the number that they were started with until they are replaced, so the "+
			"group has both kinds"),
	check.New("head-gpu", raydemand.Warning, heads(headGPU),
		"the head is never removed, so its GPU costs money as long as the cluster exists, and a task on the head can "+
			"take the whole cluster down"),
}

// rayClusterChecks examine the RayCluster itself.
var rayClusterChecks = []check.Check{
	check.New("min-above-max", raydemand.Error, check.Workers(minAboveMax),
		"the operator refuses the spec and changes no group of the cluster; the status does not show it "+
			"(docs/reference/facts.md#refused-spec)"),
	check.New("replicas-outside", raydemand.Warning, check.Workers(replicasOutside),
		"the operator keeps the group at the nearer bound whatever replicas says, so the number is misleading"),
	check.New("field-out-of-range", raydemand.Error, check.Workers(fieldOutOfRange),
		"the API server stores it, but the operator cannot decode it: its list fails for the RayClusters of all "+
			"namespaces, and it reconciles none of them (docs/reference/facts.md#undecodable-object)"),
	check.New("field-misspelt", raydemand.Error, clusters(fieldMisspelt),
		"the CRD has no such field: the API server drops it, and it has no effect"),
	check.New("upscaling-mode-unknown", raydemand.Error, clusters(upscalingModeUnknown),
		"the API server accepts only "+strings.Join(upscalingModes, ", ")+", and refuses the object"),
	check.New("gpu-group-unbounded", raydemand.Warning, check.Workers(gpuGroupUnbounded),
		"without maxReplicas the CRD sets 2147483647: one wrong request for resources can order any number of GPUs"),
	check.New("group-duplicate", raydemand.Error, clusters(groupDuplicate),
		"two groups of one name share their pods; without in-tree autoscaling the operator creates for one what it "+
			"deletes for the other, a dozen pods a second"),
	check.New("group-name-unsuitable", raydemand.Error, check.Workers(groupNameUnsuitable),
		"the name becomes part of pod names and a label value, which allow lower-case letters, digits and hyphens, "+
			"at most 63; the API server refuses every pod of the group"),
	check.New("group-name-headgroup", raydemand.Warning, check.Workers(groupNameHeadgroup),
		"headgroup is KubeRay's name for the head, so nothing distinguishes the Ray nodes and pods of this group "+
			"from it"),
	check.New("idle-timeout-negative", raydemand.Warning, idleTimeouts(func(seconds int64) bool { return seconds < 0 }),
		"Ray compares idle times with it, so it has the effect of 0: a worker is removed as soon as it is idle"),
	check.New("idle-timeout-zero", raydemand.Warning, idleTimeouts(func(seconds int64) bool { return seconds == 0 }),
		"a worker is removed as soon as it is idle, and the next task waits for a new pod, perhaps for a new GPU node"),
	check.New("idle-timeout-refused", raydemand.Error, check.Workers(idleTimeoutRefused),
		"a group can have an idle timeout only with autoscaler v2; the operator refuses the spec and changes no "+
			"group (docs/reference/facts.md#refused-spec)"),
	check.New("ray-version-old", raydemand.Warning, heads(rayVersionOld),
		"Heliostat needs Ray 2.40 or later: an older GCS does not report all that Heliostat plans by"),
	check.New("restart-policy", raydemand.Error, check.Groups(restartPolicy),
		"under autoscaler v2 a stopped worker must not restart in its old pod: the operator refuses the spec or, if "+
			"a variable sets the version, idle workers are never removed"),
	check.New("annotation-unknown", raydemand.Warning, clusters(annotationUnknown),
		"nothing reads this annotation, so it has no effect"),
	check.New("sync-recreates", raydemand.Warning, clusters(syncRecreates),
		"with upgradeStrategy Recreate the operator deletes all pods, also the head, when num-gpus changes, so the "+
			"sync does not write and the annotation has no effect"),
	check.New("field-unreadable", raydemand.Error, decoded(edit), "the operator cannot decode the object"),
	check.New("group-unnamed", raydemand.Error, decoded(nameGroup),
		"the pods of a group without a name cannot be found"),
	check.New("quantity-ignored", raydemand.Warning, decoded(edit),
		"the operator ignores an entry of the group's resources that is not a quantity"),
	check.New("resource-keys-differ", raydemand.Warning, decoded(edit),
		"which of the numbers reaches `ray start` changes from pod to pod "+
			"(docs/reference/facts.md#keys-of-the-field-resources)"),
	check.New("pods-refused", raydemand.Error, decoded(edit), "the API server refuses every pod of the group"),
	check.New("bytes-fractional", raydemand.Warning, decoded(mebibytes),
		"the suffix m means a thousandth, so the amount is hardly what you mean"),
	check.New("ray-start-fails", raydemand.Error, decoded(requoteResources),
		"every pod of the group exits at once and restarts again and again"),
	check.New("start-command-unknown", raydemand.Warning, decoded(edit),
		"what the group's pods announce is unknown until one of them has joined Ray"),
	check.New("environment-unknown", raydemand.Warning, decoded(edit),
		"an important variable comes from an object that Heliostat does not read"),
	check.New(nodepool.SpecRefused, raydemand.Error, decoded(removeRefusedField),
		"the operator refuses the spec and changes no group (docs/reference/facts.md#refused-spec)"),
	check.New("annotation-unreadable", raydemand.Error, decoded(resetAnnotation),
		"Heliostat cannot read the value, and uses the one that changes least"),
	check.New("delete-list-foreign", raydemand.Error, decoded(emptyDeleteList),
		"the operator deletes every pod that the list names, and an empty name blocks the group until it is removed"),
	check.New("worker-pods-fail", raydemand.Error, decoded(showEvents),
		"the operator handles the groups in order and stops at this one; the groups behind it get no pods"),
	check.New("group-removed", raydemand.Warning, decoded(deletePodsOfGroup),
		"nothing deletes the pods of a group that is no longer in the spec: they keep their GPUs"),
	check.New("hosts-below-one", raydemand.Warning, decoded(oneHost),
		"KubeRay 1.6.2 multiplies replicas by the number, so the group gets no pod"),
	check.New("replica-unnamed", raydemand.Warning, decoded(deletePodsWithoutReplica),
		"the operator neither counts nor deletes pods from before numOfHosts was above 1"),
}

// scalerChecks examine what else scales a RayCluster, and the operator that carries it out.
var scalerChecks = []check.Check{
	check.New("sidecar-beside-us", raydemand.Warning, clusters(sidecarBesideUs),
		"Ray's own autoscaler runs in the head pod. Both would write replicas, so Heliostat stays in shadow mode and "+
			"writes nothing"),
	check.New("sidecar-missing", raydemand.Error, clusters(sidecarMissing),
		"the head pod is older than the field and has no autoscaler, so nothing scales the cluster until the pod is "+
			"replaced"),
	check.New("sidecar-left-over", raydemand.Warning, clusters(sidecarLeftOver),
		"the sidecar keeps scaling until the head pod is replaced, while the operator already deletes surplus pods "+
			"of its own choice"),
	check.New("autoscaler-version-differs", raydemand.Error, clusters(autoscalerVersionDiffers),
		"the field and the head's variable RAY_enable_autoscaler_v2 contradict each other: the GCS and the sidecar "+
			"run different versions or, without in-tree autoscaling, the operator refuses the spec"),
	check.New("surplus-deleted-at-random", raydemand.Info, clusters(surplusDeletedAtRandom),
		"without in-tree autoscaling, when replicas is lowered and no pods are named, the operator chooses which "+
			"pods to delete, busy or not. Heliostat, which names them, does not scale this cluster "+
			"(docs/reference/facts.md#operator-surplus)"),
	check.New("queued-by-kueue", raydemand.Info, clusters(queuedByKueue),
		"Kueue queues it, and it is not elastic: any change of replicas makes Kueue restart the whole RayCluster, "+
			"also the head, so Heliostat never patches it, whatever its mode"),
	check.New("elastic-queued-by-kueue", raydemand.Warning, clusters(elasticQueuedByKueue),
		"Kueue queues it as an elastic one, but it gives no quota to further pods of a RayJob or RayService without "+
			"in-tree autoscaling: they stay behind its gate for ever. Heliostat never patches it, whatever its mode"),
	check.New("queued-groups-too-many", raydemand.Error, clusters(queuedGroupsTooMany),
		"a Workload of Kueue 0.18 has at most 10 sets of pods, so the head and 9 worker groups; Kueue never admits it"),
	check.New("flavor-not-selected", raydemand.Warning, clusters(flavorNotSelected),
		"Kueue assigns one flavor to the group when it first admits it, also at 0 replicas, and the group never uses "+
			"the quota of another"),
	check.New("elastic-without-queue", raydemand.Warning, clusters(elasticWithoutQueue),
		"for this annotation Kueue's webhook gives every pod the scheduling gate "+nodepool.ElasticGate+
			", and without the label "+nodepool.QueueLabel+" nothing removes the gate, so no pod ever runs"),
	check.New("replicas-two-writers", raydemand.Warning, clusters(replicasTwoWriters),
		"unless this manager is set up to ignore them, it restores replicas, and the operator deletes workers "+
			"of its own choice, busy ones too. The list of groups is atomic, so nobody can own a part of it"),
	check.New("scaled-by-hpa", raydemand.Error, check.Inputs(scaledByHPA),
		"it writes replicas by its own metric, against the autoscaler that follows Ray's demand"),
	check.New("operator-concurrency", raydemand.Info, check.Inputs(operatorConcurrency),
		"the operator reconciles one RayCluster at a time: while one of them grows by hundreds of pods, the others "+
			"wait for minutes (kuberay #3909)"),
}

// policyChecks examine what RayClusters keep ready, and what is asked for them.
var policyChecks = []check.Check{
	check.New(capacity.FindingUnreadable, raydemand.Error, policies(policyUnreadable),
		"nothing is kept warm, suspended or deleted by it, and no other CapacityPolicy takes its place"),
	check.New(capacity.FindingSuperseded, raydemand.Warning, policies(policySuperseded), "another policy counts"),
	check.New("raycluster-absent", raydemand.Info, check.Inputs(rayClusterAbsent),
		"the RayCluster is not among the objects: without it, this has no effect, and its groups and prices are not "+
			"compared"),
	check.New(capacity.FindingGroupUnknown, raydemand.Error, clusters(groupUnknown), "there is no such worker group"),
	check.New(capacity.FindingNodesUnused, raydemand.Warning, clusters(warmNodesUnused), "no nodes are kept"),
	check.New(capacity.FindingNodesLeft, raydemand.Warning, check.Inputs(warmNodesLeft),
		"Heliostat made it while it ran with --warm-nodes, and does not now: nothing changes or removes it, and the "+
			"nodes that it keeps cost money"),
}

// rightChecks examine what the reader may see, and what it could not read.
var rightChecks = []check.Check{
	check.New("nodes-forbidden", raydemand.Warning, check.Inputs(nodesForbidden),
		"without nodes it is unknown which GPUs there are, whether the pods of a group fit anywhere, and whether a "+
			"worker's node is lost"),
	check.New("list-forbidden", raydemand.Info, check.Inputs(listForbidden),
		"checks that need these objects did not run"),
	check.New("object-unreadable", raydemand.Warning, check.Inputs(objectUnreadable),
		"the rest is examined as if this were not there"),
}

// securityChecks examine which container sees which GPU.
var securityChecks = []check.Check{
	check.New("gpus-visible", raydemand.Warning, check.Groups(gpusVisible),
		"the group requests no GPU and fits on a node with GPUs: an image that sets NVIDIA_VISIBLE_DEVICES=all sees "+
			"and uses all of them without the scheduler, and delays every change of the MIG layout"),
	check.New("gpu-visible-all", raydemand.Warning, check.Groups(gpuVisibleAll),
		"the variable overrides the device plugin: the container sees every GPU of the node, also those of other pods"),
	check.New("gpu-privileged", raydemand.Warning, check.Groups(gpuPrivileged),
		"a privileged container sees all devices of the node, whatever GPUs it was given, and can use those of other "+
			"pods"),
}
