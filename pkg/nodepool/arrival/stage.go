package arrival

// Stage is how far a starting worker has come. Its value is a stable code.
type Stage string

// The stages, in the order in which a worker passes them. A worker that finds room on an existing node passes none of
// those about nodes.
const (
	// Requested: replicas asks for the pod, and it does not exist yet.
	Requested Stage = "requested"
	// Gated: a scheduling gate holds the pod back, for example until Kueue grants quota.
	Gated Stage = "gated"
	// WaitsForNode: no node has room for it, and none is known to come.
	WaitsForNode Stage = "waits-for-node"
	// NodeRequested: a node autoscaler has asked for a machine, which it may not get.
	NodeRequested Stage = "node-requested"
	// NodeLaunched: the provider has started the machine.
	NodeLaunched Stage = "node-launched"
	// NodeRegistered: the Node object exists, and the node is not ready.
	NodeRegistered Stage = "node-registered"
	// NodeReady: the node is ready, and lacks a device or still has a startup taint.
	NodeReady Stage = "node-ready"
	// Bound: the pod has a node, and its kubelet has not begun with it.
	Bound Stage = "bound"
	// Starting: the kubelet pulls images or prepares the Ray container.
	Starting Stage = "starting"
	// JoiningRay: the Ray container runs, and Ray has not reported its node.
	JoiningRay Stage = "joining-ray"
)

// Stages lists all stages in order.
var Stages = []Stage{Requested, Gated, WaitsForNode, NodeRequested, NodeLaunched, NodeRegistered, NodeReady, Bound,
	Starting, JoiningRay}

// Text describes the stage of one pod.
func (s Stage) Text() string {
	switch s {
	case Requested:
		return "its pod does not exist yet"
	case Gated:
		return "a scheduling gate holds it back"
	case WaitsForNode:
		return "it waits for a node"
	case NodeRequested:
		return "a machine is requested for it"
	case NodeLaunched:
		return "its machine is launched"
	case NodeRegistered:
		return "its node has registered"
	case NodeReady:
		return "its node is ready, but not complete"
	case Bound:
		return "it is bound to a node"
	case Starting:
		return "its container is being created"
	case JoiningRay:
		return "it is joining Ray"
	}
	return string(s)
}
