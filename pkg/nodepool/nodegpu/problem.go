package nodegpu

// Problem is a fault of a node's GPUs, or of what the node reports about them. As text it is "code: message".
type Problem struct {
	Code    ProblemCode
	Message string
}

// MarshalText returns the code, a colon and the message.
func (p Problem) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

func (p Problem) String() string { return string(p.Code) + ": " + p.Message }

// ProblemCode names a problem for programs; it is stable.
type ProblemCode string

// The problems.
const (
	// Cordoned: no pod is scheduled there.
	Cordoned ProblemCode = "cordoned"
	// NotReady: the node's condition Ready is not True, so no pod is scheduled there.
	NotReady ProblemCode = "not-ready"
	// DevicesMissing: fewer devices are allocatable than the node has.
	DevicesMissing ProblemCode = "devices-missing"
	// NothingAnnounced: there are GPUs, but no resource for them.
	NothingAnnounced ProblemCode = "nothing-announced"
	// NoDevicePlugin: the GPU operator deploys no device plugin there; Dynamic Resource Allocation may allocate the
	// GPUs.
	NoDevicePlugin ProblemCode = "no-device-plugin"
	// MIGChanging: the MIG layout is changing, or a change failed.
	MIGChanging ProblemCode = "mig-changing"
	// MIGInvalid: under the single strategy the cards have no common profile.
	MIGInvalid ProblemCode = "mig-invalid"
	// ProfileMismatch: labels and resource name different profiles. ProfileUnknown: the product has no such profile.
	ProfileMismatch ProblemCode = "profile-mismatch"
	ProfileUnknown  ProblemCode = "profile-unknown"
	// TooManyUnits: more is announced than the cards can have.
	TooManyUnits ProblemCode = "too-many-units"
	// SharingUnlabelled: more units than cards are announced, and no label says how the cards are shared.
	SharingUnlabelled ProblemCode = "sharing-unlabelled"
	// MemoryOvercommitted: more memory is registered than the cards have. MemoryMissing: a memory resource is announced
	// with amount 0.
	MemoryOvercommitted ProblemCode = "memory-overcommitted"
	MemoryMissing       ProblemCode = "memory-missing"
	// RegisterUnreadable: what HAMi's agent registers about the cards is invalid or names none, so that HAMi's
	// scheduler takes no cards from it.
	RegisterUnreadable ProblemCode = "register-unreadable"
	// CardUnrecorded: a pod uses part of a card, and no annotation says of which one.
	CardUnrecorded ProblemCode = "card-unrecorded"
	// AgentSilent: the node's sharing agent does not respond. AgentOutdated: the report of Heliostat's agent is
	// outdated. DeviceUnhealthy: an agent reports a card as unhealthy.
	AgentSilent     ProblemCode = "agent-silent"
	AgentOutdated   ProblemCode = "agent-outdated"
	DeviceUnhealthy ProblemCode = "device-unhealthy"
	// ConditionBad: a node condition about GPUs reports a problem.
	ConditionBad ProblemCode = "condition-bad"
	// LabelUnreadable: a label or annotation has an invalid value.
	LabelUnreadable ProblemCode = "label-unreadable"
	// AmountUnreadable: a node cannot have this amount of a resource.
	AmountUnreadable ProblemCode = "amount-unreadable"
	// ResourceNotKnown: a resource looks like GPUs and is in no table.
	ResourceNotKnown ProblemCode = "resource-not-known"
)
