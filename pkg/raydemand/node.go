package raydemand

import (
	"encoding/hex"
	"fmt"
	"time"
)

// NodeID is Ray's node id. The type has 28 bytes, because any other length kills a live GCS
// (docs/reference/facts.md#node-id-length).
type NodeID [28]byte

// ParseNodeID reads the raw bytes of the wire.
func ParseNodeID(raw []byte) (NodeID, error) {
	var id NodeID
	if len(raw) != len(id) {
		return id, fmt.Errorf("node id has %d bytes, want %d", len(raw), len(id))
	}
	copy(id[:], raw)
	return id, nil
}

// String returns the id in hex, as Ray's logs do.
func (id NodeID) String() string { return hex.EncodeToString(id[:]) }

// NodeStatus is the state that the GCS reports for a node.
type NodeStatus string

// The states of ray.rpc.autoscaler.NodeStatus.
const (
	Unspecified NodeStatus = "UNSPECIFIED"
	Running     NodeStatus = "RUNNING"
	Idle        NodeStatus = "IDLE"
	Draining    NodeStatus = "DRAINING"
	Dead        NodeStatus = "DEAD"
)

// Node is one Ray node as the GCS reports it.
type Node struct {
	ID NodeID
	// Instance is RAY_CLOUD_INSTANCE_ID, the pod's name under KubeRay. Group is RAY_NODE_TYPE_NAME, the worker
	// group's name, or "headgroup".
	Instance, Group string
	Head            bool
	Status          NodeStatus
	// Idle is how long the node has been idle; zero unless Status is Idle. It keeps growing when a raylet stops
	// answering, so it can suggest a drain but never proves that the node is idle.
	Idle             time.Duration
	Available, Total Bundle
	// Labels are Ray's node labels. PlacedLabels are the dynamic labels _PG_<hex> of placement groups with a bundle on
	// this node.
	Labels, PlacedLabels map[string]string
	IP                   string
	// Activity says why a busy node is busy, in Ray's words; ReadActivity reads it. It is stale on idle nodes.
	Activity []string
}

// State is one reading of a Ray cluster.
type State struct {
	// Session changes when the head starts a new Ray session, which invalidates every earlier observation.
	Session string
	// Version is the GCS's counter of readings. It restarts at 1 with the GCS and counts calls, not changes.
	Version int64
	// Nodes are the living nodes, and the dead ones that the GCS still lists.
	Nodes  []Node
	Demand Demand
	// Truncated reports that at least one raylet may have cut its report at 100 shapes, so more demand may be pending
	// (docs/reference/facts.md#truncated-reports).
	Truncated bool
	Findings  []Finding
	// Fingerprint is equal for readings of one head by one process that differ in nothing but Version and idle times;
	// zero if it is unknown.
	Fingerprint uint64
}

// SameGCS reports whether s and before come from the same GCS process. A restarted GCS has a new session or, with GCS
// fault tolerance, the same session and a version that starts again. Then its nodes and demand are unchanged, but
// request_resources of Ray's SDK is lost and the head's own node is a new one. Both states must be readings, before the
// earlier one. A restart remains undetected if other readers have raised the new counter past the old one meanwhile.
func (s State) SameGCS(before State) bool {
	return s.Session == before.Session && s.Version > before.Version
}

// Severity grades a Finding.
type Severity string

// Severities, worst first.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

// Finding is a problem that a person should know about and can correct. Code is stable; the texts are for people.
type Finding struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	// Object and Field say where the problem is, for example RayCluster ml/llm and
	// spec.workerGroupSpecs[1].minReplicas.
	Object string `json:"object,omitempty"`
	Field  string `json:"field,omitempty"`
	// Seen is the value found, Why its consequence, Fix what to do.
	Seen string `json:"seen,omitempty"`
	Why  string `json:"why,omitempty"`
	Fix  string `json:"fix,omitempty"`
}
