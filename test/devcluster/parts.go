package devcluster

import "heliostat.dev/heliostat/test/devcluster/kit"

// Part and Needs are types of package kit, for callers that only start clusters.
type (
	Part  = kit.Part
	Needs = kit.Needs
)

// The programs of a cluster, see package kit.
const (
	Etcd              = kit.Etcd
	APIServer         = kit.APIServer
	Scheduler         = kit.Scheduler
	ControllerManager = kit.ControllerManager
	Operator          = kit.Operator
	Kwok              = kit.Kwok
	Kueue             = kit.Kueue
	Karpenter         = kit.Karpenter
	Coscheduling      = kit.Coscheduling
)

// DefaultRay is the default version of Ray in pods.
const DefaultRay = kit.DefaultRay

// CacheDir returns the directory of all builds and running clusters.
func CacheDir() (string, error) { return kit.CacheDir() }
