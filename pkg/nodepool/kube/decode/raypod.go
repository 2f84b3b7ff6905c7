package decode

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Pod is what Heliostat keeps of a pod of a RayCluster. It never changes. A worker takes 0.5 KB, its Pod object 10 KB.
type Pod struct {
	// RayCluster is the RayCluster that the pod belongs to, by its label.
	RayCluster nodepool.ClusterKey
	// Name is the pod's name, Version its resourceVersion.
	Name, Version string

	worker nodepool.Worker // of a worker
	head   *corev1.Pod     // of a head, stripped; else nil
}

// PodOf returns what Heliostat keeps of a pod. It shares no memory with it but texts.
func PodOf(pod *corev1.Pod) *Pod {
	p := &Pod{
		RayCluster: nodepool.ClusterKey{
			Namespace: interned(pod.Namespace),
			Name:      interned(pod.Labels[ClusterLabel]),
		},
		Name:    pod.Name,
		Version: pod.ResourceVersion,
	}
	switch pod.Labels[nodeTypeLabel] {
	case headNode:
		p.head = stripPod(pod)
	case workerNode:
		p.worker = worker(pod)
	}
	return p
}

// PodsOf returns what Heliostat keeps of pods.
func PodsOf(pods []corev1.Pod) []*Pod {
	list := make([]*Pod, len(pods))
	for i := range pods {
		list[i] = PodOf(&pods[i])
	}
	return list
}

// GetNamespace returns the namespace of the pod.
func (p *Pod) GetNamespace() string { return p.RayCluster.Namespace }

// GetName returns its name.
func (p *Pod) GetName() string { return p.Name }

// Same reports whether two states of a pod differ in nothing that a decision depends on. Their versions may differ.
func (p *Pod) Same(other *Pod) bool {
	if p.head != nil || other.head != nil {
		return p.Version == other.Version
	}
	a, b := p.worker, other.worker
	a.Guard.Version, b.Guard.Version = "", ""
	return p.RayCluster == other.RayCluster && reflect.DeepEqual(a, b)
}

// Codes of findings about pods.
const (
	// GroupRemoved: the group of some worker pods is no longer in the RayCluster.
	GroupRemoved = "group-removed"
	// ReplicaUnnamed: pods of a multi-host group that belong to no replica.
	ReplicaUnnamed = "replica-unnamed"
	// WorkerPodsFail: the operator cannot create or delete a pod of some group.
	WorkerPodsFail = "worker-pods-fail"
	// DeleteListForeign: a group's workersToDelete contains an empty name or the head.
	DeleteListForeign = "delete-list-foreign"
)

// workers returns the worker pods, oldest first.
func workers(pods []*Pod) []nodepool.Worker {
	sorted := make([]*nodepool.Worker, 0, len(pods))
	for _, pod := range pods {
		if pod.head == nil && pod.worker.Pod != "" {
			sorted = append(sorted, &pod.worker)
		}
	}
	slices.SortFunc(sorted, func(a, b *nodepool.Worker) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.Pod, b.Pod))
	})
	list := make([]nodepool.Worker, len(sorted))
	for i, w := range sorted {
		list[i] = *w
	}
	return list
}

func worker(pod *corev1.Pod) nodepool.Worker {
	w := nodepool.Worker{
		Pod: pod.Name, UID: string(pod.UID), IP: pod.Status.PodIP, Node: interned(pod.Spec.NodeName),
		Group: interned(pod.Labels[groupLabel]), Replica: interned(pod.Labels[replicaLabel]),
		Terminating: terminating(pod),
		Failed:      pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded,
		CreatedAt:   pod.CreationTimestamp.Time,
		Going:       going(pod), Grace: grace(pod), GPUs: gpusOf(pod),
		Guard: guardOf(pod), Consumes: pod.Annotations[nodepool.ConsumeAnnotation],
	}
	if pod.Status.Phase == corev1.PodFailed {
		w.FailedWhy = strings.TrimPrefix(strings.TrimSuffix(pod.Status.Reason+": "+pod.Status.Message, ": "), ": ")
	}
	if scheduled := condition(pod, corev1.PodScheduled); scheduled != nil {
		if scheduled.Status == corev1.ConditionTrue {
			w.ScheduledAt = scheduled.LastTransitionTime.Time
		} else if heldByGang(scheduled) {
			w.GangHeld = pod.Spec.SchedulerName + ": " + cmp.Or(scheduled.Message, scheduled.Reason)
		} else if scheduled.Reason == corev1.PodReasonUnschedulable {
			w.Unschedulable = scheduled.Message
		} else {
			w.Gated = scheduled.Reason == corev1.PodReasonSchedulingGated
		}
	} else if gang := pod.Spec.WorkloadRef; gang != nil && pod.Spec.NodeName == "" {
		// Of a pod that may not enter its queue yet, kube-scheduler 1.35 says nothing (PreEnqueue).
		w.GangHeld = pod.Spec.SchedulerName + ": it belongs to Workload " + gang.Name +
			", and kube-scheduler has not tried it"
	}
	if ready := condition(pod, corev1.PodReady); ready != nil {
		w.Ready = ready.Status == corev1.ConditionTrue
	}
	if ray := rayStatus(pod); ray != nil {
		if ray.State.Waiting != nil {
			w.Waits = ray.State.Waiting.Reason
		}
		if ray.State.Running != nil {
			w.Running, w.StartedAt = true, ray.State.Running.StartedAt.Time
		}
		// The operator replaces these too (docs/reference/facts.md#ended-ray-container).
		if ray.State.Terminated != nil && pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
			w.Failed = true
		}
	}
	return w
}

// gangTexts are parts of what gang schedulers say in the condition of a pod that fits, or that they have not tried,
// while it waits for others of its gang. What they say of a pod that does not fit has none of them.
var gangTexts = []string{
	// Coscheduling: PreFilter, PostFilter and Unreserve (scheduler-plugins v0.34.7, pkg/coscheduling), seen in
	// test/neighbours.
	"cannot find enough sibling pods", "due to gated pods in the same PodGroup", " failed recently", "resource gap: ",
	"optimistic rejection in PostFilter", "rejection in Unreserve", "at plugin Coscheduling",
	// Volcano: what its job says of a pod without a reason of its own (pkg/scheduler/api/job_info.go).
	"pod group is not ready", "can possibly be assigned to",
	// kube-scheduler 1.35 and 1.36 (plugins/gangscheduling, schedule_one_podgroup.go).
	"to appear in scheduling queue", "minCount pods from a gang", "pod group is unschedulable",
	"at plugin GangScheduling",
	// KAI: the text of a pod without a reason of its own (pkg/scheduler/api/common_info/pod_errors.go).
	"Unable to schedule pod",
}

// heldByGang reports whether a pod without a node waits for others of its gang. Volcano also has two reasons of its own
// (PodReasonSchedulable and PodReasonUndetermined in pkg/scheduler/api).
func heldByGang(scheduled *corev1.PodCondition) bool {
	says := func(text string) bool { return strings.Contains(scheduled.Message, text) }
	switch scheduled.Reason {
	case "Schedulable", "Undetermined":
		return true
	}
	return scheduled.Reason == corev1.PodReasonUnschedulable && slices.ContainsFunc(gangTexts, says)
}

// going returns what a pod says about its end, or nil. The API server sets the deletionTimestamp to when the grace
// period is over.
func going(pod *corev1.Pod) (found *departure.Notice) {
	if c := condition(pod, corev1.DisruptionTarget); c != nil && c.Status == corev1.ConditionTrue {
		found = departure.Of(departure.PodDisrupted, "the pod is being evicted ("+c.Reason+")")
		found.Since = c.LastTransitionTime.UTC()
	}
	if terminating(pod) {
		found = departure.Earlier(found,
			departure.Of(departure.PodTerminating, "the pod is being deleted").Until(pod.DeletionTimestamp.UTC()))
	}
	return found
}

// cardUUID is the UUID of a card of NVIDIA.
var cardUUID = regexp.MustCompile(`GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// gpusOf returns the GPUs that a pod has: as the kubelet reports them (feature gate ResourceHealthStatus, on since
// Kubernetes 1.36), or as the scheduler of HAMi or Volcano wrote down.
func gpusOf(pod *corev1.Pod) map[string]bool {
	gpus := map[string]bool{}
	for i := range pod.Status.ContainerStatuses {
		for _, resource := range pod.Status.ContainerStatuses[i].AllocatedResourcesStatus {
			for _, device := range resource.Resources {
				id := string(device.ResourceID)
				name := string(resource.Name) + id
				if strings.Contains(name, "gpu") || strings.Contains(name, "/mig-") {
					gpus[id] = device.Health != corev1.ResourceHealthStatusUnhealthy
				}
			}
		}
	}
	for _, record := range annotationsOf(pod, sharing.PodAnnotations()...) {
		for _, id := range cardUUID.FindAllString(record, -1) {
			gpus[id] = true
		}
	}
	if len(gpus) == 0 {
		return nil
	}
	return gpus
}

func grace(pod *corev1.Pod) time.Duration {
	if seconds := pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}

// rayStatus returns the status of container 0, the Ray container, or nil if there is none yet.
func rayStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	if len(pod.Spec.Containers) == 0 {
		return nil
	}
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == pod.Spec.Containers[0].Name {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// reportPods compares the pods with the groups that they name.
func reportPods(report *Report, cluster *nodepool.Cluster) {
	removed, unnamed := map[string][]string{}, map[string][]string{}
	for _, w := range cluster.Workers {
		if w.Terminating {
			continue
		}
		group, known := cluster.Group(w.Group)
		switch {
		case !known:
			removed[w.Group] = append(removed[w.Group], w.Pod)
		case group.NumOfHosts > 1 && w.Replica == "":
			unnamed[w.Group] = append(unnamed[w.Group], w.Pod)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(removed)) {
		report.Add(raydemand.Warning, GroupRemoved, "spec.workerGroupSpecs",
			name+": "+strings.Join(removed[name], ", "),
			"the group is gone from the spec and the operator does not delete its pods",
			"delete the pods, or add the group again")
	}
	for _, name := range slices.Sorted(maps.Keys(unnamed)) {
		group, _ := cluster.Group(name)
		report.Add(raydemand.Warning, ReplicaUnnamed, fmt.Sprintf("spec.workerGroupSpecs[%d].numOfHosts", group.Index),
			strings.Join(unnamed[name], ", "),
			"these pods are older than numOfHosts > 1: the operator neither counts nor deletes them",
			"delete the pods by hand")
	}
	for _, group := range cluster.Groups {
		reportDeleteList(report, cluster, group)
	}
}

func reportDeleteList(report *Report, cluster *nodepool.Cluster, group nodepool.WorkerGroup) {
	for _, name := range group.WorkersToDelete {
		why := ""
		switch {
		case name == "":
			why = "the operator cannot delete a pod without a name, retries for ever and changes nothing else in " +
				"this group"
		case name == cluster.Head.Pod:
			why = "the operator deletes the head pod"
		}
		if why != "" {
			report.Add(raydemand.Error, DeleteListForeign, fmt.Sprintf(
				"spec.workerGroupSpecs[%d].scaleStrategy.workersToDelete",
				group.Index,
			), fmt.Sprintf("%q", name), why, "remove the entry")
		}
	}
}

// reportReplicaFailure reports the operator's condition.
func reportReplicaFailure(status Fields) {
	for _, c := range status.Objects("conditions") {
		if c.Text("type") == "ReplicaFailure" && c.Text("status") == "True" {
			status.Report.Add(raydemand.Error, WorkerPodsFail, "spec.workerGroupSpecs",
				c.Text("reason")+": "+c.Text("message"), // docs/reference/facts.md#group-order
				"the operator stops at the first group that fails; the later groups get no pods and no deletes",
				"correct the group's pod template, set its replicas to 0, or list it last")
		}
	}
}

// guardOf reads what the pod's annotations say to node autoscalers. An annotation that Heliostat wrote and somebody
// changed since is theirs.
func guardOf(pod *corev1.Pod) nodepool.Guard {
	list, ours := pod.Annotations[nodepool.GuardAnnotation]
	written := strings.Split(list, ",")
	mark := func(annotation, keeps string) nodepool.GuardMark {
		switch value, set := pod.Annotations[annotation]; {
		case !set:
			return nodepool.Unmarked
		case value != keeps:
			return nodepool.MarkedOtherwise
		case slices.Contains(written, annotation):
			return nodepool.MarkedByUs
		}
		return nodepool.MarkedByUser
	}
	return nodepool.Guard{
		DoNotDisrupt: mark(nodepool.DoNotDisruptAnnotation, nodepool.DoNotDisrupt),
		SafeToEvict:  mark(nodepool.SafeToEvictAnnotation, nodepool.SafeToEvict),
		Ours:         ours,
		Version:      pod.ResourceVersion,
	}
}

// GuardWritten returns the annotations that a change writes to the pod, with nil for those that it removes.
func GuardWritten(change nodepool.GuardChange) map[string]any {
	annotations := map[string]any{}
	var ours []string
	for _, a := range []struct {
		name, keeps string
		mark        nodepool.GuardMark
	}{
		{nodepool.DoNotDisruptAnnotation, nodepool.DoNotDisrupt, change.Read.DoNotDisrupt},
		{nodepool.SafeToEvictAnnotation, nodepool.SafeToEvict, change.Read.SafeToEvict},
	} {
		switch {
		case change.Keep && (a.mark == nodepool.Unmarked || a.mark == nodepool.MarkedByUs):
			annotations[a.name] = a.keeps
			ours = append(ours, a.name)
		case !change.Keep && a.mark == nodepool.MarkedByUs:
			annotations[a.name] = nil
		}
	}
	annotations[nodepool.GuardAnnotation] = nil
	if len(ours) > 0 {
		annotations[nodepool.GuardAnnotation] = strings.Join(ours, ",")
	}
	return annotations
}

// StripRayCluster drops what Heliostat does not read before an object enters the cache, and keeps the spec as JSON, of
// which Whole makes maps again: a spec has hundreds of objects, and each collection of garbage looks at all of them.
func StripRayCluster(object any) (any, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	keepScaler(u)
	unstructured.RemoveNestedField(u.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	if spec, ok := u.Object["spec"].(map[string]any); ok {
		text, err := json.Marshal(spec)
		if err != nil {
			return nil, fmt.Errorf("keeping RayCluster %s/%s: %w", u.GetNamespace(), u.GetName(), err)
		}
		u.Object["spec"] = string(text)
	}
	return u, nil
}

// Whole returns a RayCluster that StripRayCluster has kept with its spec as maps. It returns any other one as it is.
func Whole(rayCluster *unstructured.Unstructured) *unstructured.Unstructured {
	text, kept := rayCluster.Object["spec"].(string)
	if !kept {
		return rayCluster
	}
	spec := map[string]any{}
	if err := utiljson.Unmarshal([]byte(text), &spec); err != nil {
		return rayCluster // not from StripRayCluster: decoding says that the spec is a text
	}
	object := maps.Clone(rayCluster.Object)
	object["spec"] = spec
	return &unstructured.Unstructured{Object: object}
}

// stripPod keeps of a head pod what describeHead and describeAuth read: about 2 KB of 10 KB.
func stripPod(pod *corev1.Pod) *corev1.Pod {
	stripped := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
			Annotations: annotationsOf(pod, nodepool.GuardAnnotation, nodepool.DoNotDisruptAnnotation,
				nodepool.SafeToEvictAnnotation), // those that guardOf reads
		},
		Spec: corev1.PodSpec{
			RestartPolicy: pod.Spec.RestartPolicy, NodeName: pod.Spec.NodeName, Priority: pod.Spec.Priority,
		},
		Status: corev1.PodStatus{PodIP: pod.Status.PodIP},
	}
	if ready := condition(pod, corev1.PodReady); ready != nil {
		stripped.Status.Conditions = []corev1.PodCondition{{Type: ready.Type, Status: ready.Status}}
	}
	for _, s := range pod.Status.ContainerStatuses {
		kept := corev1.ContainerStatus{Name: s.Name, RestartCount: s.RestartCount}
		if s.State.Terminated != nil {
			kept.State.Terminated = &corev1.ContainerStateTerminated{}
		}
		stripped.Status.ContainerStatuses = append(stripped.Status.ContainerStatuses, kept)
	}
	stripContainers(stripped, pod)
	return stripped
}

// stripContainers keeps of the head's containers what describes its port, its sidecar and its authentication.
func stripContainers(stripped, pod *corev1.Pod) {
	for i, c := range pod.Spec.Containers {
		kept := corev1.Container{Name: c.Name, Image: c.Image}
		if i == 0 {
			kept.Ports, kept.VolumeMounts = c.Ports, c.VolumeMounts
		}
		if c.Name == autoscalerContainer {
			kept.Command, kept.Args = c.Command, c.Args
		}
		for _, v := range c.Env {
			if strings.HasPrefix(v.Name, "RAY_AUTH_") || strings.HasPrefix(v.Name, "RAY_TLS_") ||
				slices.Contains([]string{"RAY_USE_TLS", "RAY_ENABLE_K8S_TOKEN_AUTH", SidecarEnv}, v.Name) {
				kept.Env = append(kept.Env, v)
			}
		}
		stripped.Spec.Containers = append(stripped.Spec.Containers, kept)
	}
	for _, v := range pod.Spec.Volumes {
		if v.Secret != nil {
			stripped.Spec.Volumes = append(stripped.Spec.Volumes, corev1.Volume{
				Name:         v.Name,
				VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: v.Secret.SecretName}},
			})
		}
	}
}
