package nodepool

import (
	"cmp"
	"fmt"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// Kueue's labels and annotations, as version 0.18 reads and writes them.
const (
	// QueueLabel names the LocalQueue that admits an object.
	QueueLabel = "kueue.x-k8s.io/queue-name"
	// ElasticAnnotation asks Kueue for workload slices. ElasticGate is what its webhook then adds to every pod
	// template. Kueue ignores the annotation if its feature gate ElasticJobsViaWorkloadSlices is off, so only the
	// scheduling gate proves it.
	ElasticAnnotation = "kueue.x-k8s.io/elastic-job"
	ElasticGate       = "kueue.x-k8s.io/elastic-job"
)

// Queue is Kueue's control over a RayCluster. The zero value is a RayCluster that Kueue does not queue.
type Queue struct {
	// Name is the LocalQueue; empty if Kueue's mark does not name it.
	Name string
	// Mark says where Kueue's mark was found, for example "label kueue.x-k8s.io/queue-name on RayJob train". Empty
	// means not queued.
	Mark string
	// Parent is the owner whose Workload has the pods of the RayCluster; empty if the RayCluster has its own Workload.
	Parent Owner
	// Followed says that Kueue follows replicas of a RayCluster with a Parent. Otherwise new pods would stay behind
	// ElasticGate, and Unfollowed says why, if that is known.
	Followed   bool
	Unfollowed string
	// Unknown says why it is unknown whether an owner is queued; empty if it is known.
	Unknown string
	// Elastic says that every pod template, including the head's, has ElasticGate.
	Elastic bool
	// Remote says that MultiKueue of another Kubernetes cluster keeps replicas equal to those there: Kueue 0.19 patches
	// an elastic copy back, whose flag enableInTreeAutoscaling it removes, so that the operator ends any worker.
	Remote bool
	// Quota is what Kueue says about the quota of the RayCluster; nil if nothing is known. It is shared and must not be
	// changed.
	Quota *Quota
}

// Queued reports whether Kueue admits the pods of the RayCluster.
func (q Queue) Queued() bool { return q.Mark != "" }

// Scalable reports whether replicas may change although Kueue queues the RayCluster: Kueue follows its replicas with a
// Workload that is elastic, and new pods wait behind ElasticGate. The gate alone does not prove it, because it
// stays in the templates when Kueue's feature gate is turned off; nor does the Workload alone, because new pods would
// then run without quota.
func (q Queue) Scalable() bool {
	return q.Queued() && q.Elastic && !q.Remote && (q.Parent.Kind == "" || q.Followed) &&
		q.Quota != nil && q.Quota.Elastic
}

// Refusal says why Heliostat does not scale a queued RayCluster, and what you can do; empty if it does.
func (q Queue) Refusal() string {
	if !q.Queued() || q.Scalable() {
		return ""
	}
	it := cmp.Or(q.Parent.Kind, "RayCluster")
	subject := "it"
	if q.Parent.Kind != "" {
		subject = "its " + it
	}
	found := fmt.Sprintf("Kueue queues %s (queue %s, %s)", subject, cmp.Or(q.Name, "of unknown name"), q.Mark)
	without := fmt.Sprintf("create the %s again without the label %s to have Heliostat scale it", it, QueueLabel)
	switch {
	case q.Elastic && q.Parent.Kind != "" && !q.Followed:
		return fmt.Sprintf("%s as an elastic one, and does not follow replicas of the RayCluster: %s; new pods would "+
			"stay behind Kueue's gate", found, cmp.Or(q.Unfollowed, "that has not been read yet"))
	case q.Elastic && q.Remote:
		return found + " as an elastic one, and MultiKueue sets replicas back to those in the Kubernetes cluster " +
			"that it comes from; change them there"
	case q.Elastic:
		return found + " as an elastic one, and " + q.unproven()
	}
	return fmt.Sprintf("%s, and it is not elastic: %s; %s, or with the annotation %s: \"true\" %s", found,
		q.consequence(), without, ElasticAnnotation, q.elasticWay())
}

// unproven says why a RayCluster with the gate in each template is not known to be elastic now.
func (q Queue) unproven() string {
	switch {
	case q.Quota == nil:
		return "this process does not read Workloads, so what Kueue grants is unknown; have `autoscaler serve` " +
			"scale it"
	case q.Quota.Unread != "":
		return "its Workloads are unknown: " + q.Quota.Unread + "; grant list and watch on workloads.kueue.x-k8s.io " +
			"as deploy/rbac.yaml does"
	case q.Quota.Present():
		return "its Workload is not, because Kueue's feature gate ElasticJobsViaWorkloadSlices is off or was off " +
			"when it was created; a change of replicas could restart the whole RayCluster, head included"
	}
	return "it has no unfinished Workload; Kueue has not looked at it yet, or cannot start it"
}

// consequence says what a change of replicas does in Kueue v0.18 and v0.19.
func (q Queue) consequence() string {
	if q.Parent.Kind != "" {
		return "Kueue does not see replicas of the RayCluster, so further workers run outside the quota"
	}
	return "when replicas change, Kueue restarts the whole RayCluster, head included"
}

// elasticWay says what an elastic RayCluster needs, and who then scales it.
func (q Queue) elasticWay() string {
	const gate = "while Kueue's feature gate ElasticJobsViaWorkloadSlices is on"
	if q.Parent.Kind == "" {
		return gate + ", so that Heliostat can scale it within its quota"
	}
	return "and enableInTreeAutoscaling: true, " + gate + ", so that Heliostat can scale it within its quota"
}

// Quota is what Kueue says about the quota of a RayCluster: its Workloads, and the ClusterQueue that admitted it. The
// zero value is a RayCluster of which nothing is known.
type Quota struct {
	// Unread says why the Workloads are unknown; empty if they are known.
	Unread string
	// Elastic says that an unfinished Workload of the RayCluster is elastic, so that Kueue takes a change of replicas
	// as a new slice of it. It is false while there is none.
	Elastic bool
	// Admitted says that a Workload has quota. Granted is then how many pods of each group it has quota for.
	Admitted bool
	Granted  map[string]int
	// Pending is the Workload that waits for quota; nil if none does.
	Pending *PendingWorkload
	// Bounds are what the pods of groups may have together. Unbounded says why the headroom is unknown; empty if it is
	// known.
	Bounds    []landing.Quota
	Unbounded string
}

// Present reports whether the RayCluster has an unfinished Workload.
func (q *Quota) Present() bool { return q.Admitted || q.Pending != nil }

// PendingWorkload is a Workload without quota.
type PendingWorkload struct {
	Name string
	// Version distinguishes what is requested: it changes with the number of pods.
	Version string
	// Pods are the pods that it requests, by group.
	Pods map[string]int
	// Message is Kueue's reason; empty while Kueue has not looked at the Workload. Judged says that it is about this
	// Version.
	Message string
	Judged  bool
	// Preempting says that Kueue evicts other work for it.
	Preempting bool
}
