package nodepool

import (
	"cmp"
	"fmt"
)

// Kueue's marks, as version 0.18 reads and writes them.
const (
	// QueueLabel names the LocalQueue that admits an object.
	QueueLabel = "kueue.x-k8s.io/queue-name"
	// ElasticAnnotation asks Kueue for workload slices, and ElasticGate is what its webhook then puts into every pod template. Kueue ignores
	// the annotation where its feature gate ElasticJobsViaWorkloadSlices is off, so the gate alone is a proof.
	ElasticAnnotation = "kueue.x-k8s.io/elastic-job"
	ElasticGate       = "kueue.x-k8s.io/elastic-job"
)

// Queue is Kueue's hold on a RayCluster. The zero value is a RayCluster that Kueue leaves alone.
type Queue struct {
	// Name is the LocalQueue; empty where Kueue's mark does not name it.
	Name string
	// Mark says where Kueue's mark was found, for example "label kueue.x-k8s.io/queue-name on RayJob train". Empty means not queued.
	Mark string
	// Parent is the owner whose Workload holds the pods of the RayCluster; empty where the RayCluster has a Workload of its own.
	Parent Owner
	// Elastic says that every pod template, the head's too, carries ElasticGate.
	Elastic bool
}

// Queued reports whether Kueue admits the pods of the RayCluster.
func (q Queue) Queued() bool { return q.Mark != "" }

// Refusal says why Heliostat does not scale a queued RayCluster, and the ways out.
func (q Queue) Refusal() string {
	queue := fmt.Sprintf("queue %s, %s", cmp.Or(q.Name, "of unknown name"), q.Mark)
	object, consequence := "RayCluster", "any change of replicas restarts the whole RayCluster, head included"
	if q.Parent.Kind != "" {
		object = q.Parent.Kind
		consequence = "Kueue does not see replicas of its RayCluster, so further workers run outside the quota"
	}
	if q.Elastic && q.Parent.Kind != "" {
		return fmt.Sprintf("Kueue queues its %s as an elastic one (%s); Heliostat does not scale elastic workloads yet, and without "+
			"enableInTreeAutoscaling new pods stay behind Kueue's gate; to let Heliostat scale it, create the %[1]s again without the label %[3]s",
			object, queue, QueueLabel)
	}
	if q.Elastic {
		return fmt.Sprintf("Kueue queues it as an elastic RayCluster (%s); Heliostat does not scale elastic RayClusters yet; "+
			"to let Heliostat scale it, create it again without the label %s", queue, QueueLabel)
	}
	return fmt.Sprintf("Kueue queues it (%s) and it is not elastic, so %s; either create the %s again without the label %s, or create it with "+
		"the annotation %s: \"true\" while Kueue's feature gate ElasticJobsViaWorkloadSlices is on, so that replicas can change without a restart "+
		"(Heliostat does not scale elastic ones yet)", queue, consequence, object, QueueLabel, ElasticAnnotation)
}
