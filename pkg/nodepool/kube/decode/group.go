package decode

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
		group := decodeGroup(reader, entry, i, ownCommand, waitGCSReady)
		addInto(group.Pod.Requests, collectorRequests(spec))
		group.Pod.Neighbors = neighbors(entry, cluster)
		if usesUncountedGPUs(entry, &group) {
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
func usesUncountedGPUs(f Fields, group *nodepool.WorkerGroup) bool {
	spec := f.silent().Object("template").Object("spec")
	containers, gpus := spec.Objects("containers"), group.GPUs
	if len(containers) == 0 || gpus.Derived == nil || *gpus.Derived <= 0 || len(gpus.Counted) > 0 ||
		gpus.Claims || group.Pod.HidesGPUs || group.Pod.Share != nil {
		return false
	}
	for name := range gpus.Limits {
		if strings.Contains(name, "gpu") || strings.HasPrefix(name, "nvidia.com/") {
			return false
		}
	}
	return strings.Contains(spec.Text("runtimeClassName"), "nvidia") ||
		decodeContainer(containers[0]).env["NVIDIA_VISIBLE_DEVICES"].value == "all"
}

// HeadGroup reads the head group of a RayCluster as worker groups are read, with the autoscaler beside Ray. It reports
// no faults: a check of the head names them.
func HeadGroup(reader sharing.Reader, rayCluster *unstructured.Unstructured) nodepool.WorkerGroup {
	root := FieldsOf(rayCluster.Object, nil)
	ownCommand := strings.EqualFold(root.Object("metadata").Texts("annotations")[overwriteAnnotation], "true")
	fields := root.Object("spec").Object("headGroupSpec")
	head := decodeGroup(reader, fields, 0, ownCommand)
	head.Broken = slices.ContainsFunc(root.Report.All, func(f raydemand.Finding) bool {
		return f.Severity == raydemand.Error && f.Code != GroupUnnamed // it has no name
	})
	head.Pod.Neighbors.Labels = podLabels(fields, rayCluster.GetName(), headNode)
	spec := root.Object("spec")
	addInto(head.Pod.Requests, collectorRequests(spec))
	if spec.Flag("enableInTreeAutoscaling") {
		own := sidecarRequests
		if options := spec.Object("autoscalerOptions"); options.Has("resources") {
			own = ownRequests(options)
		}
		addInto(head.Pod.Requests, own)
	}
	return head
}

// sidecarRequests are those of the autoscaler that the operator adds to the head, unless autoscalerOptions has
// resources (KubeRay 1.6.2, BuildAutoscalerContainer).
var sidecarRequests = landing.Quantities{"cpu": raydemand.One / 2, "memory": raydemand.Whole(512 << 20)}

// collectorRequests are those of the container that KubeRay 1.7 adds to all pods for its history server, if there is
// one (BuildCollectorContainer). An operator without the feature refuses the spec.
func collectorRequests(spec Fields) landing.Quantities {
	options := spec.silent().Object("historyServerOptions").Object("collectorOptions")
	if options.Raw() == nil || options.Has("resources") {
		return ownRequests(options)
	}
	return landing.Quantities{"cpu": raydemand.One / 20, "memory": raydemand.Whole(64 << 20)}
}

func decodeGroup(
	reader sharing.Reader, f Fields, index int, ownCommand bool, injected ...landing.Quantities,
) nodepool.WorkerGroup {
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
	group.Pod = podShape(f.Object("template"), injected...)
	group.Pod.Elsewhere = reader.SuppliedElsewhere()
	ReportTemplate(f.Report, &group, landing.CheckGPUs(reader, &group.Pod)...)
	ownCommand = ownCommand || templateOverwritesCommand(f)
	group.Resources = effectiveResources(f, ownCommand)
	addLabels(f, &group)
	group.GPUs = gpuSpec(f, ownCommand)
	group.Renamed = renamed(f.Texts("resources"))
	checkGroup(f, &group)
	checkContainers(f)
	checkPodRules(f)
	group.Broken = f.Report.ErrorsSince(mark)
	reportExpectedGPUs(f, &group)
	return group
}

func checkGroup(f Fields, group *nodepool.WorkerGroup) {
	if _, isText := f.Get("groupName").Raw().(string); group.Name == "" && (isText || !f.Has("groupName")) {
		f.Report.Add(raydemand.Error, GroupUnnamed, f.at("groupName"), "",
			"Heliostat cannot find the pods of a group without a name", "name it")
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

func templateOverwritesCommand(group Fields) bool {
	return strings.EqualFold(group.Object("template").Object("metadata").Texts("annotations")[overwriteAnnotation],
		"true")
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
