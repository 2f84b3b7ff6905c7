package observe

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Codes of the loop's own findings.
const (
	// FindingRandomDeletes: without in-tree autoscaling the operator deletes any surplus pod, even a busy one, unless
	// it is Heliostat that lowers replicas and names the pods (docs/reference/facts.md#operator-surplus).
	FindingRandomDeletes = "surplus-deleted-at-random"
	// FindingOrphanNode: no pod matches a living Ray node by instance id or address.
	FindingOrphanNode = "ray-node-without-pod"
	// FindingHeadMissing: the GCS does not list its own head.
	FindingHeadMissing = "head-not-listed"
	// FindingGated: scheduling gates hold pods back.
	FindingGated = "pods-gated"
	// FindingGangHeld: a gang scheduler holds pods back.
	FindingGangHeld = "pods-held-by-gang"
)

// Findings adds the findings about the view to all.
func Findings(v View, all []raydemand.Finding) []raydemand.Finding {
	object := "RayCluster " + v.Cluster.Key.String()
	all = append(all, gatedFindings(v)...)
	if v.Live() {
		all = append(all, orphanFindings(v)...)
	}
	if v.Live() && v.Head == nil {
		all = append(all, raydemand.Finding{Code: FindingHeadMissing, Severity: raydemand.Warning, Object: object,
			Why: "the list of Ray nodes is incomplete, so no worker is removed",
			Fix: "wait for the head's raylet, or check its log"})
	}
	if v.Mode != nodepool.Managed && !v.Cluster.InTreeAutoscaling && !v.Cluster.Unreadable {
		all = append(all, raydemand.Finding{
			Code:     FindingRandomDeletes,
			Severity: raydemand.Info,
			Object:   object,
			Field:    "spec.enableInTreeAutoscaling",
			Seen:     "false",
			Why: "when there are more pods than replicas, the operator deletes any of them, even busy ones; " +
				"only a RayCluster that Heliostat manages gets the pods named",
			Fix: "do not lower replicas or maxReplicas without workersToDelete, or let Heliostat manage the " +
				"RayCluster",
		})
	}
	return all
}

// gatedFindings lists the groups whose pods wait behind scheduling gates, or for their gang. Such pods count as on
// their way, and their group does not fail however long they wait.
func gatedFindings(v View) []raydemand.Finding {
	gated, held, says := map[string]int{}, map[string]int{}, map[string]string{}
	for _, m := range v.Members {
		if m.Gated && m.Counted() {
			gated[m.Group]++
		}
		if m.GangHeld != "" && m.Counted() {
			held[m.Group]++
			says[m.Group] = m.GangHeld
		}
	}
	why := "a scheduling gate holds them back, as Kueue does until quota is available; the demand they are for keeps " +
		"waiting"
	if q := v.Cluster.Queue.Quota; q != nil && q.Pending != nil && q.Pending.Message != "" {
		why += ". Kueue: " + q.Pending.Message
	}
	fix := "free quota, or lower the group's maxReplicas to what the quota allows"
	if q := v.Cluster.Queue; q.Elastic && !q.Queued() {
		why = "the pod templates have Kueue's gate, and the RayCluster has no label " + nodepool.QueueLabel +
			", so nothing ever removes it"
		fix = "remove the gates: `autoscaler doctor` prints the patch (elastic-without-queue)"
	}
	var all []raydemand.Finding
	add := func(group string, pods int, f raydemand.Finding) {
		f.Object = fmt.Sprintf("worker group %s of RayCluster %s", group, v.Cluster.Key)
		f.Seen = fmt.Sprintf("%d pods", pods)
		all = append(all, f)
	}
	for _, group := range slices.Sorted(maps.Keys(gated)) {
		add(group, gated[group], raydemand.Finding{Code: FindingGated, Severity: raydemand.Info,
			Field: "spec.schedulingGates", Why: why, Fix: fix})
	}
	for _, group := range slices.Sorted(maps.Keys(held)) {
		add(group, held[group], raydemand.Finding{Code: FindingGangHeld, Severity: raydemand.Warning,
			Field: "status.conditions",
			Why: "the gang scheduler starts them only with the rest of their PodGroup, also if there are nodes for " +
				"them. It says: " + says[group],
			Fix: "make room for the pods of the gang that do not fit, or make it smaller" +
				smallerGang(v.Cluster.Key, says[group])})
	}
	return all
}

// smallerGang returns what makes the gang of a RayCluster smaller (docs/reference/facts.md#gang-floor), by the name of
// the scheduler that holds its pods.
func smallerGang(key nodepool.ClusterKey, says string) string {
	switch scheduler, _, _ := strings.Cut(says, ": "); scheduler {
	case "volcano":
		return ": with enableInTreeAutoscaling: true, minMember of its PodGroup is minReplicas"
	case "scheduler-plugins-scheduler": // the operator writes it once
		return ": kubectl patch podgroups.scheduling.x-k8s.io -n " + key.Namespace + " " + key.Name +
			" --type merge -p '{\"spec\":{\"minMember\":1}}'"
	case "kai-scheduler":
		return ": with minReplicas of at least 1 in each group, minMember of its PodGroup is minReplicas"
	}
	return ": lower the minimum of its PodGroup"
}

func orphanFindings(v View) []raydemand.Finding {
	var all []raydemand.Finding
	for _, n := range Orphans(v.Cluster, v.State.Nodes) {
		all = append(all, raydemand.Finding{
			Code:     FindingOrphanNode,
			Severity: raydemand.Warning,
			Object:   "RayCluster " + v.Cluster.Key.String(),
			Field:    "RAY_CLOUD_INSTANCE_ID",
			Seen:     fmt.Sprintf("%q at %s", n.Instance, n.IP),
			Why: "no pod matches this living Ray node by instance id or address, so pods that seem not to have " +
				"joined are kept",
			Fix: "do not set RAY_CLOUD_INSTANCE_ID in the pod template; KubeRay sets it. A node started outside " +
				"Kubernetes keeps this finding",
		})
	}
	return all
}
