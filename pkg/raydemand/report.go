package raydemand

import "time"

// Report is what an autoscaler reports about itself to the GCS, for `ray status`.
type Report struct {
	// Launching are requested pods that do not exist yet. Starting are pods that exist and have not joined.
	Launching []Launching
	Starting  []Starting
	Failed    []FailedLaunch
}

// Launching is the number of pods of a group that were requested.
type Launching struct {
	Group string
	Count int
	Since time.Time
}

// Starting is a pod whose Ray node has not joined yet.
type Starting struct {
	Pod, Group, IP, Details string
}

// FailedLaunch says that a group has failed to launch pods, and when.
type FailedLaunch struct {
	Group, Reason string
	At            time.Time
}
