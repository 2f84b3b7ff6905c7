// Package nodepool is the vocabulary of where Ray can run: Cluster, WorkerGroup, Worker, Target. It must not read
// Kubernetes, a clock or files: package kube converts Kubernetes objects to these values and writes decisions back.
package nodepool

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Mode says what Heliostat may do with a RayCluster (annotation heliostat.dev/mode of the RayCluster or of its
// namespace).
type Mode string

// Managed plans and writes. Shadow only plans and reports. Off does neither.
const (
	Managed Mode = "managed"
	Shadow  Mode = "shadow"
	Off     Mode = "off"
)

// Valid reports whether m is one of the three modes.
func (m Mode) Valid() bool { return m == Managed || m == Shadow || m == Off }

// FieldManager is the name under which Heliostat writes to the API server.
const FieldManager = "heliostat"

// Autoscaler says which autoscaler runs in the head pod's containers, as seen in the pod and not in the spec.
type Autoscaler string

// NoAutoscaler: no sidecar, or one that does nothing. RaySidecar: Ray's own Python autoscaler. OurSidecar: Heliostat as
// the sidecar. UnknownSidecar: a container that may be any of these.
const (
	NoAutoscaler   Autoscaler = ""
	RaySidecar     Autoscaler = "ray"
	OurSidecar     Autoscaler = "heliostat"
	UnknownSidecar Autoscaler = "unknown"
)

// Owner is the RayJob or RayService that owns the RayCluster's spec; empty if a person does.
type Owner struct {
	Kind, Name, UID string
}

// Head is the head pod and how to reach its GCS.
type Head struct {
	Pod, PodUID string
	// Node is the name of the pod's node; empty until the pod is scheduled.
	Node string
	// Restarts counts restarts of the Ray container; together with PodUID it distinguishes a new GCS from an old one.
	Restarts int32
	// IP and GCSPort are the GCS's address; IP is empty while the head has none.
	IP      string
	GCSPort int32
	Ready   bool
	// ClosedBy says why only pods of the RayCluster may call the GCS (spec.networkPolicy); empty if others may too.
	ClosedBy string
	// Sidecar is the autoscaler that runs beside the head.
	Sidecar Autoscaler
	// ServiceFQDN is the head service's name, which is the TLS server name.
	ServiceFQDN string
	// Priority is the value of the pod's PriorityClass, which stands for the whole RayCluster; 0 without one.
	Priority int32
	Guard    Guard
	// Shape is what the head group's template requests; nil if there is no pod. It is shared and must not be changed.
	Shape *landing.PodShape
	// Resources and Labels are what its Ray node has by the manifest in a file; nil in a live cluster, whose GCS says
	// it.
	Resources raydemand.Bundle
	Labels    map[string]string
}

// Auth says how a client authenticates with the GCS.
type Auth struct {
	// TokenSecret and TokenKey name the Secret with Ray's token; empty without token authentication.
	TokenSecret, TokenKey string
	// Token is a literal token from the head container's environment, used if no Secret is named.
	Token string `json:"-"`
	// TLSSecret names the Secret with tls.crt, tls.key and ca.crt; empty without TLS.
	TLSSecret string
	// Required says that the GCS requires a token. If there is no Secret, literal token or KubernetesToken, a finding
	// reports it.
	Required bool
	// KubernetesToken says that the GCS asks the API server to identify the caller, who sends a ServiceAccount's token.
	KubernetesToken bool
}

// Cluster is one RayCluster and its pods at one moment.
type Cluster struct {
	Key ClusterKey
	UID string
	// CreatedAt is when the object was created; zero if unknown.
	CreatedAt time.Time
	// ResourceVersion and Generation are those of the object that was read; ObservedGeneration is the one that the
	// operator has seen.
	ResourceVersion                string
	Generation, ObservedGeneration int64

	// Mode is the annotation's value, or empty if it is not set. NamespaceMode is that of the namespace, or empty; it
	// is read only if Mode is empty.
	Mode, NamespaceMode Mode
	// ModeInvalid is the value, in quotes, of the annotation that sets one of them, if it is not a mode. The mode is
	// then Shadow.
	ModeInvalid string
	// NamespaceUnknown says why the namespace's mode is unknown; empty if it is known, or if Mode is set.
	NamespaceUnknown string
	Freeze           bool
	// Isolation is the isolation that the cluster's work requires on GPUs, by the cluster's annotation or its
	// namespace's; empty means any.
	Isolation RequiredIsolation
	// Suspended, Deleting and ManagedElsewhere (spec.managedBy another controller) each forbid writes.
	Suspended, Deleting, ManagedElsewhere bool
	Owner                                 Owner
	// Queue is Kueue's control over the RayCluster; nothing is written to the spec of one that Queue refuses.
	Queue Queue
	// ScaledBy is the field manager that last wrote the worker groups; empty if the object does not say.
	ScaledBy   string
	RayVersion string
	// UpgradeStrategy is spec.upgradeStrategy.type: Recreate, None, or empty. Under Recreate the operator deletes all
	// pods of the cluster when anything except the scale changes.
	UpgradeStrategy string
	// InTreeAutoscaling is spec.enableInTreeAutoscaling. Without it the operator deletes arbitrary surplus pods.
	InTreeAutoscaling bool
	// IdleTimeout applies to groups that do not set one (Ray's default: 60 s).
	IdleTimeout   time.Duration
	UpscalingMode string

	Head   Head
	Auth   Auth
	Groups []WorkerGroup
	// Workers are the worker pods, including those of unknown groups and those that are being deleted.
	Workers []Worker
	// RequestResources is the REST request stored in the annotation heliostat.dev/resource-requests.
	RequestResources []raydemand.Request
	// RequestedSince is when it was first requested; zero if unknown.
	RequestedSince time.Time
	// Owned are the owned requests for this RayCluster by name, including expired ones. It is shared and must not be
	// changed.
	Owned []OwnedRequest
	// OwnedUnknown says why Owned may be incomplete, or is empty. Meanwhile no capacity may be removed.
	OwnedUnknown string
	// Consolidate says which work may move so that workers can leave (annotation heliostat.dev/consolidate); empty and
	// none move nothing.
	Consolidate Consolidate
	// NamespaceQuotas are what ResourceQuotas of the namespace leave for the workers.
	NamespaceQuotas []landing.Quota
	// GiveBack is what the RayCluster gives back (annotation heliostat.dev/give-back); nil if nothing. It is shared and
	// must not be changed.
	GiveBack *giveback.Reservation
	// GiveBackOver is a reservation that has ended and whose annotation is still there. Nothing follows from it.
	GiveBackOver *giveback.Reservation
	// Reclaimable: RayClusters of higher priority may take GPUs from it (annotation heliostat.dev/reclaimable).
	// Reclaimed is what was taken (annotation heliostat.dev/reclaimed); it is shared and must not be changed.
	Reclaimable bool
	Reclaimed   []giveback.Taking
	// Policy is the capacity policy (annotation heliostat.dev/capacity-policy); nil if there is none. It is shared and
	// must not be changed.
	Policy *capacity.Written
	// OwnedBy is the kind and the name of the first object that owns the RayCluster; empty if none does.
	OwnedBy string
	// IdleSince is since when the RayCluster has had no work, if Heliostat has suspended it and nobody has changed its
	// spec since; else zero.
	IdleSince time.Time
	Findings  []raydemand.Finding
	// Unreadable says that the object could not be read well enough to write to it.
	Unreadable bool
	// ProvisionersSeen says that the Events of node autoscalers are read and that one has reported about some pod
	// before. Then lasting silence about a pod means that no node will be added for it. An autoscaler whose Events are
	// not recognized is silent too.
	ProvisionersSeen bool
	// NodeClaims says whether Karpenter adds nodes here and whether its NodeClaims are read.
	NodeClaims NodeClaimsState
	// Pools are the node pools of the whole Kubernetes cluster, by name; nil while nodes are unknown. It is shared and
	// must not be changed.
	Pools []landing.Room
	// Places are where pods of the groups may run; nil while nodes are unknown. They are shared and must not be
	// changed.
	Places []landing.Place
	// Stock is what Places was made of; nil while nodes are unknown.
	Stock *landing.Nodes
	// Promised are the pods of other RayClusters that come before its own on the same nodes.
	Promised []*Promise
	// Provisioning are the RayCluster's ProvisioningRequests; nil if this process uses none. It is shared and must not
	// be changed.
	Provisioning *Provisioning
	// Buffers are the RayCluster's CapacityBuffers; nil if this process makes none. It is shared and must not be
	// changed.
	Buffers *Buffers
	// Refused says that the operator refuses the spec (Event InvalidRayClusterSpec): until the spec is corrected, no
	// write to any group has an effect. A finding says why.
	Refused bool
}

// NodeClaimsState says whether Karpenter's NodeClaims are known.
type NodeClaimsState string

// NoNodeClaims: the kind does not exist, or nothing is known yet. NodeClaimsRead: all are read. NodeClaimsForbidden:
// they exist, but Heliostat may not read them.
const (
	NoNodeClaims        NodeClaimsState = ""
	NodeClaimsRead      NodeClaimsState = "read"
	NodeClaimsForbidden NodeClaimsState = "unread"
)

// Unknown returns which wishes of users are unknown, so that no capacity may be removed; empty if all are known.
func (c *Cluster) Unknown() string {
	if c.OwnedUnknown != "" {
		return "the ResourceRequests are unknown: " + c.OwnedUnknown
	}
	return ""
}

// Writable returns nil, or an error that wraps ErrReadOnly and says why the RayCluster must not be written to.
func (c *Cluster) Writable() error {
	for _, reason := range []struct {
		holds bool
		why   string
	}{
		{c.Unreadable, "it cannot be read well enough"},
		{c.Freeze, "it is frozen (annotation heliostat.dev/freeze)"},
		{c.Deleting, "it is being deleted"},
		{c.Suspended, "it is suspended (spec.suspend)"},
		{c.ManagedElsewhere, "another controller manages it (spec.managedBy)"},
		{c.Queue.Refusal() != "", c.Queue.Refusal()},
		{c.Queue.Unknown != "", c.Queue.Unknown},
	} {
		if reason.holds {
			return fmt.Errorf("%w: %s: %s", ErrReadOnly, c.Key, reason.why)
		}
	}
	return nil
}

// Group returns the group with that name.
func (c *Cluster) Group(name string) (*WorkerGroup, bool) {
	for i := range c.Groups {
		if c.Groups[i].Name == name {
			return &c.Groups[i], true
		}
	}
	return nil, false
}

// WorkerGroup is one entry of spec.workerGroupSpecs.
type WorkerGroup struct {
	// Index is the entry's position; a patch addresses it by index and tests the name.
	Index int
	Name  string
	// Resources are what `ray start` on a new pod will report, in Ray's units
	// (docs/reference/facts.md#flags-of-ray-start).
	Resources raydemand.Bundle
	Labels    map[string]string
	// LabelSources say where Ray takes its own labels from. Announces is what is known about the labels and the
	// accelerator type of new pods beyond Labels and Resources.
	LabelSources map[string]landing.LabelSource
	Announces    []landing.Announced
	// Replicas, Min and Max count replicas; a replica has NumOfHosts pods.
	Replicas, Min, Max, NumOfHosts int
	// IdleTimeout overrides the cluster's; nil if the group sets none.
	IdleTimeout *time.Duration
	Priority    int
	// Price is the price of one pod per hour, in any one currency; nil if unknown.
	Price     *float64
	Suspended bool
	// ScaleGates are the names in scaleStrategy.scaleGate: while there is one, another controller, such as Kueue, keeps
	// the group from growing. They belong to those controllers.
	ScaleGates []string
	// WorkersToDelete is the stored list.
	WorkersToDelete []string
	// Broken says that the group cannot be planned, for example because min > max; a finding says why.
	Broken bool
	// Pod is what the template says about where its pods fit. It is shared and must not be changed.
	Pod landing.PodShape
	// Unstated are the containers without a value of limits.cpu, limits.memory, requests.cpu or requests.memory, by
	// that: a ResourceQuota of it refuses the pods. It is shared and must not be changed.
	Unstated map[string][]string
	// Kind is what one pod takes of Places; nil while nodes are unknown.
	Kind *landing.Pod
	// Landing says where a pod can run, and why none can, without Pods; nil while the nodes are unknown.
	Landing *landing.Answer
	// Slices describe the GPUs of one pod: by the nodes where it fits, or, while those are unknown, by its template.
	Slices []landing.Slice
	// GPUs is what the spec says about the GPUs of one worker. Reported is what the nodes say; nil while they are
	// unknown.
	GPUs     GPUSpec
	Reported *ReportedGPUs
	// PoolPods are the pools where a pod of the group fits, by name; nil while nodes are unknown.
	PoolPods []landing.PoolPods
	// Bound is the number of the group's pods that are bound to a known node and have neither failed nor are being
	// deleted. They are part of what such a node holds (landing.Node.Use).
	Bound int64
	// Incoming is how many of the group's pods without a node fit on the nodes of NodeClaims that are on their way.
	Incoming landing.Incoming
	// Provisions says that all nodes of a gang are to be asked for at once (annotation
	// heliostat.dev/provisioning-request).
	Provisions bool
	// NumGPUsSync says whether Heliostat may write the number of GPUs that the device plugin reports into the spec
	// (annotation heliostat.dev/num-gpus-sync).
	NumGPUsSync SyncMode
}

// Goal is how many replicas the operator keeps: Replicas within Min and Max.
func (g WorkerGroup) Goal() int { return max(g.Min, min(g.Replicas, g.Max)) }

// CountBound counts a pod of the group on a node. On a cordoned node, the pod is also part of what the pool holds.
func (g *WorkerGroup) CountBound(node *landing.Node) {
	g.Bound++
	for i := range g.PoolPods {
		if pods := &g.PoolPods[i]; pods.Pool == node.Pool {
			pods.Bound++
			if node.Unschedulable {
				pods.Holds++
			}
		}
	}
}

// Worker is one worker pod.
type Worker struct {
	Pod, UID, Group string
	// Replica is the label ray.io/worker-group-replica-name of a multi-host group, otherwise empty.
	Replica string
	IP      string
	// Node is the name of the pod's node; empty until the pod is scheduled. Pool is the node's pool, empty if unknown.
	Node, Pool string
	// Going is what says that the pod or its machine is about to go, or nil. All hosts of a multi-host replica go with
	// the first one.
	Going *departure.Notice
	// GPUs are the GPUs that the pod has, and whether each is healthy, by UUID or by driver, pool and name of the
	// device; nil if neither its status nor an annotation names them.
	GPUs map[string]bool
	// Grace is how long the pod may take to end after an eviction.
	Grace time.Duration
	// Counted says that what pods take of the pod's node includes the pod. That may be later than Node is known, and
	// even later than the pod joins Ray: until then, Uncounted is set. Neither is set if the node is unknown.
	Counted, Uncounted bool
	// NodeGone says that the pod's Node object no longer exists, so its machine is dead.
	NodeGone bool
	// Terminating: the pod has a deletionTimestamp. Failed: its phase is Failed or Succeeded, and the operator will
	// replace it.
	Terminating, Failed bool
	// Running: the Ray container runs. Ready: the pod is ready.
	Running, Ready bool
	// Returned says that workersToDelete names the pod, but a Ray node has started in it since or is starting, so the
	// name is to be removed from the list.
	Returned bool
	// Gated says that a scheduling gate holds the pod back, for example for quota, so no node is needed yet.
	Gated bool
	// NodePromised says that the latest message of a node autoscaler is that a node is being added. ByKarpenter: that
	// message is from Karpenter, which then tries again, perhaps with another NodePool, without reporting that on the
	// pod.
	NodePromised, ByKarpenter bool
	// RefusedAfterLaunch says that Karpenter refuses the pod although it requested a machine for it before: everything
	// it tried since is exhausted.
	RefusedAfterLaunch bool
	// Waits is why the Ray container does not run yet, for example ImagePullBackOff; empty if the kubelet says nothing.
	Waits string
	// FailedWhy is what Kubernetes says about a failed pod, for example UnexpectedAdmissionError.
	FailedWhy string
	// Unschedulable is the scheduler's message while it cannot place the pod.
	Unschedulable string
	// GangHeld is the name of a gang scheduler and what it says while it holds the pod back for others of its gang,
	// which says nothing about nodes; empty if none does. Unschedulable is then empty.
	GangHeld string
	// NodeRefused is the latest message of a node autoscaler if it says that no node can be added for the pod.
	NodeRefused string
	// PromisedAt is when the node autoscaler reported that a node is being added; zero if it did not.
	PromisedAt time.Time
	Guard      Guard
	// Consumes names the ProvisioningRequest whose capacity the pod uses; empty if it uses none.
	Consumes string
	// The moments that are known; zero if unknown.
	CreatedAt, ScheduledAt, StartedAt time.Time
}

// NoMaximum is the Max of a group whose spec sets none: KubeRay's default for maxReplicas.
const NoMaximum = math.MaxInt32

// MostHosts is the largest NumOfHosts: the largest TPU slices have about a thousand hosts. A group with more is Broken.
const MostHosts = 100_000

// NewWorker returns what is known about the labels of the group's new workers without its nodes.
func (g *WorkerGroup) NewWorker(rayVersion string) landing.NewWorker {
	return landing.NewWorker{Resources: g.Resources, Declared: g.Labels, Sources: g.LabelSources,
		RayVersion: rayVersion, Pod: &g.Pod}
}

// ClusterKey identifies one RayCluster.
type ClusterKey struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String returns namespace/name.
func (k ClusterKey) String() string { return k.Namespace + "/" + k.Name }

// Compare orders keys by namespace and name.
func (k ClusterKey) Compare(other ClusterKey) int {
	return cmp.Or(cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Name, other.Name))
}
