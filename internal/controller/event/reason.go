package event

// Reasons of Events on a RayCluster. They are stable: alerts and scripts may match them. The codes of package mode are
// Event reasons too, when they keep a cluster from being managed.
const (
	ScaledUp         = "ScaledUp"
	ScaledDown       = "ScaledDown"
	Replaced         = "WorkersReplaced"
	PatchFailed      = "PatchFailed"
	Draining         = "Draining"
	DrainRefused     = "DrainRefused"
	DrainFailed      = "DrainFailed"
	Capped           = "Capped"
	Trying           = "Trying"
	Impossible       = "Impossible"
	InFlightCap      = "InFlightCap"
	GroupFailing     = "GroupFailing"
	GCSUnavailable   = "GCSUnavailable"
	ReductionsPaused = "ReductionsPaused"
	NumGPUsWritten   = "NumGPUsWritten"
	NumGPUsRefused   = "NumGPUsRefused"
	RequestExpired   = "RequestExpired"
	WaitingInShadow  = "WaitingInShadow"
	WorkerGoing      = "WorkerGoing"
	GuardFailed      = "GuardFailed"
	ReplicasReverted = "ReplicasReverted"
	IdleAnnounced    = "IdleAnnounced"
	IdleSuspended    = "IdleSuspended"
	IdleResumed      = "IdleResumed"
	IdleDeleted      = "IdleDeleted"
)
