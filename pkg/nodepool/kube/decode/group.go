package decode

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Codes of findings about worker groups.
const (
	// GroupUnnamed and GroupDuplicate: a group cannot be distinguished from another.
	GroupUnnamed   = "group-unnamed"
	GroupDuplicate = "group-duplicate"
	// MinAboveMax: minReplicas is above maxReplicas, or one of them is negative.
	MinAboveMax = "min-above-max"
	// IdleTimeoutNegative: idleTimeoutSeconds is below 0.
	IdleTimeoutNegative = "idle-timeout-negative"
	// HostsBelowOne: numOfHosts is below 1.
	HostsBelowOne = "hosts-below-one"
)

// decodeGroups reads spec.workerGroupSpecs. Every entry keeps its index, which patches use.
func decodeGroups(
	reader sharing.Reader, spec Fields, cluster nodepool.ClusterKey, ownCommand bool,
) []nodepool.WorkerGroup {
	entries := spec.Objects("workerGroupSpecs")
	groups := make([]nodepool.WorkerGroup, 0, len(entries))
	byName := map[string]int{}
	for i, entry := range entries {
		group, pod := decodeGroup(reader, entry, i, ownCommand, waitForGCS)
		addInto(group.Pod.Requests, collectorRequests(spec))
		group.Pod.Neighbors = neighbors(pod, cluster, podLabels(entry, cluster.Name, workerNode),
			int64(group.NumOfHosts))
		if usesUncountedGPUs(pod, &group) {
			group.Pod.Neighbors.Apart = append(group.Pod.Neighbors.Apart, landing.PodTerm{Selector: landing.PodSelector{
				Requirements: []landing.Requirement{
					{Key: ClusterLabel, Operator: "In", Values: []string{cluster.Name}},
					{Key: groupLabel, Operator: "In", Values: []string{group.Name}},
				}}})
		}
		if first, twice := byName[group.Name]; twice && group.Name != "" {
			groups[first].Broken, group.Broken = true, true
			entry.Report.Add(raydemand.Error, GroupDuplicate, entry.at("groupName"), group.Name,
				"two groups with the same name share their pods, and the operator creates for one what it deletes "+
					"for the other",
				"give each group a name of its own")
		} else {
			byName[group.Name] = i
		}
		groups = append(groups, group)
	}
	return groups
}

// usesUncountedGPUs reports whether the pods of a group use GPUs that no request counts: NVIDIA's runtime shows them
// all GPUs of a node, and Ray has a number of them. Ray counts its GPUs from the first one in each pod, so two such
// pods on a node would use the same ones. Nothing but the plan keeps them apart.
func usesUncountedGPUs(pod *corev1.Pod, group *nodepool.WorkerGroup) bool {
	gpus := group.GPUs
	if len(pod.Spec.Containers) == 0 || gpus.Derived == nil || *gpus.Derived <= 0 || len(gpus.Counted) > 0 ||
		gpus.Claims || group.Pod.HidesGPUs || group.Pod.Share != nil {
		return false
	}
	for name := range gpus.Limits {
		if strings.Contains(name, "gpu") || strings.HasPrefix(name, "nvidia.com/") {
			return false
		}
	}
	if class := pod.Spec.RuntimeClassName; class != nil && strings.Contains(*class, "nvidia") {
		return true
	}
	visible := env(pod.Spec.Containers[0], "NVIDIA_VISIBLE_DEVICES")
	return visible != nil && visible.Value == "all"
}

// HeadGroup reads the head group of a RayCluster as worker groups are read, with the autoscaler beside Ray. It reports
// no faults: a check of the head names them.
func HeadGroup(reader sharing.Reader, rayCluster *unstructured.Unstructured) nodepool.WorkerGroup {
	root := FieldsOf(rayCluster.Object, nil)
	fields := root.Object("spec").Object("headGroupSpec")
	head, pod := decodeGroup(reader, fields, 0, overwritesCommand(root))
	head.Broken = slices.ContainsFunc(root.Report.All, func(f raydemand.Finding) bool {
		return f.Severity == raydemand.Error && f.Code != GroupUnnamed // it has no name
	})
	head.Pod.Neighbors.Labels = podLabels(fields, rayCluster.GetName(), headNode)
	spec := root.Object("spec")
	addInto(head.Pod.Requests, collectorRequests(spec))
	if spec.Flag("enableInTreeAutoscaling") {
		sidecar := sidecarOf(spec)
		addInto(head.Pod.Requests, requestsIn(sidecar.Resources))
		limits := positive(sidecar.Resources.Limits)
		addInto(limits, head.Pod.Limits)
		head.Pod.Limits = limits
		addUnstated(&head, pod, sidecar)
	}
	return head
}

// collectorRequests are those of the container that KubeRay 1.7 adds to all pods for its history server, if there is
// one (BuildCollectorContainer). An operator without the feature refuses the spec.
func collectorRequests(spec Fields) landing.Quantities {
	options := spec.silent().Object("historyServerOptions").Object("collectorOptions")
	if options.Raw() == nil || options.Has("resources") {
		return requestsIn(resourcesOf(options))
	}
	return landing.Quantities{"cpu": raydemand.One / 20, "memory": raydemand.Whole(64 << 20)}
}

func decodeGroup(
	reader sharing.Reader, f Fields, index int, ownCommand bool, injected ...corev1.Container,
) (nodepool.WorkerGroup, *corev1.Pod) {
	mark := len(f.Report.All)
	strategy := f.Object("scaleStrategy")
	group := nodepool.WorkerGroup{
		Index: index,
		Name:  f.Text("groupName"),
		// The CRD's defaults; objects of an older CRD may lack the fields.
		Replicas:        f.Int32("replicas", 0),
		Min:             f.Int32("minReplicas", 0),
		Max:             f.Int32("maxReplicas", nodepool.NoMaximum),
		NumOfHosts:      f.Int32("numOfHosts", 1),
		Priority:        f.Int32("priority", 0),
		Suspended:       f.Flag("suspend"),
		Labels:          f.Texts("labels"),
		WorkersToDelete: strategy.TextList("workersToDelete"),
	}
	for _, gate := range strategy.silent().Objects("scaleGate") {
		group.ScaleGates = append(group.ScaleGates, gate.Text("name"))
	}
	if f.Has("idleTimeoutSeconds") {
		timeout := idleTimeout(f)
		group.IdleTimeout = &timeout
	}
	pod := podOf(f.Object("template"))
	group.Pod = podShape(pod, injected...)
	addUnstated(&group, pod, containersOf(pod)...)
	group.Pod.Elsewhere = reader.SuppliedElsewhere()
	ReportTemplate(f.Report, &group, landing.CheckGPUs(reader, &group.Pod)...)
	start := startOf(f, pod, ownCommand || overwritesCommand(f.Object("template")))
	group.Resources, group.GPUs = effectiveResources(start), gpuSpec(start)
	addLabels(start, &group)
	checkGroup(f, &group)
	checkContainers(f, pod)
	checkPodRules(f)
	isError := func(finding raydemand.Finding) bool { return finding.Severity == raydemand.Error }
	group.Broken = slices.ContainsFunc(f.Report.All[mark:], isError)
	return group, pod
}

func checkGroup(f Fields, group *nodepool.WorkerGroup) {
	if _, isText := f.Get("groupName").Raw().(string); group.Name == "" && (isText || !f.Has("groupName")) {
		f.Report.Add(raydemand.Error, GroupUnnamed, f.at("groupName"), "",
			"Heliostat cannot find the pods of a group without a name", "name it")
	}
	// The operator lowers the name in names of pods, and the label may have capitals (KubeRay 1.6.2, utils.PodName).
	bad := validation.IsDNS1123Subdomain(strings.ToLower(group.Name))
	if group.Name != "" && (len(bad) > 0 || len(group.Name) > validation.LabelValueMaxLength) {
		f.Report.Add(raydemand.Error, PodsRefused, f.at("groupName"), group.Name,
			"the name becomes part of pod names and a label value, which allow lower-case letters, digits and "+
				"hyphens, at most 63; the API server refuses every pod of the group", "rename the group")
	}
	if group.Min < 0 || group.Max < 0 || group.Min > group.Max {
		f.Report.Add(raydemand.Error, MinAboveMax, f.at("minReplicas"),
			fmt.Sprintf("minReplicas %d, maxReplicas %d", group.Min, group.Max),
			"the operator rejects the spec and stops working on all groups of the cluster, and its status does not "+
				"say so",
			"make 0 <= minReplicas <= maxReplicas")
	}
	if group.NumOfHosts < 1 {
		// docs/reference/facts.md#hosts-of-a-replica
		f.Report.Add(raydemand.Warning, HostsBelowOne, f.at("numOfHosts"), fmt.Sprint(group.NumOfHosts),
			"Heliostat counts it as 1, as the operator means to; KubeRay 1.6.2 multiplies replicas by it, so the "+
				"group gets no pod",
			"set it to 1, or remove it")
		group.NumOfHosts = 1
	}
	if group.NumOfHosts > nodepool.MostHosts {
		f.Report.Add(raydemand.Error, FieldOutOfRange, f.at("numOfHosts"), fmt.Sprint(group.NumOfHosts),
			"no cluster can hold a replica of so many pods, so Heliostat does not plan the group",
			fmt.Sprintf("set it to at most %d", nodepool.MostHosts))
	}
}

// overwritesCommand reports whether the operator leaves the commands of a RayCluster, or of a template, as they are.
func overwritesCommand(of Fields) bool {
	return strings.EqualFold(of.Object("metadata").Texts("annotations")[overwriteAnnotation], "true")
}

// idleTimeout reads idleTimeoutSeconds. Ray compares idle times with it, so a negative value means the same as 0.
func idleTimeout(f Fields) time.Duration {
	const field, absent = "idleTimeoutSeconds", 60
	n := f.Int32(field, absent)
	if n < 0 {
		f.Report.Add(raydemand.Warning, IdleTimeoutNegative, f.at(field), fmt.Sprint(n),
			"Heliostat removes a worker as soon as Ray reports it idle, as with 0",
			"set how many seconds a worker may be idle")
	}
	return time.Duration(max(n, 0)) * time.Second
}

// ReportTemplate adds findings about a group's pod template. Their fields name a resource or a variable alone.
func ReportTemplate(report *Report, group *nodepool.WorkerGroup, list ...raydemand.Finding) {
	for _, f := range list {
		report.Add(f.Severity, f.Code, fmt.Sprintf("spec.workerGroupSpecs[%d].template.spec: %s", group.Index, f.Field),
			f.Seen, f.Why, f.Fix)
	}
}

// IdleTerminationUnexecuted says that a field says when an idle RayCluster ends. Only Ray's own autoscaler carries it
// out, and that does not run.
const IdleTerminationUnexecuted = "idle-termination-unexecuted"

// reportIdleTermination reports the fields by which Ray's autoscaler v2 ends a RayCluster without drivers: those of ray
// #65763 with kuberay #5210, and of ray #63465. Before there is a head pod, the mode and the flag say who will scale.
func reportIdleTermination(spec Fields, cluster *nodepool.Cluster) {
	head := cluster.Head
	if head.Sidecar != nodepool.NoAutoscaler && head.Sidecar != nodepool.OurSidecar ||
		head.Pod == "" && cluster.InTreeAutoscaling && cluster.Mode != nodepool.Managed {
		return
	}
	for _, path := range [][]string{{"idleTerminationOptions"}, {"autoscalerOptions", "noDriverTimeoutSeconds"}} {
		if v := spec.Get(path...); v.Has() {
			spec.Report.Add(raydemand.Warning, IdleTerminationUnexecuted, v.Path().String(), v.String(),
				"only Ray's own autoscaler ends a RayCluster by it, and that does not scale this one",
				"remove it, and set idle.suspendAfter of a capacity policy, which counts actors as work, too")
		}
	}
}
