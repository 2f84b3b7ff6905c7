package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceRequest requests capacity of one RayCluster: while it is active, the cluster has workers with room for its
// bundles, whatever is in use. Requests of several owners add up.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=rreq,categories={ray,all}
// +kubebuilder:printcolumn:name="RayCluster",type=string,JSONPath=`.spec.rayCluster`
// +kubebuilder:printcolumn:name="Owner",type=string,JSONPath=`.spec.owner`
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason.code`
// +kubebuilder:printcolumn:name="Since",type=date,JSONPath=`.status.since`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.reason.message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="a name has at most 63 characters"
type ResourceRequest struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ResourceRequestSpec `json:"spec"`
	// +optional
	// +structType=atomic
	Status ResourceRequestStatus `json:"status,omitempty"`
}

// ResourceRequestList is a list of ResourceRequests.
//
// +kubebuilder:object:root=true
type ResourceRequestList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ResourceRequest `json:"items"`
}

// ResourceRequestSpec is the requested capacity, and for how long.
//
// A request is for one job or application. Most ask for one to four kinds of bundles, each with two to four resources
// and a label or two; a Serve application or a data pipeline may ask for one for each of its parts. The limits are
// above that: 10 kinds of bundles, 8 resources and 4 alternative label selectors in each, and in all bundles together
// 40 values of labels and 1,024 characters of resource names, labels and expressions. A job that needs more makes
// several requests, which add up. Together, the limits bound a request to 20 KiB in Heliostat's memory.
//
// +kubebuilder:validation:XValidation:rule="has(self.leaseSeconds) != (has(self.holdUntilDeleted) && self.holdUntilDeleted)",message="give one of leaseSeconds and holdUntilDeleted: true"
// +kubebuilder:validation:XValidation:rule="self.bundles.map(b, b.count).sum() <= 10000",message="all counts together are at most 10000"
// +kubebuilder:validation:XValidation:rule="self.bundles.map(b, has(b.labelSelectors) ? b.labelSelectors.map(s, s.map(k, s[k].split(',').size()).sum()).sum() : 0).sum() <= 40",message="all label selectors together have at most 40 values; in(a,b) has two"
// +kubebuilder:validation:XValidation:rule="self.bundles.map(b, (has(b.resources) ? b.resources.map(n, size(n)).sum() : 0) + (has(b.labelSelectors) ? b.labelSelectors.map(s, s.map(k, size(k) + size(s[k])).sum()).sum() : 0)).sum() <= 1024",message="all resource names, labels and expressions together have at most 1024 characters"
// +kubebuilder:validation:XValidation:rule="self.rayCluster == oldSelf.rayCluster",message="rayCluster cannot be changed: make another request"
type ResourceRequestSpec struct {
	// RayCluster is the name of the RayCluster in the same namespace. It is immutable.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	RayCluster string `json:"rayCluster"`
	// Owner is the owner of the request. Over REST it is the caller.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[\pL\pM\pN\pP\pS ]*$`
	Owner string `json:"owner"`
	// Priority orders requests: a higher priority comes first, then the older request, then the name. The order decides
	// which are served if a limit prevents serving all.
	//
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=-2147483648
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	Priority int32 `json:"priority,omitempty"`
	// LeaseSeconds is how long the request lasts after renewTime. Without a renewal it then expires.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	LeaseSeconds *int32 `json:"leaseSeconds,omitempty"`
	// HoldUntilDeleted keeps the request active until it is deleted.
	//
	// +optional
	HoldUntilDeleted bool `json:"holdUntilDeleted,omitempty"`
	// RenewTime is the time of the last renewal. Without it, the lease starts when leaseSeconds was last written. A
	// time in the future counts as the time when Heliostat first sees it.
	//
	// +kubebuilder:validation:XValidation:rule="self < timestamp('9000-01-01T00:00:00Z')",message="renewTime is before the year 9000"
	// +optional
	RenewTime *metav1.MicroTime `json:"renewTime,omitempty"`
	// AllOrNothing launches workers only if all bundles can be served.
	//
	// +optional
	AllOrNothing bool `json:"allOrNothing,omitempty"`
	// Bundles are the requested kinds of bundles.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	Bundles []Bundle `json:"bundles"`
}

// Bundle is a number of equal bundles. One worker must have room for each.
//
// +kubebuilder:validation:XValidation:rule="has(self.slice) || (has(self.resources) && self.resources.exists(name, self.resources[name] > 0.0))",message="a bundle asks for something: resources above 0, or a slice"
type Bundle struct {
	// Resources are amounts by Ray's resource names, memory in bytes.
	//
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule=`self.all(name, size(name) <= 256 && name.matches(r'^[\pL\pM\pN\pP\pS]([\pL\pM\pN\pP\pS ]*[\pL\pM\pN\pP\pS])?$'))`,message="a resource's name has 1 to 256 printable characters, no space around it"
	// +optional
	Resources map[string]Amount `json:"resources,omitempty"`
	// Count is the number of bundles.
	//
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Count int64 `json:"count,omitempty"`
	// LabelSelectors are alternatives in order of preference, each from label to expression: v, !v, in(a,b) or
	// !in(a,b).
	//
	// +kubebuilder:validation:MaxItems=4
	// +listType=atomic
	// +optional
	LabelSelectors []LabelSelector `json:"labelSelectors,omitempty"`
	// Slice is what each GPU must offer. Without a GPU in resources it means one GPU.
	//
	// +optional
	Slice *SliceRequirement `json:"slice,omitempty"`
}

// Amount is an amount of a Ray resource, with four decimals, which is the precision of Ray.
//
// +kubebuilder:validation:Minimum=0
// +kubebuilder:validation:Maximum=109951162777600
// +kubebuilder:validation:XValidation:rule="self == 0.0 || self >= 0.0001",message="an amount is 0, or at least 0.0001, the precision of Ray's amounts"
type Amount float64

// LabelSelector maps labels to Ray's expressions. An empty one means any node.
//
// +kubebuilder:validation:MaxProperties=16
// +kubebuilder:validation:XValidation:rule=`self.all(name, size(name) <= 256 && name.matches(r'^[\pL\pM\pN\pP\pS]([\pL\pM\pN\pP\pS ]*[\pL\pM\pN\pP\pS])?$'))`,message="a label's key has 1 to 256 printable characters, no space around it"
type LabelSelector map[string]LabelExpression

// LabelExpression is v, !v, in(a,b) or !in(a,b).
//
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:Pattern=`^ *(!? *([a-zA-Z0-9]([a-zA-Z0-9_.-]{0,61}[a-zA-Z0-9])?|in\( *[a-zA-Z0-9]([a-zA-Z0-9_.-]{0,61}[a-zA-Z0-9])?( *, *[a-zA-Z0-9]([a-zA-Z0-9_.-]{0,61}[a-zA-Z0-9])?)* *\)) *)?$`
type LabelExpression string

// SliceRequirement is what one GPU must offer.
//
// +kubebuilder:validation:MinProperties=1
type SliceRequirement struct {
	// Memory is a quantity such as 10Gi, or whole bytes, at most 100Ti.
	//
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
	// ComputeFraction is a fraction of the compute of one card, from 0.0001 to 1.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +kubebuilder:validation:XValidation:rule="self >= 0.0001",message="a fraction is at least 0.0001, the precision of Ray's amounts"
	// +kubebuilder:validation:Maximum=1
	// +optional
	ComputeFraction *float64 `json:"computeFraction,omitempty"`
	// Isolation is the minimal isolation from the work of others.
	//
	// +kubebuilder:validation:Enum=hardware;limit;any
	// +optional
	Isolation string `json:"isolation,omitempty"`
}

// State is the state of a request.
//
// +kubebuilder:validation:Enum=Waiting;Satisfied;Capped;Impossible;Expired
type State string

// The states. Waiting: workers for it are starting, or no plan includes it yet. Satisfied: workers that have joined Ray
// have room for all of it. Capped: a limit prevents a part of it. Impossible: no worker group can serve a part of it.
// Expired: the lease has expired.
const (
	Waiting    State = "Waiting"
	Satisfied  State = "Satisfied"
	Capped     State = "Capped"
	Impossible State = "Impossible"
	Expired    State = "Expired"
)

// ResourceRequestStatus is the state of a request. Only Heliostat writes it.
type ResourceRequestStatus struct {
	// ObservedGeneration is the generation that the status describes. A newer one may exist that differs only in
	// renewTime.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ObservedRequest identifies the spec, without renewTime, that the status describes.
	//
	// +optional
	ObservedRequest string `json:"observedRequest,omitempty"`
	// +optional
	State State `json:"state,omitempty"`
	// Since is the start of the state.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// Reason is the reason for the state, with a stable code.
	//
	// +optional
	Reason *Reason `json:"reason,omitempty"`
	// Groups are the worker groups that serve the request, and the numbers of their pods.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	Groups []GroupPods `json:"groups,omitempty"`
	// Pods are the names of pods that serve the request, at most 100.
	//
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Pods []string `json:"pods,omitempty"`
	// Conditions are Satisfied and Expired.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Reason is a stable code with a sentence.
type Reason struct {
	Code string `json:"code"`
	// +optional
	Message string `json:"message,omitempty"`
}

// GroupPods counts the pods of one worker group.
type GroupPods struct {
	Name string `json:"name"`
	Pods int32  `json:"pods"`
}

// The types of conditions.
const (
	ConditionSatisfied = "Satisfied"
	ConditionExpired   = "Expired"
)
