package kueue

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Conditions of a Workload, and reasons of theirs (Kueue v0.18.3, apis/kueue/v1beta2/workload_types.go).
const (
	quotaReserved = "QuotaReserved"
	finished      = "Finished"
	failedToStart = "FailedToStart"
)

// preempting is what Kueue writes into a message while it evicts other work for a Workload (v0.18.3 and v0.19.0,
// pkg/scheduler/scheduler.go).
const preempting = "Pending the preemption of"

// pendingEvaluation is the reason of quotaReserved before Kueue has looked at a Workload, with its feature gates
// UnadmittedWorkloadsObservability and UnadmittedWorkloadsExplicitStatus (v0.19.0, off by default).
const pendingEvaluation = "PendingEvaluation"

// replaces is the annotation of a slice that names the one it replaces, as namespace/name.
const replaces = "kueue.x-k8s.io/workload-slice-replacement-for"

// workloadObject is the part of a Workload that Heliostat reads.
type workloadObject struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		PodSets []struct {
			Name  string `json:"name"`
			Count int64  `json:"count"`
		} `json:"podSets"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
		Admission  *struct {
			ClusterQueue      string       `json:"clusterQueue"`
			PodSetAssignments []assignment `json:"podSetAssignments"`
		} `json:"admission"`
	} `json:"status"`
}

// assignment is the quota that a Workload has for one set of pods.
type assignment struct {
	Name          string              `json:"name"`
	Flavors       map[string]string   `json:"flavors"`
	ResourceUsage corev1.ResourceList `json:"resourceUsage"`
	Count         int64               `json:"count"`
}

// jobKey names what Kueue admits, which Kueue calls a job: a RayCluster, or the RayJob or RayService whose RayCluster
// has the pods.
func jobKey(kind, namespace, name string) nodepool.ClusterKey {
	return nodepool.ClusterKey{Namespace: namespace, Name: kind + "/" + name}
}

// jobOf returns what Kueue admits for a queued RayCluster, and its UID.
func jobOf(cluster *nodepool.Cluster) (of nodepool.ClusterKey, uid string) {
	if parent := cluster.Queue.Parent; parent.Kind != "" {
		return jobKey(parent.Kind, cluster.Key.Namespace, parent.Name), parent.UID
	}
	return jobKey("RayCluster", cluster.Key.Namespace, cluster.Key.Name), cluster.UID
}

// workload is a Workload of a job.
type workload struct {
	name, uid  string
	of         nodepool.ClusterKey // as jobKey names it
	jobUID     types.UID
	generation int64
	createdAt  time.Time
	elastic    bool
	replaces   string
	// pods counts the pods of each set.
	pods map[string]int64
	// reserved says that it has quota since reservedAt, of queue, as assignments say.
	reserved    bool
	reservedAt  time.Time
	queue       string
	assignments []assignment
	// message is why it has none; judged says that Kueue has looked at this generation.
	message string
	judged  bool
	// finishedAt is zero until it is finished, and why the reason then.
	finishedAt  time.Time
	why, detail string
}

// readWorkload converts a Workload as the API server writes it; nil if no object of ray.io owns it.
func readWorkload(object *unstructured.Unstructured) (*workload, error) {
	owner := metav1.GetControllerOf(object)
	if owner == nil || !strings.HasPrefix(owner.APIVersion, "ray.io/") {
		return nil, nil
	}
	var read workloadObject
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &read); err != nil {
		return nil, fmt.Errorf("reading Workload %s/%s: %w", object.GetNamespace(), object.GetName(), err)
	}
	w := &workload{
		name:       read.Metadata.Name,
		uid:        string(read.Metadata.UID),
		of:         jobKey(owner.Kind, read.Metadata.Namespace, owner.Name),
		jobUID:     owner.UID,
		generation: read.Metadata.Generation,
		createdAt:  read.Metadata.CreationTimestamp.Time,
		elastic:    read.Metadata.Annotations[nodepool.ElasticAnnotation] == "true",
		replaces:   read.Metadata.Annotations[replaces],
		pods:       map[string]int64{},
	}
	for _, set := range read.Spec.PodSets {
		w.pods[set.Name] = set.Count
	}
	w.readStatus(&read)
	return w, nil
}

func (w *workload) readStatus(read *workloadObject) {
	if end := meta.FindStatusCondition(read.Status.Conditions, finished); end != nil &&
		end.Status == metav1.ConditionTrue {
		w.finishedAt, w.why, w.detail = end.LastTransitionTime.Time, end.Reason, end.Message
	}
	if quota := meta.FindStatusCondition(read.Status.Conditions, quotaReserved); quota != nil {
		w.reserved, w.reservedAt = quota.Status == metav1.ConditionTrue, quota.LastTransitionTime.Time
		w.judged = quota.ObservedGeneration >= read.Metadata.Generation && quota.Reason != pendingEvaluation
		w.message = quota.Message
	}
	if admission := read.Status.Admission; admission != nil {
		w.queue, w.assignments = admission.ClusterQueue, admission.PodSetAssignments
	}
}

func (w *workload) unfinished() bool { return w.finishedAt.IsZero() }

// newer reports whether w came after another Workload of the job. Times have a resolution of one second.
func (w *workload) newer(other *workload) bool {
	if !w.createdAt.Equal(other.createdAt) {
		return w.createdAt.After(other.createdAt)
	}
	return w.replaces == other.of.Namespace+"/"+other.name
}

// uses returns what the sets of pods that are counted have of a resource in a flavor. When a Workload shrinks, Kueue
// changes the counts in its spec and leaves its status as it is.
func (w *workload) uses(flavor, resource string, counted func(set string) bool) raydemand.Amount {
	var sum raydemand.Amount
	for _, a := range w.assignments {
		usage, known := a.ResourceUsage[corev1.ResourceName(resource)]
		if !known || a.Flavors[resource] != flavor || !counted(a.Name) {
			continue
		}
		amount := decode.Amount(usage)
		if now := w.pods[a.Name]; a.Count > 0 && now < a.Count {
			amount = amount / raydemand.Amount(a.Count) * raydemand.Amount(now)
		}
		sum += amount
	}
	return sum
}

// usesAll returns what all its sets of pods have of a resource in a flavor.
func (w *workload) usesAll(of flavored) raydemand.Amount {
	return w.uses(of.flavor, of.resource, func(string) bool { return true })
}
