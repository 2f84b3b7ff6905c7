package nodepool

import (
	"slices"
	"time"
)

// ProvisioningAnnotation on a RayCluster asks the Cluster Autoscaler for all nodes of a gang at once, with a
// ProvisioningRequest: true or false, or a JSON object of these by group.
const ProvisioningAnnotation = "heliostat.dev/provisioning-request"

// The annotations of a pod that uses the capacity of a ProvisioningRequest, and the class that Heliostat asks for: all
// nodes or none (docs/reference/facts.md#provisioning-requests).
const (
	ConsumeAnnotation           = "autoscaling.x-k8s.io/consume-provisioning-request"
	ProvisioningClassAnnotation = "autoscaling.x-k8s.io/provisioning-class-name"
	AtomicScaleUp               = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
)

// Provisioning is what is known about the ProvisioningRequests of a RayCluster.
type Provisioning struct {
	// Unread says why they are unknown; empty if they are known.
	Unread string
	// Requests are those that Heliostat made for this RayCluster.
	Requests []ProvisioningRequest
}

// Of returns the requests for a group, those that are being deleted last.
func (p *Provisioning) Of(group string) []ProvisioningRequest {
	var own []ProvisioningRequest
	for _, deleting := range []bool{false, true} {
		for _, r := range p.Requests {
			if r.Group == group && r.Deleting == deleting {
				own = append(own, r)
			}
		}
	}
	return own
}

// Provisioned returns the request with that name if its capacity is reserved.
func (p *Provisioning) Provisioned(name string) bool {
	return p != nil && slices.ContainsFunc(p.Requests, func(r ProvisioningRequest) bool {
		return r.Name == name && r.State == CapacityProvisioned && !r.Deleting
	})
}

// ProvisioningState is how far the Cluster Autoscaler has come with a request.
type ProvisioningState string

// CapacityAsked: it has not decided, or tries again. CapacityProvisioned: the nodes are there and reserved.
// CapacityFailed: it gave up. CapacityLost: the reservation is over or was revoked.
const (
	CapacityAsked       ProvisioningState = "asked"
	CapacityProvisioned ProvisioningState = "provisioned"
	CapacityFailed      ProvisioningState = "failed"
	CapacityLost        ProvisioningState = "lost"
)

// ProvisioningRequest asks for the nodes of several pods of one group.
type ProvisioningRequest struct {
	Name, UID, Group string
	// Template is the name of its PodTemplate, and Pods how many pods it is for.
	Template  string
	Pods      int
	CreatedAt time.Time
	State     ProvisioningState
	// Since is when the condition that gives the state last changed; zero while there is none. Message is its message.
	Since    time.Time
	Message  string
	Deleting bool
}

// The kinds of a ProvisioningChange.
const (
	// AskCapacity creates Request; one that exists already is no error.
	AskCapacity = "ask"
	// ReleaseCapacity deletes Request; one that does not exist is no error.
	ReleaseCapacity = "release"
	// ConsumeCapacity annotates Pod as one that uses Request.
	ConsumeCapacity = "consume"
	// ForgetCapacity removes these annotations, because the Cluster Autoscaler adds no node for a pod that has them.
	ForgetCapacity = "forget"
)
