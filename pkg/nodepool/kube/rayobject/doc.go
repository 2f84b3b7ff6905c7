// Package rayobject turns a RayCluster object and its pods into a nodepool.Cluster. It knows what the fields, the
// annotations and the pod templates mean to KubeRay, to Ray and to Kueue, and what Ray reports for each worker group.
//
// Decoding never fails. RayClusters are read as unstructured objects, field by field, because the API server stores
// objects that typed clients cannot decode: replicas 2147483648 passes the CRD, whose int32 format is not enforced. One
// such object in a typed list blinds the reader for all namespaces (docs/reference/facts.md#undecodable-object).
// Here it is a finding of its own cluster.
//
// The package must not call the API server, watch anything, or decide anything: equal objects give equal clusters.
package rayobject
