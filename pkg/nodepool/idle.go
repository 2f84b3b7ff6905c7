package nodepool

import "time"

// IdleSinceAnnotation on a RayCluster that Heliostat has suspended says since when it has had no work. Heliostat
// resumes only RayClusters with it.
const IdleSinceAnnotation = "heliostat.dev/idle-since"

// IdleChange suspends one RayCluster without work, or resumes it, in the version in which it was read.
type IdleChange struct {
	Cluster              ClusterKey
	UID, ResourceVersion string
	Generation           int64
	Resume               bool
	// Since is since when it has had no work.
	Since time.Time
}
