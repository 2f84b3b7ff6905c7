// Package kube is the adapter between Kubernetes and nodepool. It reads RayClusters with their pods, and writes a
// nodepool.Change as one guarded JSON patch. Manager keeps the caches, the leader lease and one worker per RayCluster.
// Shards divides RayClusters among processes.
// The packages below it decode objects (decode), watch nodes and node autoscalers (nodes, dra), objects that belong to
// RayClusters (attached), Kueue's (kueue) and ResourceRequests (requests). All of them read through package
// reflector, which tolerates what may be forbidden or absent.
//
// The package must not decide anything: which worker comes or goes is the planner's business. It must not write while
// this process does not lead, or to a RayCluster that is frozen, suspended, deleted or managed by another controller.
package kube
