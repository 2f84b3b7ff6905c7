// Package kube is the adapter between Kubernetes and nodepool: it reads RayClusters and their pods, tolerantly and one by
// one, and writes a nodepool.Change as one guarded JSON patch. Manager keeps the caches, the leader lease and one worker
// per RayCluster. In the fleet form it also follows nodes, as far as it is allowed to, to tell where groups could land.
//
// It refuses to decide anything: which worker comes or goes is the planner's business. It refuses to write while this
// process does not lead, or to a RayCluster that is frozen, suspended, deleted or managed by another controller.
//
// RayClusters are read as unstructured objects, field by field. The API server stores objects that typed clients cannot
// decode (replicas 2147483648 passes the CRD, whose int32 format is not enforced), and one such object in a typed list
// blinds the reader for all namespaces (docs/reference/facts.md#undecodable-object); here it is a Finding of its own
// cluster.
package kube
