package nodepool

import (
	"cmp"
	"fmt"
)

// Kueue's marks, as version 0.18 reads and writes them.
const (
	// QueueLabel names the LocalQueue that admits an object.
	QueueLabel = "kueue.x-k8s.io/queue-name"
	// ElasticAnnotation asks Kueue for workload slices, and ElasticGate is what its webhook then puts into every pod
	// template. Kueue ignores the annotation where its feature gate ElasticJobsViaWorkloadSlices is off, so the gate
	// alone is a proof.
	ElasticAnnotation = "kueue.x-k8s.io/elastic-job"
	ElasticGate       = "kueue.x-k8s.io/elastic-job"
)

// Queue is Kueue's hold on a RayCluster. The zero value is a RayCluster that Kueue leaves alone.
type Queue struct {
	// Name is the LocalQueue; empty where Kueue's mark does not name it.
	Name string
	// Mark says where Kueue's mark was found, for example "label kueue.x-k8s.io/queue-name on RayJob train". Empty
	// means not queued.
	Mark string
	// Parent is the owner whose Workload holds the pods of the RayCluster; empty where the RayCluster has a Workload
	// of its own.
	Parent Owner
	// Unknown says why it is not known whether an owner is queued; empty where it is known.
	Unknown string
	// Elastic says that every pod template, the head's too, carries ElasticGate.
	Elastic bool
}

// Queued reports whether Kueue admits the pods of the RayCluster.
func (q Queue) Queued() bool { return q.Mark != "" }

// Refusal says why Heliostat does not scale a queued RayCluster, and the ways out.
func (q Queue) Refusal() string {
	it := cmp.Or(q.Parent.Kind, "RayCluster")
	subject := "it"
	if q.Parent.Kind != "" {
		subject = "its " + it
	}
	found := fmt.Sprintf("Kueue queues %s (queue %s, %s)", subject, cmp.Or(q.Name, "of unknown name"), q.Mark)
	without := fmt.Sprintf("create the %s again without the label %s to have Heliostat scale it", it, QueueLabel)
	if q.Elastic {
		return found + " as an elastic one, and Heliostat does not scale those yet" + q.gated() + "; " + without
	}
	return fmt.Sprintf("%s, and it is not elastic: %s; %s, or with the annotation %s: \"true\" %s", found,
		q.consequence(), without, ElasticAnnotation, q.elasticWay())
}

// consequence is what a change of replicas does in Kueue v0.18.
func (q Queue) consequence() string {
	if q.Parent.Kind != "" {
		return "Kueue does not see replicas of the RayCluster, so further workers run outside the quota"
	}
	return "when replicas change, Kueue restarts the whole RayCluster, head included"
}

// elasticWay says what an elastic one needs, and who scales it then.
func (q Queue) elasticWay() string {
	const gate = "while Kueue's feature gate ElasticJobsViaWorkloadSlices is on"
	switch q.Parent.Kind {
	case "":
		return gate + ", so that replicas can change without a restart; Heliostat does not do that yet"
	case "RayJob":
		return "and enableInTreeAutoscaling: true, " + gate + ", to have Ray's own autoscaler scale it"
	}
	return gate + "; Heliostat does not scale elastic ones yet"
}

// gated warns of what growth by anybody's hand leads to below an elastic parent.
func (q Queue) gated() string {
	if q.Parent.Kind == "" {
		return ""
	}
	return " (without enableInTreeAutoscaling new pods stay behind Kueue's gate)"
}
