// Package scaledown decides which of the workers that the plan stops may be removed now. A worker goes in stages, one
// file each:
//
//	idle     the planner chooses it, for example because it has been idle for its timeout
//	         (internal/planner/place/idle.go)
//	drain    its Ray node is asked to drain, which Ray may refuse (drain.go; departing.go for machines that go)
//	confirm  what is taken away must hold in fresh readings of Kubernetes and Ray, and not follow a sudden drop
//	         (confirm.go, dropguard.go)
//	name     its pod is named in workersToDelete, in the patch that lowers replicas (name.go)
//	gone     until the operator has deleted it, nothing more is drained; one that lives again is taken back (gone.go)
//
// The package must not plan and must not write: the loop carries out what these rules allow.
package scaledown
