// Package decode is the one decoder of Kubernetes objects, for the manager, the doctor and files.
//
// It turns a RayCluster object and its pods into a nodepool.Cluster: it knows what the fields, the annotations and the
// pod templates mean to KubeRay, to Ray and to Kueue, and what Ray reports for each worker group. It also reads the
// objects that say what nodes are and how many there can be: Nodes, Pods, ResourceSlices and ResourceClaims,
// Karpenter's NodePools and NodeClaims, the Cluster Autoscaler's status, and the pools file, and converts them into the
// types of sharing and landing. What is wrong with an object becomes findings in a Report, which keeps them short.
//
// Decoding never fails. RayClusters are read as unstructured objects, field by field, because the API server stores
// objects that typed clients cannot decode: replicas 2147483648 passes the CRD, whose int32 format is not enforced. One
// such object in a typed list blinds the reader for all namespaces (docs/reference/facts.md#undecodable-object).
// Here it is a finding of its own cluster.
//
// The package must not call the API server, watch anything, or decide anything: equal objects give equal clusters.
package decode
