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

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Conditions of a Workload (Kueue v0.18.3, apis/kueue/v1beta2/workload_types.go).
const (
	quotaReserved = "QuotaReserved"
	finished      = "Finished"
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
		// Admission is the quota that it has for each set of pods.
		Admission struct {
			ClusterQueue      string `json:"clusterQueue"`
			PodSetAssignments []struct {
				Name          string              `json:"name"`
				Flavors       map[string]string   `json:"flavors"`
				ResourceUsage corev1.ResourceList `json:"resourceUsage"`
				Count         int64               `json:"count"`
			} `json:"podSetAssignments"`
		} `json:"admission"`
	} `json:"status"`
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
	workloadObject
	of     nodepool.ClusterKey // as jobKey names it
	jobUID string
	// reserved says that it has quota since reservedAt.
	reserved   bool
	reservedAt time.Time
	// message is why it has none; judged says that Kueue has looked at this generation.
	message string
	judged  bool
	// finishedAt is zero until it is finished.
	finishedAt time.Time
}

// readWorkload converts a Workload as the API server writes it; nil if no object of ray.io owns it.
func readWorkload(object *unstructured.Unstructured) (*workload, error) {
	owner := metav1.GetControllerOf(object)
	if owner == nil || !strings.HasPrefix(owner.APIVersion, "ray.io/") {
		return nil, nil
	}
	w := &workload{of: jobKey(owner.Kind, object.GetNamespace(), owner.Name), jobUID: string(owner.UID)}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &w.workloadObject); err != nil {
		return nil, fmt.Errorf("reading Workload %s/%s: %w", object.GetNamespace(), object.GetName(), err)
	}
	w.Metadata.ManagedFields = nil
	if end := meta.FindStatusCondition(w.Status.Conditions, finished); end != nil &&
		end.Status == metav1.ConditionTrue {
		w.finishedAt = end.LastTransitionTime.Time
	}
	if quota := meta.FindStatusCondition(w.Status.Conditions, quotaReserved); quota != nil {
		w.reserved, w.reservedAt = quota.Status == metav1.ConditionTrue, quota.LastTransitionTime.Time
		w.judged = quota.ObservedGeneration >= w.Metadata.Generation && quota.Reason != pendingEvaluation
		w.message = quota.Message
	}
	return w, nil
}

// elastic reports whether Kueue lets it grow by slices.
func (w *workload) elastic() bool {
	return w.Metadata.Annotations[nodepool.ElasticAnnotation] == "true"
}

// pods counts the pods of a set.
func (w *workload) pods(set string) int64 {
	for _, each := range w.Spec.PodSets {
		if each.Name == set {
			return each.Count
		}
	}
	return 0
}

func (w *workload) unfinished() bool { return w.finishedAt.IsZero() }

// newer reports whether w came after another Workload of the job. Times have a resolution of one second.
func (w *workload) newer(other *workload) bool {
	if at, before := w.Metadata.CreationTimestamp, other.Metadata.CreationTimestamp; !at.Equal(&before) {
		return before.Before(&at)
	}
	return w.Metadata.Annotations[replaces] == other.Metadata.Namespace+"/"+other.Metadata.Name
}

// uses returns what the sets of pods that are counted have of a resource in a flavor. When a Workload shrinks, Kueue
// changes the counts in its spec and leaves its status as it is.
func (w *workload) uses(flavor, resource string, counted func(set string) bool) raydemand.Amount {
	var sum raydemand.Amount
	for _, a := range w.Status.Admission.PodSetAssignments {
		usage, known := a.ResourceUsage[corev1.ResourceName(resource)]
		if !known || a.Flavors[resource] != flavor || !counted(a.Name) {
			continue
		}
		amount := decode.Amount(usage)
		if now := w.pods(a.Name); a.Count > 0 && now < a.Count {
			amount = amount / raydemand.Amount(a.Count) * raydemand.Amount(now)
		}
		sum += amount
	}
	return sum
}

// each returns what one pod of a set has of a resource; 0 while it has no pods. Kueue counts the overhead of a
// RuntimeClass and what its configuration makes of resources, and nothing that the operator adds to a pod
// (v0.19.0, AdjustResources in pkg/workload/resources.go).
func (w *workload) each(set, resource string) raydemand.Amount {
	for _, a := range w.Status.Admission.PodSetAssignments {
		if usage := a.ResourceUsage[corev1.ResourceName(resource)]; a.Name == set && a.Count > 0 {
			return decode.Amount(usage) / raydemand.Amount(a.Count)
		}
	}
	return 0
}

// usesAll returns what all its sets of pods have of a resource in a flavor.
func (w *workload) usesAll(of flavored) raydemand.Amount {
	return w.uses(of.flavor, of.resource, func(string) bool { return true })
}
