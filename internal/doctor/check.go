package doctor

import (
	"slices"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Check is one thing that the doctor knows.
type Check struct {
	// Code names its findings.
	Code     string
	Severity raydemand.Severity
	// Why is what follows from what it finds; a finding can say more, or say it of its own case.
	Why string

	look func(*exam, func(sight))
}

// sight is one occurrence of what a check looks for.
type sight struct {
	// check is whose it is.
	check Check
	of    *Object
	// at is the field; path is used instead where it comes as text.
	at   place
	path string
	seen string
	// severity is that of the occurrence, where it is not the check's.
	severity raydemand.Severity
	// more goes on where the check's Why ends; why stands instead of it, where the occurrence is known better than the kind.
	more, why string
	fix       remedy
}

func (s sight) field() string {
	if s.path != "" {
		return s.path
	}
	return s.at.String()
}

// Checks returns all checks, in the order of their families.
func Checks() []Check {
	return slices.Concat(
		gpuAmounts, gpuNames, gpuKinds, sharedGPUs, mps, // what containers ask for
		rayStart, numGPUs, claims, // what Ray makes of it
		bounds, spelling, groupNames, idleness, annotations, read, // the RayCluster itself
		autoscaling, writers, queues, // who else scales
		nodeProblems, nodeStates, landing, ceilings, operator, rights, // what is under it
		security,
	)
}

// perGroup looks at head and workers one by one.
func perGroup(look func(*exam, group, func(sight))) func(*exam, func(sight)) {
	return func(x *exam, tell func(sight)) {
		for _, g := range x.groups {
			look(x, g, tell)
		}
	}
}

// perWorkers looks at worker groups one by one.
func perWorkers(look func(*exam, group, func(sight))) func(*exam, func(sight)) {
	return perGroup(func(x *exam, g group, tell func(sight)) {
		if g.workers != nil {
			look(x, g, tell)
		}
	})
}

// perCluster looks at RayClusters one by one, those inside a RayJob or RayService too.
func perCluster(look func(*exam, *Object, func(sight))) func(*exam, func(sight)) {
	return func(x *exam, tell func(sight)) {
		for _, o := range x.clusters {
			look(x, o, tell)
		}
	}
}

// perNode looks at nodes one by one.
func perNode(look func(*exam, *examNode, func(sight))) func(*exam, func(sight)) {
	return func(x *exam, tell func(sight)) {
		for i := range x.nodes {
			look(x, &x.nodes[i], tell)
		}
	}
}
