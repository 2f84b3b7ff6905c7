package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CapacityPolicy says what one RayCluster keeps ready beyond what its work uses, when, for how much money, and what
// happens when it has no work. The annotation heliostat.dev/capacity-policy of the RayCluster takes precedence over it;
// of several CapacityPolicies for one RayCluster the oldest counts.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=capacitypolicies,shortName=rcap,categories={ray,all}
// +kubebuilder:printcolumn:name="RayCluster",type=string,JSONPath=`.spec.rayCluster`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Suspend after",type=string,JSONPath=`.spec.idle.suspendAfter`
// +kubebuilder:printcolumn:name="Delete after",type=string,JSONPath=`.spec.idle.deleteAfter`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="a name has at most 63 characters"
type CapacityPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec CapacityPolicySpec `json:"spec"`
	// +optional
	// +structType=atomic
	Status CapacityPolicyStatus `json:"status,omitempty"`
}

// CapacityPolicyList is a list of CapacityPolicies.
//
// +kubebuilder:object:root=true
type CapacityPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []CapacityPolicy `json:"items"`
}

// CapacityPolicySpec is the policy of one RayCluster.
//
// +kubebuilder:validation:XValidation:rule="self.rayCluster == oldSelf.rayCluster",message="rayCluster cannot be changed: make another policy"
type CapacityPolicySpec struct {
	// RayCluster is the name of the RayCluster in the same namespace. It is immutable.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	RayCluster string `json:"rayCluster"`
	// KeepWarm is capacity that stays free, on top of what work and requests use. Entries add up.
	//
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	KeepWarm []KeepWarm `json:"keepWarm,omitempty"`
	// KeepWarmNodes is for how many workers nodes are ready that no pod uses. Entries add up. The node autoscaler must
	// serve CapacityBuffers.
	//
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	KeepWarmNodes []KeepWarmNodes `json:"keepWarmNodes,omitempty"`
	// Idle says what happens when the RayCluster has no work.
	//
	// +optional
	Idle *IdlePolicy `json:"idle,omitempty"`
}

// KeepWarm is a number of free workers of one group, or room for a number of bundles.
//
// +kubebuilder:validation:XValidation:rule="has(self.group) != (has(self.resources) || has(self.slice))",message="give either a group, or resources or a slice"
// +kubebuilder:validation:XValidation:rule="!has(self.group) || !has(self.labelSelectors)",message="labelSelectors belong to resources, not to a group"
// +kubebuilder:validation:XValidation:rule="has(self.group) || has(self.slice) || self.resources.exists(name, self.resources[name] > 0.0)",message="a bundle asks for something: resources above 0, or a slice"
type KeepWarm struct {
	// Group is a worker group: count of its workers stay free. In a multi-host group a worker is a whole replica.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group string `json:"group,omitempty"`
	// Resources are the amounts of one bundle by Ray's resource names, memory in bytes.
	//
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule=`self.all(name, size(name) <= 256 && name.matches(r'^[\pL\pM\pN\pP\pS]([\pL\pM\pN\pP\pS ]*[\pL\pM\pN\pP\pS])?$'))`,message="a resource's name has 1 to 256 printable characters, no space around it"
	// +optional
	Resources map[string]Amount `json:"resources,omitempty"`
	// LabelSelectors are alternatives in order of preference, each from label to expression: v, !v, in(a,b) or
	// !in(a,b).
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	LabelSelectors []LabelSelector `json:"labelSelectors,omitempty"`
	// Slice is what each GPU must offer. Without a GPU in resources it means one GPU.
	//
	// +optional
	Slice *SliceRequirement `json:"slice,omitempty"`
	// Count applies while no schedule does.
	//
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Count int64 `json:"count,omitempty"`
	// Schedules replace the count. Of several that apply, the highest count counts.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Schedules []CapacitySchedule `json:"schedules,omitempty"`
}

// KeepWarmNodes is a number of workers of one group for which nodes are ready.
type KeepWarmNodes struct {
	// Group is the worker group whose pods the nodes are for. In a multi-host group a worker is a whole replica.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`
	// Count applies while no schedule does.
	//
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Count int64 `json:"count,omitempty"`
	// Schedules replace the count. Of several that apply, the highest count counts.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Schedules []CapacitySchedule `json:"schedules,omitempty"`
}

// CapacitySchedule applies from each time of start to the next time of end.
//
// +kubebuilder:validation:XValidation:rule="self.start != self.end",message="start and end differ"
type CapacitySchedule struct {
	// Start is a cron expression of five fields: minute, hour, day of the month, month, day of the week.
	Start CronExpression `json:"start"`
	// End is a cron expression of five fields.
	End CronExpression `json:"end"`
	// TimeZone is an IANA name such as Europe/Berlin. The default is UTC.
	//
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_+/-]*$`
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
	// Count replaces the count of the entry.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Count int64 `json:"count"`
}

// CronExpression has five fields.
//
// +kubebuilder:validation:MaxLength=200
// +kubebuilder:validation:Pattern=`^\s*[^\s=@]+(\s+[^\s=@]+){4}\s*$`
type CronExpression string

// IdlePolicy says what happens when a RayCluster has no work for a while.
//
// +kubebuilder:validation:XValidation:rule="!has(self.suspendAfter) || !has(self.deleteAfter) || size(self.suspendAfter) == 0 || size(self.deleteAfter) == 0 || duration(self.deleteAfter) > duration(self.suspendAfter)",message="deleteAfter is longer than suspendAfter: both count from the last work"
type IdlePolicy struct {
	// SuspendAfter is a duration such as 2h, at least 10m. Without it the RayCluster is not suspended.
	//
	// +optional
	SuspendAfter IdleDuration `json:"suspendAfter,omitempty"`
	// DeleteAfter is a duration such as 24h, at least 10m, counted from the last work. Without it the RayCluster is not
	// deleted.
	//
	// +optional
	DeleteAfter IdleDuration `json:"deleteAfter,omitempty"`
}

// IdleDuration is a duration such as 2h or 1h30m.
//
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(h|m|s))*$`
// +kubebuilder:validation:XValidation:rule="size(self) == 0 || duration(self) >= duration('10m')",message="a duration is at least 10m"
type IdleDuration string

// PolicyState is the state of a CapacityPolicy.
//
// +kubebuilder:validation:Enum=Active;Superseded;Unreadable;NoRayCluster
type PolicyState string

// The states. Active: the policy counts. Superseded: the annotation of the RayCluster or an older CapacityPolicy
// counts. Unreadable: the spec cannot be read, and message says why. NoRayCluster: Heliostat does not watch such a
// RayCluster, or it does not exist.
const (
	PolicyActive     PolicyState = "Active"
	PolicySuperseded PolicyState = "Superseded"
	PolicyUnreadable PolicyState = "Unreadable"

	PolicyNoRayCluster PolicyState = "NoRayCluster"
)

// CapacityPolicyStatus says whether the policy counts. Only Heliostat writes it.
type CapacityPolicyStatus struct {
	// ObservedGeneration is the generation that the status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	State PolicyState `json:"state,omitempty"`
	// Message says why.
	//
	// +optional
	Message string `json:"message,omitempty"`
	// WarmNodes says what became of keepWarmNodes, one line for each entry: a code, and a sentence.
	//
	// +optional
	// +listType=atomic
	WarmNodes []string `json:"warmNodes,omitempty"`
}
