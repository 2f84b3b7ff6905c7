package nodegpu

// Problem is what is wrong with a node's GPUs, or with what it says of them. In text it is "code: message".
type Problem struct {
	Code    ProblemCode
	Message string
}

// MarshalText writes the code, a colon and the message.
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
	// DevicesMissing: fewer devices can be had than there are, none of them for a healthy reason.
	DevicesMissing ProblemCode = "devices-missing"
	// NothingAnnounced: there are GPUs and no resource for them.
	NothingAnnounced ProblemCode = "nothing-announced"
	// NoDevicePlugin: the GPU operator deploys no device plugin there; Dynamic Resource Allocation may hand out the
	// GPUs.
	NoDevicePlugin ProblemCode = "no-device-plugin"
	// MIGChanging: the layout is being changed, or that failed.
	MIGChanging ProblemCode = "mig-changing"
	// MIGInvalid: under the single strategy the cards have no common profile.
	MIGInvalid ProblemCode = "mig-invalid"
	// ProfileMismatch: labels and resource name the profile differently; ProfileUnknown: the product has no such
	// profile.
	ProfileMismatch ProblemCode = "profile-mismatch"
	ProfileUnknown  ProblemCode = "profile-unknown"
	// TooManyUnits: more is announced than the cards can be.
	TooManyUnits ProblemCode = "too-many-units"
	// MemoryOvercommitted: more memory is registered than the cards have. MemoryMissing: a memory resource is announced
	// with nothing in it.
	MemoryOvercommitted ProblemCode = "memory-overcommitted"
	MemoryMissing       ProblemCode = "memory-missing"
	// AgentSilent: the node's sharing agent does not answer. AgentOutdated: what Heliostat's agent wrote is of another
	// time. DeviceUnhealthy: an agent says that a card is not well.
	AgentSilent     ProblemCode = "agent-silent"
	AgentOutdated   ProblemCode = "agent-outdated"
	DeviceUnhealthy ProblemCode = "device-unhealthy"
	// ConditionBad: a node condition about GPUs says that something is wrong.
	ConditionBad ProblemCode = "condition-bad"
	// LabelUnreadable: a label or annotation is not what its key promises.
	LabelUnreadable ProblemCode = "label-unreadable"
	// AmountUnreadable: the amount of a resource is none that a node can have.
	AmountUnreadable ProblemCode = "amount-unreadable"
	// ResourceNotKnown: a resource speaks of GPUs and stands in no table.
	ResourceNotKnown ProblemCode = "resource-not-known"
)
