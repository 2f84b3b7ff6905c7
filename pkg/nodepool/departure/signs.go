package departure

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Taints are the taints that are signs, the surest first. docs/reference/departures.md shows the table with sources.
var Taints = []Taint{
	{"node.kubernetes.io/out-of-service", OutOfService, false},
	{"node.cloudprovider.kubernetes.io/shutdown", CloudShutdown, false},
	{"aws-node-termination-handler/spot-itn", AWSSpot, false},
	{"aws-node-termination-handler/scheduled-maintenance", AWSMaintenance, false},
	{"aws-node-termination-handler/asg-lifecycle-termination", AWSScaling, false},
	{"cloud.google.com/impending-node-termination", GKETermination, false},
	{"remediator.kubernetes.azure.com/unschedulable", AKSDrain, false},
	{"remediator.aks.microsoft.com/unschedulable", AKSDrain, false},
	{"karpenter.sh/disrupted", KarpenterDisrupted, false},
	{"karpenter.sh/disruption", KarpenterDisrupted, false}, // before v1
	{"ToBeDeletedByClusterAutoscaler", AutoscalerDeletes, true},
	{"DeletionCandidateOfClusterAutoscaler", AutoscalerCandidate, true},
	{"aws-node-termination-handler/rebalance-recommendation", AWSRebalance, false},
}

// Taint is one row of Taints.
type Taint struct {
	Key  string
	Sign Sign
	// stamped: the value is when the taint was set, in seconds since 1970.
	stamped bool
}

// SpotNotice is how long before it takes a spot machine back AWS says so ("Spot Instance interruption notices").
const SpotNotice = 2 * time.Minute

// OfTaint returns what a taint says, or nil.
func OfTaint(key, value string) *Notice {
	at := slices.IndexFunc(Taints, func(t Taint) bool { return t.Key == key })
	if at < 0 {
		return nil
	}
	notice := Of(Taints[at].Sign, "taint "+key)
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil && Taints[at].stamped && seconds > 0 {
		notice.Since = time.Unix(seconds, 0).UTC()
	}
	return notice
}

// shuttingDown is what the kubelet writes into the condition Ready while it shuts the machine down gracefully
// (kubernetes, pkg/kubelet/nodeshutdown, ShutdownStatus).
const shuttingDown = "node is shutting down"

// aksEvents are the scheduled events of a machine in Azure, by their names in conditions and messages. Those that are
// not here, a freeze and a reboot, leave the machine in place.
var aksEvents = []string{"Preempt", "Terminate", "Redeploy"}

// IsCondition reports whether OfCondition reads conditions of this type.
func IsCondition(kind string) bool {
	return kind == "Ready" || kind == "VMEventScheduled" ||
		slices.ContainsFunc(aksEvents, func(event string) bool { return kind == event+"Scheduled" })
}

// OfCondition returns what a condition of a node says, or nil. isTrue is its status.
func OfCondition(kind string, isTrue bool, reason, message string) *Notice {
	switch {
	case kind == "Ready":
		if !isTrue && strings.Contains(message, shuttingDown) {
			return Of(KubeletShutdown, "the kubelet shuts the machine down")
		}
		return nil
	case !isTrue || !IsCondition(kind):
		return nil
	}
	for _, event := range aksEvents {
		if kind == event+"Scheduled" || reason == event+"Scheduled" || strings.HasPrefix(message, event+" ") {
			notice := Of(AKSScheduledEvent, "condition "+kind+": "+event)
			notice.Deadline, notice.Reclaimed = aksTime(message), event == "Preempt"
			return notice
		}
	}
	return nil
}

// aksTime returns the time in a message such as "Preempt Scheduled: Mon, 02 Mar 2026 19:01:45 GMT"; zero if there is
// none.
func aksTime(message string) time.Time {
	_, text, _ := strings.Cut(message, ": ")
	at, err := time.Parse(time.RFC1123, strings.TrimSpace(text))
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}
