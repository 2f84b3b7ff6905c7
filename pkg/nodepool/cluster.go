// Package nodepool is the vocabulary of where Ray can run: Cluster, WorkerGroup, Worker, Target. It is pure: what
// Kubernetes says is converted to these values by package kube, and what is decided goes back the same way.
package nodepool

import (
	"fmt"
	"math"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool/podfit"
	"heliostat.dev/heliostat/pkg/nodepool/pools"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// ClusterKey names one RayCluster.
type ClusterKey struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String writes namespace/name.
func (k ClusterKey) String() string { return k.Namespace + "/" + k.Name }

// Mode says what Heliostat may do with a RayCluster (annotation heliostat.dev/mode of the RayCluster or of its
// namespace).
type Mode string

// Managed plans and writes; Shadow plans and reports only; Off does neither.
const (
	Managed Mode = "managed"
	Shadow  Mode = "shadow"
	Off     Mode = "off"
)

// Valid reports whether m is one of the three modes.
func (m Mode) Valid() bool { return m == Managed || m == Shadow || m == Off }

// Autoscaler says which autoscaler runs in the head pod's containers, as seen in the pod and not in the spec.
type Autoscaler string

// NoAutoscaler: no sidecar. RaySidecar: Ray's own Python autoscaler. OurSidecar: Heliostat in the sidecar's slot.
const (
	NoAutoscaler Autoscaler = ""
	RaySidecar   Autoscaler = "ray"
	OurSidecar   Autoscaler = "heliostat"
)

// Owner is what owns the RayCluster's spec, RayJob or RayService; empty when a person does.
type Owner struct {
	Kind, Name string
}

// Head is the head pod and how to reach its GCS.
type Head struct {
	Pod, PodUID string
	// Restarts counts restarts of the Ray container; with PodUID it tells a new GCS from an old one.
	Restarts int32
	// IP and GCSPort are the GCS's address; IP is empty while the head has none.
	IP      string
	GCSPort int32
	Ready   bool
	// Sidecar is the autoscaler that is alive beside the head.
	Sidecar Autoscaler
	// ServiceFQDN is the head service's name, the TLS server name.
	ServiceFQDN string
}

// Auth says how the GCS wants to be called.
type Auth struct {
	// TokenSecret and TokenKey name the Secret that holds Ray's token; empty without token authentication.
	TokenSecret, TokenKey string
	// Token is a literal token from the head container's environment, used when no Secret is named.
	Token string `json:"-"`
	// TLSSecret names the Secret with tls.crt, tls.key and ca.crt; empty without TLS.
	TLSSecret string
	// Required says that the GCS demands a token; with neither Secret, literal nor KubernetesToken a finding tells so.
	Required bool
	// KubernetesToken: the GCS asks the API server who the caller is; the caller sends a ServiceAccount's token.
	KubernetesToken bool
}

// Cluster is one RayCluster and its pods at one moment.
type Cluster struct {
	Key ClusterKey
	UID string
	// ResourceVersion and Generation are those of the object read; the operator has seen ObservedGeneration.
	ResourceVersion                string
	Generation, ObservedGeneration int64

	// Mode is the annotation's value, or empty where there is none. NamespaceMode is that of the namespace, empty where
	// there is none; it is read only where Mode is empty.
	Mode, NamespaceMode Mode
	// NamespaceUnknown says why it is not known which mode the namespace sets; empty where it is known, or Mode is set.
	NamespaceUnknown string
	Freeze           bool
	// Isolation is what must keep the cluster's work on GPUs apart, by its own annotation or its namespace's; empty is any.
	Isolation RequiredIsolation
	// Suspended, Deleting and ManagedElsewhere (spec.managedBy another controller) each forbid writes.
	Suspended, Deleting, ManagedElsewhere bool
	Owner                                 Owner
	// Queue is Kueue's hold on the RayCluster; while it is queued nothing is written to its spec.
	Queue Queue
	// ScaledBy is the field manager that last wrote the worker groups; empty where the object does not tell.
	ScaledBy   string
	RayVersion string
	// UpgradeStrategy is spec.upgradeStrategy.type: Recreate, None, or empty. Under Recreate the operator deletes all pods of the
	// cluster when anything but scale changes.
	UpgradeStrategy string
	// InTreeAutoscaling is spec.enableInTreeAutoscaling. Without it the operator deletes arbitrary surplus pods.
	InTreeAutoscaling bool
	// IdleTimeout applies to groups without one of their own (Ray's default: 60 s).
	IdleTimeout   time.Duration
	UpscalingMode string

	Head   Head
	Auth   Auth
	Groups []WorkerGroup
	// Workers are the worker pods, those of unknown groups and those being deleted included.
	Workers []Worker
	// RequestResources is the REST request kept in the annotation heliostat.dev/resource-requests.
	RequestResources []raydemand.Request
	// RequestedSince is when it was first asked for; zero where that is not known.
	RequestedSince time.Time
	// Owned are the requests of owners for this RayCluster, expired ones included, by name. It is shared: nobody changes it.
	Owned []OwnedRequest
	// OwnedUnknown says why it is not known whether Owned is all that owners ask for, or is empty. Nothing may be taken away meanwhile.
	OwnedUnknown string
	Findings     []raydemand.Finding
	// Unreadable says that the object could not be understood well enough to write to it.
	Unreadable bool
	// ProvisionersSeen says that the Events of node autoscalers are read and that one has spoken of some pod before, so that
	// lasting silence about a pod means that none is going to add a node for it. One whose Events nobody recognises is silent
	// too.
	ProvisionersSeen bool
	// NodeClaims says whether Karpenter adds nodes here and whether its NodeClaims are seen.
	NodeClaims NodeClaimsState
	// Pools are the pools of nodes of the whole Kubernetes cluster, by name; nil while nodes are not known. It is shared: nobody changes it.
	Pools []pools.Room
	// Refused says that the operator refuses the spec (Event InvalidRayClusterSpec): until it is mended nothing that is
	// written to any group has an effect. A finding tells why.
	Refused bool
}

// NodeClaimsState is what is known of Karpenter's NodeClaims.
type NodeClaimsState string

// NoNodeClaims: there is no such kind, or nothing is known yet. NodeClaimsRead: all are seen. NodeClaimsForbidden: there
// are, and they may not be read.
const (
	NoNodeClaims        NodeClaimsState = ""
	NodeClaimsRead      NodeClaimsState = "read"
	NodeClaimsForbidden NodeClaimsState = "unread"
)

// Writable returns nil, or an error wrapping ErrReadOnly that says why the RayCluster must be left alone.
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
		{c.Queue.Queued(), c.Queue.Refusal()},
		{c.Queue.Unknown != "", c.Queue.Unknown},
	} {
		if reason.holds {
			return fmt.Errorf("%w: %s: %s", ErrReadOnly, c.Key, reason.why)
		}
	}
	return nil
}

// Group returns the group of that name.
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
	// Resources is what `ray start` on a new pod will announce, in Ray's units (docs/reference/facts.md#flags-of-ray-start).
	Resources raydemand.Bundle
	Labels    map[string]string
	// Replicas, Min and Max count replicas; a replica has NumOfHosts pods.
	Replicas, Min, Max, NumOfHosts int
	// IdleTimeout overrides the cluster's; nil means none of its own.
	IdleTimeout *time.Duration
	Priority    int
	// Price is what one pod costs an hour, in any one currency; nil where unknown.
	Price     *float64
	Suspended bool
	// WorkersToDelete is the list as stored; HasScaleStrategy tells an absent scaleStrategy from an empty one.
	WorkersToDelete  []string
	HasScaleStrategy bool
	// Broken says that the group cannot be planned, for example min > max; a finding tells why.
	Broken bool
	// Pod is what the template says about where its pods can land. It is shared: nobody changes it.
	Pod podfit.PodShape
	// Fit tells on how many nodes a pod could land; nil while the nodes are not known.
	Fit *podfit.Fit
	// Slices are what the GPUs of one pod are: by the nodes it could land on, or, while those are not known, by its template.
	Slices []podfit.SliceAnswer
	// GPUs is what the spec says about the GPUs of one worker. Reported is what the nodes say; nil while they are not known.
	GPUs     GPUSpec
	Reported *ReportedGPUs
	// PoolPods are the pools that a pod of the group could land on, by name; nil while nodes are not known.
	PoolPods []pools.Pods
	// Coming is how many of the group's pods without a node Karpenter's NodeClaims on their way hold.
	Incoming pools.Incoming
	// NumGPUsSync says whether Heliostat may write the number of GPUs that the device plugin reports into the spec
	// (annotation heliostat.dev/num-gpus-sync).
	NumGPUsSync SyncMode
}

// Goal is how many replicas the operator keeps: Replicas within Min and Max.
func (g WorkerGroup) Goal() int { return max(g.Min, min(g.Replicas, g.Max)) }

// Worker is one worker pod.
type Worker struct {
	Pod, UID, Group string
	// Replica is the label ray.io/worker-group-replica-name of a multi-host group, else empty.
	Replica string
	IP      string
	// Node is the name of the node that the pod is bound to; empty until it is scheduled.
	Node string
	// NodeGone: the Node object is not there any more, though the pod is bound to it, so its machine is dead.
	NodeGone bool
	// Terminating: the pod has a deletionTimestamp. Failed: phase Failed or Succeeded, the operator will replace it.
	Terminating, Failed bool
	// Running: the Ray container runs. Ready: the pod is ready.
	Running, Ready bool
	// Returned: workersToDelete names the pod, and a Ray node has come to life in it since or starts, so its name is to be taken back.
	Returned bool
	// FailedWhy is what Kubernetes says of a failed pod, for example UnexpectedAdmissionError.
	FailedWhy string
	// Unschedulable is the scheduler's message while it cannot place the pod.
	Unschedulable string
	// Gated: a scheduling gate holds the pod back, for quota say, so no node is looked for yet.
	Gated bool
	// NodeRefused is the latest word of a node autoscaler when it is that no node can be added for the pod. NodePromised
	// says that its latest word is that one is being added.
	NodeRefused  string
	NodePromised bool
	// ByKarpenter: that word is Karpenter's. LaunchFailed: it is that a machine could not be had, after which Karpenter
	// tries again, perhaps of another NodePool, and says nothing of that to the pod.
	ByKarpenter, LaunchFailed bool
	// RefusedAfterLaunch: Karpenter refuses the pod although it asked for a machine for it before: what it tried since
	// is exhausted.
	RefusedAfterLaunch bool
	// The moments that are known; zero where they are not.
	CreatedAt, ScheduledAt, StartedAt time.Time
}

// NoMaximum is the Max of a group whose spec has none: KubeRay's default for maxReplicas.
const NoMaximum = math.MaxInt32

// MostHosts bounds NumOfHosts: the largest TPU slices have some thousand hosts. A group of more is Broken.
const MostHosts = 100_000

// NodePoolFits reports whether a NodePool of Karpenter's may add a node for a pod of the group.
func (g *WorkerGroup) NodePoolFits() bool {
	for _, pool := range g.PoolPods {
		if pool.Provisioned && (pool.MayAddPods == nil || *pool.MayAddPods > 0) {
			return true
		}
	}
	return false
}
