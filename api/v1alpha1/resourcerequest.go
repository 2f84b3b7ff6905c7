package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceRequest asks for capacity of one RayCluster: workers that have room for its bundles are there, whatever is in use, for as long as
// it holds. Requests of several owners add up.
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
// +kubebuilder:printcolumn:name="Expected",type=string,JSONPath=`.status.expectedAt`,priority=1
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

// ResourceRequestSpec is what is asked for, and for how long.
//
// +kubebuilder:validation:XValidation:rule="has(self.leaseSeconds) != (has(self.holdUntilDeleted) && self.holdUntilDeleted)",message="give one of leaseSeconds and holdUntilDeleted: true"
// +kubebuilder:validation:XValidation:rule="self.bundles.map(b, b.count).sum() <= 10000",message="all counts together are at most 10000"
// +kubebuilder:validation:XValidation:rule="self.rayCluster == oldSelf.rayCluster",message="rayCluster cannot be changed: make another request"
type ResourceRequestSpec struct {
	// RayCluster is the name of the RayCluster in the same namespace. It cannot be changed.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	RayCluster string `json:"rayCluster"`
	// Owner says who asks. Over REST it is the caller.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[\pL\pM\pN\pP\pS ]*$`
	Owner string `json:"owner"`
	// Priority decides whose request is served where a limit stands in the way of all: the higher one, among equals the older one.
	//
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=-2147483648
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	Priority int32 `json:"priority,omitempty"`
	// LeaseSeconds is for how long the request holds after renewTime. Without a renewal it expires then.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	LeaseSeconds *int32 `json:"leaseSeconds,omitempty"`
	// HoldUntilDeleted lets the request hold until somebody deletes it.
	//
	// +optional
	HoldUntilDeleted bool `json:"holdUntilDeleted,omitempty"`
	// RenewTime is when the lease was last renewed; without one the lease runs from when leaseSeconds was last written. A time that has not come
	// yet counts as the moment at which it was seen.
	//
	// +kubebuilder:validation:XValidation:rule="self < timestamp('9000-01-01T00:00:00Z')",message="renewTime is before the year 9000"
	// +optional
	RenewTime *metav1.MicroTime `json:"renewTime,omitempty"`
	// AllOrNothing launches workers only where all bundles can be had.
	//
	// +optional
	AllOrNothing bool `json:"allOrNothing,omitempty"`
	// Bundles are what is asked for.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +listType=atomic
	Bundles []Bundle `json:"bundles"`
}

// Bundle is a number of equal amounts, each of which one worker has.
//
// +kubebuilder:validation:XValidation:rule="has(self.slice) || (has(self.resources) && self.resources.exists(name, self.resources[name] > 0.0))",message="a bundle asks for something: resources above 0, or a slice"
type Bundle struct {
	// Resources are amounts by Ray's resource names, memory in bytes.
	//
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule=`self.all(name, size(name) <= 256 && name.matches(r'^[\pL\pM\pN\pP\pS]([\pL\pM\pN\pP\pS ]*[\pL\pM\pN\pP\pS])?$'))`,message="a resource's name has 1 to 256 printable characters, no space around it"
	// +optional
	Resources map[string]Amount `json:"resources,omitempty"`
	// Count is how many of the bundle are asked for.
	//
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Count int64 `json:"count,omitempty"`
	// LabelSelectors are alternatives in order of preference, each from label to expression: v, !v, in(a,b) or !in(a,b).
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	LabelSelectors []LabelSelector `json:"labelSelectors,omitempty"`
	// Slice is what is asked of each GPU beyond their number; without GPUs in resources one is meant.
	//
	// +optional
	Slice *SliceWish `json:"slice,omitempty"`
}

// Amount is an amount of a Ray resource, to four decimals, as Ray itself keeps it.
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

// SliceWish is what is asked of one GPU.
//
// +kubebuilder:validation:MinProperties=1
type SliceWish struct {
	// Memory is a quantity such as 10Gi, or whole bytes, at most 100Ti.
	//
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
	// ComputeFraction is a part of one card's compute, from 0.0001 to 1.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +kubebuilder:validation:XValidation:rule="self >= 0.0001",message="a fraction is at least 0.0001, the precision of Ray's amounts"
	// +kubebuilder:validation:Maximum=1
	// +optional
	ComputeFraction *float64 `json:"computeFraction,omitempty"`
	// Isolation is how well the GPU is kept apart from others' work at least.
	//
	// +kubebuilder:validation:Enum=hardware;limit;any
	// +optional
	Isolation string `json:"isolation,omitempty"`
}

// State says what becomes of a request.
//
// +kubebuilder:validation:Enum=Waiting;Satisfied;Capped;Impossible;Expired
type State string

// The states. Waiting: workers that serve it are on their way, or it was not looked at yet. Satisfied: workers that have joined Ray have room for all
// of it. Capped: a limit stands in the way of a part of it. Impossible: no worker group could ever serve a part of it. Expired: its lease is over.
const (
	Waiting    State = "Waiting"
	Satisfied  State = "Satisfied"
	Capped     State = "Capped"
	Impossible State = "Impossible"
	Expired    State = "Expired"
)

// ResourceRequestStatus is what became of the request. Heliostat alone writes it.
type ResourceRequestStatus struct {
	// ObservedGeneration is the generation that the rest was found for. One that differs in renewTime alone may be newer.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ObservedRequest tells the spec, renewTime left out, that the rest was found for.
	//
	// +optional
	ObservedRequest string `json:"observedRequest,omitempty"`
	// +optional
	State State `json:"state,omitempty"`
	// Since is when State began.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// Reason says why, with a stable code.
	//
	// +optional
	Reason *Reason `json:"reason,omitempty"`
	// Groups are the worker groups that serve it, with how many of their pods.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	Groups []GroupPods `json:"groups,omitempty"`
	// Pods are pods that serve it, at most 100 of them by name.
	//
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Pods []string `json:"pods,omitempty"`
	// ExpectedAt is when the last pod that it waits for is expected to have joined, by how long others of its group took.
	//
	// +optional
	ExpectedAt *metav1.Time `json:"expectedAt,omitempty"`
	// Conditions are Satisfied and Expired; and Accepted, which is False, while the budget of memory for requests has no room for this one.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Reason is a stable code with a sentence for people.
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
	// ConditionAccepted is there, and False, while Heliostat does not take the request in.
	ConditionAccepted = "Accepted"
)

// ReasonOverMemory is the reason of ConditionAccepted where the budget of memory for requests has no room for the request.
const ReasonOverMemory = "OverMemoryBudget"
