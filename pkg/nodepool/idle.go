package nodepool

import "time"

// IdleSinceAnnotation on a RayCluster that Heliostat has suspended says since when it has had no work. Heliostat
// resumes only RayClusters with it.
const IdleSinceAnnotation = "heliostat.dev/idle-since"

// IdleAction is what Heliostat does with a RayCluster without work.
type IdleAction string

// The actions.
const (
	SuspendIdle IdleAction = "suspend"
	ResumeIdle  IdleAction = "resume"
	DeleteIdle  IdleAction = "delete"
)

// IdleChange suspends, resumes or deletes one RayCluster, in the version in which it was read.
type IdleChange struct {
	Cluster              ClusterKey
	UID, ResourceVersion string
	Generation           int64
	Action               IdleAction
	// Since is since when it has had no work.
	Since time.Time
}
