// Package terms judges from the API server's audit log whether each RayCluster had one writer at any moment. It shares
// no code with Heliostat, and imports only the standard library: it knows the name of an annotation, the form of a
// term, and the form of a user agent.
//
// The order of the writes of a RayCluster is that of its resource versions, which are revisions of etcd, and not that
// of the log. A write is a patch that the API server has stored. Its term is what the patch writes into the annotation.
package terms
