package raydemand

import "time"

// Report is what an autoscaler tells the GCS about itself, so that `ray status` shows it.
type Report struct {
	// Launching are pods asked for that do not exist yet, Starting those that exist and have not joined.
	Launching []Launching
	Starting  []Starting
	Failed    []FailedLaunch
	// Infeasible lists hold only what no worker group could ever serve with any selector: Ray may cancel equal
	// shapes (RAY_enable_infeasible_task_early_exit), so demand that is merely capped must never stand here. Ray does
	// not compare selectors either, so an adapter leaves out requests that have one.
	InfeasibleRequests   []Request
	InfeasibleGangs      []Gang
	InfeasibleConstraint []Request
}

// Launching counts pods of a group that were asked for.
type Launching struct {
	Group string
	Count int
	Since time.Time
}

// Starting is a pod whose Ray node has not joined yet.
type Starting struct {
	Pod, Group, IP, Details string
}

// FailedLaunch is a pod that could not be had.
type FailedLaunch struct {
	Group         string
	Count         int
	Reason        string
	Start, Failed time.Time
}
