package addon

// Reasons of Events on a RayCluster. They are stable: alerts and scripts may match them. The codes in mode.go are Event
// reasons too, when they keep a cluster from being managed.
const (
	ReasonScaledUp         = "ScaledUp"
	ReasonScaledDown       = "ScaledDown"
	ReasonReplaced         = "WorkersReplaced"
	ReasonPatchFailed      = "PatchFailed"
	ReasonDraining         = "Draining"
	ReasonDrainRefused     = "DrainRefused"
	ReasonDrainFailed      = "DrainFailed"
	ReasonCapped           = "Capped"
	ReasonTrying           = "Trying"
	ReasonImpossible       = "Impossible"
	ReasonInFlightCap      = "InFlightCap"
	ReasonGroupFailing     = "GroupFailing"
	ReasonGCSUnavailable   = "GCSUnavailable"
	ReasonReductionsPaused = "ReductionsPaused"
	ReasonNumGPUsWritten   = "NumGPUsWritten"
	ReasonRequestExpired   = "RequestExpired"
	ReasonGiveBackBegins   = "GiveBackBegins"
	ReasonGiveBackEnds     = "GiveBackEnds"
	ReasonWorkerGoing      = "WorkerGoing"
	ReasonBadGPU           = "BadGPU"
	ReasonGuardFailed      = "GuardFailed"
	ReasonReplicasReverted = "ReplicasReverted"
	ReasonIdleAnnounced    = "IdleAnnounced"
	ReasonIdleSuspended    = "IdleSuspended"
	ReasonIdleResumed      = "IdleResumed"
)
