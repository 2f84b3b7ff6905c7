package devcluster

import "heliostat.dev/heliostat/test/devcluster/kit"

// Part and Needs are what package kit builds; they are repeated here for those who only start clusters.
type (
	Part  = kit.Part
	Needs = kit.Needs
)

// The programs a cluster is made of, see package kit.
const (
	Etcd              = kit.Etcd
	APIServer         = kit.APIServer
	Scheduler         = kit.Scheduler
	ControllerManager = kit.ControllerManager
	Operator          = kit.Operator
	Kwok              = kit.Kwok
	Kueue             = kit.Kueue
	Karpenter         = kit.Karpenter
)

// DefaultRay is the version of Ray that pods run unless their image says otherwise.
const DefaultRay = kit.DefaultRay

// CacheDir returns the directory that holds all that is built and all that runs.
func CacheDir() (string, error) { return kit.CacheDir() }
