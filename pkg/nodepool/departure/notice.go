// Package departure reads the signs that a worker's machine is about to go: taints, conditions and objects that are
// being deleted. It says what each sign means, and which of several counts. It must not know Kubernetes objects,
// clusters or workers, and it decides nothing: the planner, addon/departures and controller/scaledown act on a Notice.
package departure

import (
	"fmt"
	"strings"
	"time"
)

// Sign is the stable code of a sign.
type Sign string

// The signs. signs.go has one table of the taints and conditions behind them, with their sources.
const (
	NodeGone            Sign = "node-gone"
	PodTerminating      Sign = "pod-terminating"
	PodDisrupted        Sign = "pod-disrupted"
	NodeDeleting        Sign = "node-deleting"
	NodeClaimDeleting   Sign = "nodeclaim-deleting"
	KarpenterDisrupted  Sign = "karpenter-disrupted"
	AutoscalerDeletes   Sign = "cluster-autoscaler-deletes"
	AutoscalerCandidate Sign = "cluster-autoscaler-candidate"
	OutOfService        Sign = "out-of-service"
	KubeletShutdown     Sign = "kubelet-shutdown"
	CloudShutdown       Sign = "cloud-shutdown"
	AWSSpot             Sign = "aws-spot"
	AWSMaintenance      Sign = "aws-maintenance"
	AWSScaling          Sign = "aws-scaling"
	AWSRebalance        Sign = "aws-rebalance"
	GKETermination      Sign = "gke-termination"
	AKSScheduledEvent   Sign = "aks-scheduled-event"
	AKSDrain            Sign = "aks-drain"
	Cordoned            Sign = "cordoned"
	// GivenBack: somebody asked for the worker's GPUs (package giveback). Its machine stays.
	GivenBack Sign = "given-back"
	// BadGPU: a GPU of the worker is bad (table in package sharing). Its machine stays.
	BadGPU Sign = "bad-gpu"
)

// Notice says that the machine of a worker is about to go. Its JSON form is part of snapshots.
type Notice struct {
	Sign Sign `json:"sign"`
	// Message names what was seen: "taint karpenter.sh/disrupted".
	Message string `json:"message,omitempty"`
	// Since is when the sign appeared, as far as the object says it; zero if unknown.
	Since time.Time `json:"since,omitzero"`
	// Deadline is when the machine or the pod ends at the latest; zero if unknown.
	Deadline time.Time `json:"deadline,omitzero"`
	// Certain: the machine goes. Otherwise the sign is a warning that may be taken back, and only explains.
	Certain bool `json:"certain,omitempty"`
	// Stays is why a worker with a bad GPU is not drained; empty if it is.
	Stays string `json:"stays,omitempty"`
	// Besides is the warning of another sign that a certain bad GPU hides; nil if there is none.
	Besides *Notice `json:"-"`
	// Reclaimed: the cloud takes the machine back, so others like it may be short for a while.
	Reclaimed bool `json:"reclaimed,omitempty"`
}

// Of returns a Notice with what the table says of the sign.
func Of(sign Sign, message string) *Notice {
	return &Notice{Sign: sign, Message: message, Certain: sign != AutoscalerCandidate && sign != AWSRebalance &&
		sign != Cordoned, Reclaimed: sign == AWSSpot}
}

// Until adds a deadline.
func (n *Notice) Until(deadline time.Time) *Notice {
	n.Deadline = deadline
	return n
}

// BadGPULasts is how long the sign of a bad GPU must have been there before workers are drained for it, unless work
// there cannot continue. A sign that comes and goes starts again each time. TooNew is why a worker stays until then.
const (
	BadGPULasts = time.Minute
	TooNew      = "the sign must last for 1m0s"
)

// Stay lets the notice of a bad GPU only explain, and says why. A warning that it hides comes first.
func (n *Notice) Stay(why string) {
	if n.Besides != nil {
		*n = *n.Besides.with(n)
		return
	}
	n.Certain, n.Stays = false, why
}

// with returns the notice with what is known of a bad GPU of the same worker.
func (n *Notice) with(bad *Notice) *Notice {
	both := *n
	if !strings.Contains(n.Message, bad.Message) {
		both.Message += "; bad GPU: " + bad.Message
	}
	return &both
}

// Why returns what was seen and, of a bad GPU, why the worker stays.
func (n *Notice) Why() string {
	if n.Stays == "" {
		return n.Message
	}
	return n.Message + "; the worker stays: " + n.Stays
}

// Ends reports whether somebody else may end the worker.
func (n *Notice) Ends() bool { return n != nil && (n.Certain || n.Sign != BadGPU) }

// AsWarning returns a copy that only explains.
func (n *Notice) AsWarning() *Notice {
	warning := *n
	warning.Certain = false
	return &warning
}

// Earlier returns what two signs of the same worker say together; either may be nil. A certain sign comes before a
// warning, any other sign before a bad GPU, and the first before the second. The earliest deadline counts, but never
// that of a warning for a certain sign. The arguments do not change.
func Earlier(a, b *Notice) *Notice {
	switch {
	case b == nil:
		return a
	case a == nil, b.Certain && !a.Certain, b.Certain == a.Certain && a.Sign == BadGPU && b.Sign != BadGPU:
		a, b = b, a
	}
	if b == nil || b.Certain != a.Certain && (a.Sign != BadGPU || b.Sign == BadGPU) {
		return a
	}
	both := *a
	switch {
	case b.Certain != a.Certain:
		both.Besides = Earlier(a.Besides, b)
		return &both
	case b.Sign == BadGPU && a.Sign != BadGPU:
		both = *a.with(b)
	}
	if both.Deadline.IsZero() || !b.Deadline.IsZero() && b.Deadline.Before(both.Deadline) {
		both.Deadline = b.Deadline
	}
	both.Reclaimed = both.Reclaimed || b.Reclaimed
	return &both
}

// Text says what happens to a machine: "node ip-1 goes at 12:03:10: taint karpenter.sh/disrupted". Without a name of a
// node it says "its machine".
func (n *Notice) Text(node string) string {
	name := "its machine"
	if node != "" {
		name = "node " + node
	}
	if n.Sign == GivenBack {
		name = "the worker"
	}
	switch {
	case n.Sign == BadGPU:
		return "bad GPU: " + n.Why()
	case !n.Certain:
		return fmt.Sprintf("%s may go: %s", name, n.Message)
	case n.Deadline.IsZero():
		return fmt.Sprintf("%s goes: %s", name, n.Message)
	}
	return fmt.Sprintf("%s goes at %s: %s", name, n.Deadline.UTC().Format("15:04:05 MST"), n.Message)
}
